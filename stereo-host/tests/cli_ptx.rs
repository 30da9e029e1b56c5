//! What the command says of the PTX for GPUs, and the comparison of two sources of it, with the driver that is made up
//! in `tests/tests/cuda_driver/fake_driver.c`: its GPU takes sm_75, and its kernels do nothing.
#![cfg(cuda)]

mod cli;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use cli::{pair, stereo, text};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with the made-up driver; `None`, said plainly, where there is no C compiler.
fn fake_driver() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("fake_driver.c");
    fs::write(&source, include_str!("../../tests/tests/cuda_driver/fake_driver.c")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-shared", "-fPIC", "-O1", "-o"]).arg(folder.path().join("libcuda.so.1")).arg(&source);
    match cc.output() {
        Ok(output) if output.status.success() => Some(folder),
        Ok(output) => panic!("cc: {}", text(&output.stderr)),
        Err(error) => {
            eprintln!("skipped: no C compiler (cc: {error})");
            None
        }
    }
}

/// Runs the command with the made-up driver.
fn run(driver: &TempDir, folder: &Path, args: &str, ptx: Option<&Path>) -> Output {
    let mut command = stereo(folder, args);
    command.env("LD_LIBRARY_PATH", driver.path()).env_remove("CUDA_VISIBLE_DEVICES").env_remove("STEREO_PTX_DIR");
    command.envs(ptx.map(|folder| ("STEREO_PTX_DIR", folder))).output().unwrap()
}

#[track_caller]
fn json(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The embedded sm_75 image, with another stamp.
fn stamped(compiler: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("../ptx/stereo_sm75.ptx");
    let stamp = text.lines().find(|line| line.starts_with("// compiler: ")).unwrap();
    let text = text.replacen(stamp, &format!("// compiler: {compiler}"), 1);
    fs::write(folder.path().join("stereo_sm75.ptx"), text).unwrap();
    folder
}

#[test]
fn info_lists_the_gpu_code() {
    let Some(driver) = fake_driver() else { return };
    let here = Path::new(".");
    let embedded = json(&run(&driver, here, "info --json", None), 0)["device_code"].clone();
    assert_eq!((&embedded["source"], &embedded["variable"]), (&json!("embedded"), &Value::Null));
    let images = embedded["images"].as_array().unwrap();
    assert_eq!(images.iter().map(|image| &image["arch"]).collect::<Vec<_>>(), [75, 80, 90, 100]);
    for image in images {
        assert!(image["compiler"].as_str().unwrap().starts_with("rustc "), "{image}");
        assert!(image["isa"].is_string() && image["needed_cuda"].is_string(), "{image}");
        assert_eq!(image["devices"], if image["arch"] == 75 { json!([0]) } else { json!([]) });
    }
    let shown = text(&run(&driver, here, "info", None).stdout);
    let lines: Vec<_> = shown.lines().filter(|line| line.trim_start().starts_with("sm_")).collect();
    assert!(shown.contains("GPU code (embedded):\n") && lines.len() == 4, "{shown}");
    assert!(lines[0].contains("rustc ") && lines[0].ends_with("; GPU 0 runs it"), "{shown}");
    assert!(!lines[1].contains("runs it"), "{shown}");

    let ptx = stamped("rust-cuda (libNVVM 4.0)");
    fs::write(ptx.path().join("stereo_sm90.ptx"), ".version 8.6\n.target sm_90\n").unwrap();
    let folder = json(&run(&driver, here, "info --json", Some(ptx.path())), 0)["device_code"].clone();
    assert_eq!((&folder["source"]["folder"], &folder["variable"]), (&json!(ptx.path()), &json!("STEREO_PTX_DIR")));
    let said: Vec<_> = folder["images"].as_array().unwrap().iter().map(|image| &image["compiler"]).collect();
    assert_eq!(said, [&json!("rust-cuda (libNVVM 4.0)"), &Value::Null]);
    let shown = text(&run(&driver, here, "info", Some(ptx.path())).stdout);
    assert!(shown.contains(&format!("GPU code (STEREO_PTX_DIR = {}):", ptx.path().display())), "{shown}");
    assert!(shown.contains("PTX 8.6, CUDA 12.7 or newer, unknown compiler\n"), "{shown}");

    let none = run(&driver, here, "info", Some(Path::new("no/such/folder")));
    assert_eq!(none.status.code(), Some(0));
    assert!(text(&none.stdout).contains("no/such/folder: cannot read the folder that STEREO_PTX_DIR names"));
    let none = json(&run(&driver, here, "info --json", Some(Path::new("no/such/folder"))), 0)["device_code"].clone();
    assert_eq!(none["images"], json!([]));
    assert!(none["reason"].as_str().unwrap().contains("no/such/folder: cannot read"), "{none}");
}

#[test]
fn a_match_says_whose_code_ran() {
    let Some(driver) = fake_driver() else { return };
    let dir = pair(40, 24);
    let args = "match l.png r.png -o m.pfm -d 16 --plan plain --json --backend";
    let embedded = json(&run(&driver, dir.path(), &format!("{args} cuda"), None), 0);
    assert_eq!((&embedded["device"], &embedded["device_code"]["arch"]), (&json!("Fake GPU 0"), &json!(75)));
    assert_eq!(embedded["device_code"]["source"], "embedded");
    let ptx = stamped("rust-cuda");
    for algorithm in ["sgm", "masda"] {
        let args = format!("{args} cuda --algorithm {algorithm}");
        let other = json(&run(&driver, dir.path(), &args, Some(ptx.path())), 0)["device_code"].clone();
        assert_eq!((&other["source"]["folder"], &other["compiler"]), (&json!(ptx.path()), &json!("rust-cuda")));
        assert_eq!((&other["arch"], &other["isa"]), (&json!(75), &embedded["device_code"]["isa"]));
    }
    for backend in ["cpu", "reference", "emulator"] {
        let report = json(&run(&driver, dir.path(), &format!("{args} {backend}"), Some(ptx.path())), 0);
        assert!(report.get("device_code").is_none(), "{report}");
    }
    let bench = "bench --size 40x24 -d 16 --plan plain -i 2 --warmup 0 --backend cuda";
    let table = text(&run(&driver, dir.path(), bench, Some(ptx.path())).stdout);
    assert!(
        table.lines().any(|line| line.starts_with("GPU code: sm_75, ") && line.ends_with(", rust-cuda")),
        "{table}"
    );
    let report = json(&run(&driver, dir.path(), &format!("{bench} --json"), Some(ptx.path())), 0);
    assert_eq!(report["device_code"]["compiler"], "rust-cuda");
}

#[test]
fn two_sources_are_compared_side_by_side() {
    let Some(driver) = fake_driver() else { return };
    let ptx = stamped("rust-cuda");
    let args = format!(
        "bench --size 40x24 -d 16 --paths 4 -i 3 --warmup 1 --plan plain --compare-ptx embedded {}",
        ptx.path().display()
    );
    let compare = |flags: &str| run(&driver, Path::new("."), &format!("{args} {flags}"), None);
    // Kernels that do nothing give the same map twice, and not the CPU's.
    let output = compare("--json");
    let report = json(&output, 1);
    let differing = &report["differing_bytes"];
    assert_eq!((&differing["a_and_b"], &differing["of"]), (&json!(0), &json!(40 * 24 * 2)));
    assert!(differing["a_and_cpu"].as_u64().unwrap() > 0 && differing["a_and_cpu"] == differing["b_and_cpu"]);
    assert!(text(&output.stderr).contains("error: disparity maps: got "), "{}", text(&output.stderr));
    assert_eq!(
        (&report["backend"], &report["iterations"], &report["plan_source"]),
        (&json!("cuda"), &json!(3), &json!("given"))
    );
    assert_eq!(report["a"]["source"], "embedded");
    assert_eq!((&report["b"]["source"]["folder"], &report["b"]["compiler"]), (&json!(ptx.path()), &json!("rust-cuda")));
    let stages = report["stages"].as_array().unwrap();
    for stage in ["census", "cost", "aggregate left-to-right", "winner-takes-all", "median", "consistency"] {
        assert!(stages.iter().any(|s| s["stage"] == stage), "{stage}: {report}");
    }
    // Every event is half a millisecond after the one before.
    for times in stages.iter().chain([&report["device_ms"]]) {
        assert_eq!((&times["a"]["median_ms"], &times["b"]["median_ms"]), (&json!(0.5), &json!(0.5)));
        assert_eq!(times["b_over_a"], 1.0);
    }
    assert!(report["whole"]["b_over_a"].as_f64().unwrap() > 0.0);

    let output = compare("");
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    assert!(
        table.contains("\nA: sm_75, ") && table.contains(&format!("{}, rust-cuda\n", ptx.path().display())),
        "{table}"
    );
    assert!(
        table.lines().any(|line| line.starts_with("census") && line.ends_with(" 0.500      0.500   1.000")),
        "{table}"
    );
    assert!(table.contains("differing bytes of 1920: A and B 0, A and cpu "), "{table}");

    let report = json(&compare("--json --algorithm masda"), 1);
    let stages: Vec<_> = report["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert!(["census", "coefficients", "vertical forward", "solve"].iter().all(|s| stages.contains(s)), "{stages:?}");
    assert!(report["plan"].is_null());

    // The plan that is in use without `--plan` is A's, and B's as well.
    let twice =
        format!("bench --size 40x24 -d 16 -i 1 --plan cached --compare-ptx {0} {0} --json", ptx.path().display());
    let report = json(&run(&driver, Path::new("."), &twice, Some(Path::new("not/here"))), 1);
    assert_eq!((&report["a"], &report["differing_bytes"]["a_and_b"]), (&report["b"], &json!(0)));
    assert_eq!(report["plan"]["vertical"], "plain");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let Some(driver) = fake_driver() else { return };
    let empty = tempfile::tempdir().unwrap();
    let refused = |args: &str, code, words: &[&str]| {
        let args = format!("bench --size 40x24 -d 16 -i 1 {args}");
        cli::one_error(&run(&driver, empty.path(), &args, None), &args, code, words);
    };
    for backend in ["cpu", "reference", "emulator"] {
        let words = [&format!("backend = {backend} is not allowed"), "cuda with --compare-ptx"];
        refused(&format!("--compare-ptx embedded embedded --backend {backend}"), 2, &words);
    }
    refused("--compare-ptx embedded absent", 1, &["absent: cannot read the given PTX folder"]);
    refused("--compare-ptx . embedded", 1, &["the given PTX folder . holds no stereo_sm*.ptx", "7.5"]);
    fs::write(empty.path().join("stereo_sm90.ptx"), ".version 8.6\n").unwrap();
    refused("--compare-ptx embedded .", 1, &["the given PTX folder . holds sm_90 (CUDA 12.7)", "7.5"]);
    let one = run(&driver, empty.path(), "bench --compare-ptx embedded", None);
    assert_eq!(one.status.code(), Some(2), "{}", text(&one.stderr));
}
