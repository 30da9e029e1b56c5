//! Every subcommand through the real command.

mod cli;

use cli::{done, files, pair, shared_data, stereo, texture16};
use serde_json::Value;
use std::{fs, path::Path};
use stereo_host::{
    DisparityMap, Params, SceneSpec,
    io::{self, Encoding, Gray, load_disparity, load_pfm, load_raw16},
};

fn json(folder: &Path, args: &str) -> Value {
    serde_json::from_str(&done(folder, args)).unwrap()
}

#[test]
fn match_finds_the_shift_in_every_encoding() {
    let dir = pair(60, 40);
    let at = |name: &str| dir.path().join(name);
    let run = |rest: &str| done(dir.path(), &format!("match l.png r.png -d 16 --backend reference {rest}"));
    assert_eq!(run("-o m.pfm"), "", "standard output is for reports");
    let pixels = load_pfm(&at("m.pfm")).unwrap();
    let right = |d: f32| (d - 3.0).abs() < 0.5;
    assert!(pixels.iter().filter(|d| right(**d)).count() > 60 * 40 * 8 / 10, "{pixels:?}");
    for (flags, encoding) in [
        ("-o m.png", Encoding::Kitti),
        ("-o m.png --encoding kitti", Encoding::Kitti),
        ("-o m.png --encoding middlebury=16", Encoding::Middlebury { scale: 16 }),
    ] {
        run(flags);
        let read = load_disparity(&at("m.png"), encoding).unwrap();
        // Disparity 0 is stored as the smallest value that is not "invalid".
        let same = read.iter().zip(pixels.iter()).all(|(a, b)| (a - b).abs() < 0.1 || a.is_nan() && b.is_nan());
        assert!(same, "{flags}");
    }
    for name in ["m.png", "m.tif"] {
        run(&format!("-o {name} --encoding raw16 --min-disparity -4"));
        let params = Params { min_disparity: -4, disparities: 16, ..Params::default() };
        let map = load_raw16(&at(name), 16, params.invalid_value() as i16).unwrap();
        assert!(right(map.get(30, 20).unwrap()));
    }
}

#[test]
fn match_takes_16_bit_pairs_and_writes_a_preview() {
    let dir = pair(60, 40);
    texture16(60, 40, 0).save(dir.path().join("l.tif")).unwrap();
    texture16(60, 40, 3).save(dir.path().join("r.tif")).unwrap();
    done(dir.path(), "match l.png r.png -o a.pfm -d 16 --adaptive-p2 false --backend reference --color");
    done(dir.path(), "match l.tif r.tif -o b.pfm -d 16 --adaptive-p2 false --backend reference --color=preview.png");
    // Intensities times 257 change neither the order that the census sees nor anything else here.
    assert_eq!(fs::read(dir.path().join("a.pfm")).unwrap(), fs::read(dir.path().join("b.pfm")).unwrap());
    assert_eq!(fs::read(dir.path().join("a_color.png")).unwrap(), fs::read(dir.path().join("preview.png")).unwrap());
    let preview = image::open(dir.path().join("preview.png")).unwrap();
    assert!(preview.width() > 60 && preview.height() >= 40, "map and legend");
}

#[test]
fn match_reports_for_machines_and_people() {
    let dir = pair(60, 40);
    let report = json(dir.path(), "match l.png r.png -o m.pfm -d 16 --paths 4 --backend reference --json --fill");
    assert_eq!((&report["backend"], &report["width"], &report["bits"]), (&"reference".into(), &60.into(), &8.into()));
    assert_eq!(report["params"]["paths"], "4");
    assert_eq!(report["params"]["fill"], true);
    assert_eq!(report["density"], 1.0);
    assert!(report["device"].is_string() && report["total_ms"].as_f64().unwrap() > 0.0);
    let stages = report["stages"].as_array().unwrap();
    assert!(stages.len() > 4);
    assert!(stages.iter().all(|s| s["stage"].is_string() && s["variant"].is_string() && s["ms"].is_f64()));
    let table = done(dir.path(), "match l.png r.png -o m.pfm -d 16 --backend reference --timing");
    assert!(table.contains("census") && table.contains("total"), "{table}");
    let quiet = stereo(dir.path(), "match l.png r.png -o m.pfm -d 16 --backend reference -q").output().unwrap();
    assert!(quiet.status.success() && quiet.stdout.is_empty() && quiet.stderr.is_empty());
}

#[test]
fn match_equals_libsgm_through_the_command() {
    let Some(data) = shared_data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scene = data.join("middlebury/Teddy");
    let inputs = format!("{} {}", scene.join("im2.png").display(), scene.join("im6.png").display());
    for (name, flags) in [
        ("a", "-d 64"),
        ("b", "-d 128 --no-subpixel --paths 4"),
        ("d", "-d 64 --p1 20 --p2 100 --uniqueness 1.0 --paths 4 --min-disparity 12 --lr-max-diff -1"),
    ] {
        done(dir.path(), &format!("match {inputs} -o m.png --encoding raw16 --compat libsgm {flags}"));
        let ours = load_raw16(&dir.path().join("m.png"), 1, 0).unwrap();
        let theirs = load_raw16(&data.join(format!("libsgm/Teddy_{name}.png")), 1, 0).unwrap();
        let differing = ours.values().iter().zip(theirs.values()).filter(|(a, b)| a != b).count();
        assert_eq!((differing, ours.values().len()), (0, theirs.values().len()), "{name}");
    }
}

#[test]
fn demo_writes_everything_and_scores_well() {
    let dir = tempfile::tempdir().unwrap();
    let args = "demo --out new/out --size 200x150 --disparities 24 --backend reference";
    let table = done(dir.path(), args);
    assert!(table.contains("bad-1") && table.contains("rendered 200x150"), "{table}");
    let written = files(&dir.path().join("new/out"));
    let expected =
        ["color.png", "disparity.pfm", "error.png", "left.png", "right.png", "truth_left.pfm", "truth_right.pfm"];
    assert_eq!(written, expected);
    let report = json(dir.path(), &format!("{args} --json"));
    assert!(report["score"]["dense_bad"]["1"].as_f64().unwrap() < 0.1, "{report}");
    assert_eq!(report["files"].as_array().unwrap().len(), expected.len());
    // The same seed, the same bytes.
    done(dir.path(), "demo --out again --size 200x150 --disparities 24 --backend reference");
    for name in expected {
        let read = |folder: &str| fs::read(dir.path().join(folder).join(name)).unwrap();
        assert_eq!(read("new/out"), read("again"), "{name}");
    }
}

#[test]
fn eval_takes_folders_and_single_files() {
    let dir = tempfile::tempdir().unwrap();
    let scene = SceneSpec { width: 120, height: 90, disparities: 40, ..SceneSpec::default() }.render().unwrap();
    let picture = |gray: &Gray| match gray.clone() {
        Gray::U8(image) => image::DynamicImage::from(image),
        Gray::U16(image) => image.into(),
    };
    let scaled = |truth: &io::FloatImage, scale: u8| {
        let values = truth.iter().map(|d| (d * 16.0).round() as i16).collect();
        let map = DisparityMap::from_values(values, 120, 90, 16, -16).unwrap();
        move |path: &Path| map.save_as(path, Encoding::Middlebury { scale }).unwrap()
    };
    for (name, stems, scale) in
        [("A", ["im2", "im6", "disp2", "disp6"], 4), ("B", ["view1", "view5", "disp1", "disp5"], 3)]
    {
        let folder = dir.path().join("scenes").join(name);
        fs::create_dir_all(&folder).unwrap();
        let file = |i: usize| folder.join(stems[i]).with_extension("png");
        io::save_image(&file(0), &picture(&scene.left)).unwrap();
        io::save_image(&file(1), &picture(&scene.right)).unwrap();
        scaled(&scene.truth_left, scale)(&file(2));
        scaled(&scene.truth_right, scale)(&file(3));
    }
    let report = json(dir.path(), "eval --data scenes --backend reference --fill --json");
    let scenes = report["scenes"].as_array().unwrap();
    assert_eq!(scenes.iter().map(|s| s["name"].as_str().unwrap()).collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(scenes.iter().map(|s| s["params"]["disparities"].as_u64().unwrap()).collect::<Vec<_>>(), [60, 80]);
    let bad = |score: &Value| score["dense_bad"]["1"].as_f64().unwrap();
    assert!((bad(&report["mean"]) - (bad(&scenes[0]) + bad(&scenes[1])) / 2.0).abs() < 1e-12);
    assert!(bad(&report["mean"]) < 0.15, "{report}");
    assert_eq!(report["mean"]["density"], 1.0);
    let table = done(dir.path(), "eval --data scenes/A --disparities 40 --backend reference");
    assert!(table.lines().any(|line| line.starts_with("A ")) && !table.contains("mean"), "{table}");

    io::save_pfm(&dir.path().join("tl.pfm"), &scene.truth_left).unwrap();
    io::save_pfm(&dir.path().join("tr.pfm"), &scene.truth_right).unwrap();
    let report = json(
        dir.path(),
        "eval --left scenes/A/im2.png --right scenes/A/im6.png --truth-left tl.pfm --truth-right tr.pfm \
         --disparities 40 --backend reference --json",
    );
    assert_eq!(report["scenes"][0]["name"], "A");
    assert!(report["mean"]["given_bad"]["2"].as_f64().unwrap() < 0.05, "{report}");
}

#[test]
fn eval_finds_the_eight_scenes() {
    let Some(data) = shared_data() else { return };
    let scenes = stereo_host::eval::SceneFiles::find(&data.join("middlebury")).unwrap();
    let names: Vec<_> = scenes.iter().map(|s| (s.name.as_str(), s.disparities)).collect();
    let expected = [
        ("Art", 80),
        ("Books", 80),
        ("Cones", 60),
        ("Dolls", 80),
        ("Laundry", 80),
        ("Moebius", 80),
        ("Reindeer", 80),
        ("Teddy", 60),
    ];
    assert_eq!(names, expected);
}

#[test]
fn bench_has_the_documented_keys() {
    let dir = tempfile::tempdir().unwrap();
    let args = "bench --size 64x48 --disparities 16 --paths 4 --backend reference --iterations 3 --warmup 1";
    let report = json(dir.path(), &format!("{args} --json"));
    for key in ["median_ms", "min_ms", "std_ms"] {
        assert!(report[key].as_f64().unwrap() >= 0.0, "{key}");
        assert!(report["stages"].as_array().unwrap().iter().all(|s| s[key].is_f64()), "{key}");
    }
    assert!(report["min_ms"].as_f64() <= report["median_ms"].as_f64());
    assert_eq!((&report["backend"], &report["iterations"]), (&"reference".into(), &3.into()));
    assert!(report["device"].is_string() && report["stages"].as_array().unwrap().len() > 4);
    let table = done(dir.path(), args);
    assert!(table.contains("median") && table.contains("whole"), "{table}");
}

#[test]
fn the_plan_of_a_gpu_match_is_chosen_and_reported() {
    let dir = pair(40, 24);
    let run = "match l.png r.png -o m.pfm -d 16 --paths 4 --backend emulator --json";
    for plan in ["", "--plan plain", "--plan cached", "--plan auto"] {
        let report = json(dir.path(), &format!("{run} {plan}"));
        assert_eq!((&report["plan"]["vertical"], &report["plan"]["streams"]), (&"plain".into(), &8.into()), "{plan}");
        assert_eq!(report["plan_source"], if plan == "--plan plain" { "given" } else { "default" }, "{plan}");
        assert!(report["device_ms"].is_null(), "the emulator's time is no device's");
    }
    let plain = fs::read(dir.path().join("m.pfm")).unwrap();
    let plan = r#"{"horizontal":"plain","vertical":{"bulk":{"chunk":4,"stages":3}},"oblique":"plain","streams":2,"horizontal_first":false}"#;
    fs::write(dir.path().join("plan.json"), format!("{plan}\n")).unwrap();
    for flag in [plan, "@plan.json"] {
        let report = json(dir.path(), &format!("{run} --plan {flag}"));
        assert_eq!(report["plan"], serde_json::from_str::<Value>(plan).unwrap());
        let stage = |name: &str| {
            let stages = report["stages"].as_array().unwrap();
            stages.iter().find(|stage| stage["stage"] == name).unwrap_or_else(|| panic!("{name}: {report}")).clone()
        };
        let (down, right) = (stage("aggregate up-to-down"), stage("aggregate left-to-right"));
        assert_eq!((&down["chunk"], &down["stages"], &down["stream"]), (&4.into(), &3.into(), &1.into()));
        assert!(down["variant"].as_str().unwrap().ends_with("_tma"), "{down}");
        assert!(right["chunk"].is_null() && right["stream"] == 1, "{right}");
        assert_eq!(stage("aggregate right-to-left")["stream"], 2);
        assert_eq!(fs::read(dir.path().join("m.pfm")).unwrap(), plain, "no plan changes a byte");
    }
    let table = done(dir.path(), "bench --size 40x24 -d 16 --paths 4 --backend emulator -i 1 --plan @plan.json");
    assert!(table.contains("_tma, chunk 4, stages 3, stream 1") && table.contains("plan (given): {"), "{table}");
}

#[test]
fn stored_plans_are_forgotten_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let clear = || {
        let output = stereo(dir.path(), "tune --clear").env("STEREO_CACHE_DIR", &cache).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        cli::text(&output.stderr)
    };
    assert!(clear().contains("0 stored plans removed"), "there is no folder yet");
    fs::create_dir(&cache).unwrap();
    fs::write(cache.join("plan-0123456789abcdef.json"), "damaged").unwrap();
    fs::write(cache.join("other.json"), "{}").unwrap();
    assert!(clear().contains("1 stored plan removed"));
    assert_eq!(files(&cache), ["other.json"]);
    let without_gpu = stereo(dir.path(), "tune --size 64x48 -d 16").env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    cli::one_error(&without_gpu, "tune", 1, &["backend cuda is not available here"]);
}

#[test]
fn info_help_and_completions() {
    let here = Path::new(".");
    let info = json(here, "info --json");
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let names: Vec<_> = info["backends"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cuda", "cpu", "reference", "emulator"]);
    assert!(info["device_code"]["images"].is_array(), "{info}");
    let shown = done(here, "info");
    assert!(shown.contains("reference  available") && shown.contains("GPU code ("), "{shown}");
    assert!(done(here, "--version").contains(env!("CARGO_PKG_VERSION")));
    for command in ["match", "demo", "eval", "bench", "tune", "completions"] {
        assert!(done(here, &format!("{command} --help")).contains("Example"), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(done(here, &format!("completions {shell}")).contains("stereo"), "{shell}");
    }
}

#[test]
fn pictures_in_netpbm_are_p6() {
    let dir = pair(24, 16);
    done(dir.path(), "match l.png r.png -o m.pfm -d 8 --color=c.ppm");
    assert!(fs::read(dir.path().join("c.ppm")).unwrap().starts_with(b"P6\n"));
    image::open(dir.path().join("c.ppm")).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_unicode() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let dir = pair(24, 16);
    let name = OsStr::from_bytes(b"l\xff.png");
    fs::rename(dir.path().join("l.png"), dir.path().join(name)).unwrap();
    let output = stereo(dir.path(), "match r.png -o m.pfm -d 8 --json").arg(name).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", cli::text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["right"], "l\u{fffd}.png");
}
