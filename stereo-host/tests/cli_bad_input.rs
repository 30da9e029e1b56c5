//! Bad input through the real command: one clear line, exit code 1 or 2, never a panic, no file left behind.

mod cli;

use cli::{done, files, one_error, pair, refused, stereo, texture, texture16};
use std::{fs, path::Path};

const MATCH: &str = "match l.png r.png -o m.pfm --disparities 16 --backend reference";

#[track_caller]
fn match_refused(flags: &str, code: i32, words: &[&str]) {
    let dir = pair(24, 16);
    refused(dir.path(), &format!("{MATCH} {flags}"), code, words);
    assert_eq!(files(dir.path()), ["l.png", "r.png"], "{flags}");
}

#[test]
fn parameters_outside_their_range() {
    match_refused("--p1 50 --p2 40", 2, &["p1 = 50", "p2 = 40"]);
    match_refused("--p1 0", 2, &["p1 = 0"]);
    match_refused("--p2 232", 2, &["p2 = 232", "231", "8 bits"]);
    match_refused("--p2 225 --census symmetric9x7", 2, &["p2 = 225", "224"]);
    for u in ["nan", "inf", "-inf", "-0.5", "1.01"] {
        match_refused(&format!("--uniqueness {u}"), 2, &["uniqueness = ", "0 to 1"]);
    }
    match_refused("--lr-max-diff 2000", 2, &["lr_max_diff = 2000", "1024"]);
    match_refused("--min-disparity 3000", 2, &["min_disparity = 3000"]);
    match_refused("--min-disparity -2147483648", 2, &["min_disparity = -2147483648"]);
    for threads in ["0", "1025", "18446744073709551615"] {
        for algorithm in ["sgm", "masda"] {
            match_refused(&format!("--threads {threads} --algorithm {algorithm}"), 2, &["threads = ", "1 to 1024"]);
        }
    }
    let dir = pair(24, 16);
    for (d, word) in [("0", "disparities = 0"), ("1025", "disparities = 1025")] {
        refused(dir.path(), &format!("match l.png r.png -o m.pfm -d {d}"), 2, &[word, "1024"]);
    }
}

#[test]
fn what_the_argument_reader_refuses_is_wrong_use() {
    let dir = pair(24, 16);
    for args in [
        "",
        "nonsense",
        "match l.png r.png",
        "match l.png -o m.pfm",
        "match l.png r.png -o m.pfm --paths 5",
        "match l.png r.png -o m.pfm --census 5x5",
        "match l.png r.png -o m.pfm --backend quantum",
        "match l.png r.png -o m.pfm --disparities -3",
        "match l.png r.png -o m.png --encoding middlebury=0",
        "match l.png r.png -o m.pfm --p2 70000",
        "match l.png r.png -o m.pfm --plan fastest",
        "match l.png r.png -o m.pfm --plan {}",
        "match l.png r.png -o m.pfm --plan @absent.json",
        "match l.png r.png -o m.pfm --plan @l.png",
        "tune --clear --size 64x48",
        "tune --disparities 0",
        "bench --size 12",
        "bench --iterations 0",
        "eval",
        "eval --left l.png",
        "eval --data . --left l.png",
        "completions klingon",
    ] {
        let output = stereo(dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "stereo {args}");
        assert!(!cli::text(&output.stderr).contains("panicked"), "stereo {args}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "stereo {args}");
    }
    assert_eq!(files(dir.path()), ["l.png", "r.png"]);
}

#[test]
fn pairs_that_do_not_belong_together() {
    let dir = pair(24, 16);
    texture(25, 16, 0).save(dir.path().join("wide.png")).unwrap();
    texture16(24, 16, 0).save(dir.path().join("deep.png")).unwrap();
    refused(dir.path(), "match l.png wide.png -o m.pfm", 1, &["25x16", "24x16"]);
    refused(dir.path(), "match l.png deep.png -o m.pfm", 1, &["16 bits", "8 bits"]);
}

#[test]
fn empty_and_oversized_images() {
    let dir = pair(24, 16);
    for (name, bytes, words) in [
        ("zero.pgm", &b"P5 0 4 255\n"[..], &["zero.pgm"][..]),
        ("wide.pgm", b"P5 40000 1 255\nabc", &["wide.pgm", "40000x1", "32768"]),
        ("huge.pgm", b"P5 32768 32768 255\nabc", &["huge.pgm", "32768x32768", "bytes"]),
        ("empty.png", b"", &["empty.png", "empty"]),
        ("text.png", b"hello", &["text.png", "cannot decode"]),
        ("text.xyz", b"hello", &["text.xyz", "PNG"]),
    ] {
        fs::write(dir.path().join(name), bytes).unwrap();
        refused(dir.path(), &format!("match {name} r.png -o m.pfm"), 1, words);
        refused(dir.path(), &format!("match l.png {name} -o m.pfm"), 1, words);
    }
    refused(dir.path(), "bench --size 0x10", 1, &["0x10"]);
    refused(dir.path(), "demo --out out --size 40000x10", 1, &["40000x10"]);
    assert!(!dir.path().join("out").exists());
}

#[test]
fn truncated_and_lying_files() {
    let dir = pair(64, 48);
    for name in ["t.png", "t.jpg", "t.tif", "t.bmp", "t.pgm"] {
        let path = dir.path().join(name);
        texture(64, 48, 0).save(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        for part in [2, 3] {
            fs::write(&path, &bytes[..bytes.len() / part]).unwrap();
            refused(dir.path(), &format!("match {name} r.png -o m.pfm"), 1, &[name]);
        }
    }
    let path = dir.path().join("liar.png");
    let mut png = fs::read(dir.path().join("l.png")).unwrap();
    // IHDR's height.
    png[20..24].copy_from_slice(&4800u32.to_be_bytes());
    fs::write(&path, &png).unwrap();
    refused(dir.path(), "match liar.png r.png -o m.pfm", 1, &["liar.png", "cannot decode"]);
    image::Rgb32FImage::new(64, 48).save(dir.path().join("float.tif")).unwrap();
    refused(dir.path(), "match float.tif r.png -o m.pfm", 1, &["float.tif", "floating-point"]);
}

#[test]
fn small_images_and_wide_ranges_are_no_error() {
    let dir = tempfile::tempdir().unwrap();
    for width in 1..=8 {
        for height in 1..=8 {
            texture(width, height, 0).save(dir.path().join("l.png")).unwrap();
            texture(width, height, 1).save(dir.path().join("r.png")).unwrap();
            done(dir.path(), "match l.png r.png -o m.pfm --color --disparities 5 --backend reference --fill");
        }
    }
    // The last pair is 8 pixels wide.
    done(dir.path(), "match l.png r.png -o m.pfm --disparities 1024 --backend reference");
    done(dir.path(), "match l.png r.png -o m.pfm --disparities 300 --min-disparity -150 --backend reference --color");
    done(dir.path(), "demo --out out --size 1x1 --disparities 1 --backend reference");
    // All of it is occluded.
    let text = done(dir.path(), "demo --out out --size 1x1 --disparities 64 --backend reference");
    assert!(text.contains("no score: non-occluded pixels of the ground truth: 0"), "{text}");
    done(dir.path(), "bench --size 5x3 --disparities 9 --iterations 2 --backend reference");
}

#[test]
fn unreadable_paths() {
    let dir = pair(24, 16);
    fs::create_dir(dir.path().join("folder")).unwrap();
    refused(dir.path(), "match none.png r.png -o m.pfm", 1, &["none.png", "cannot read", "No such file"]);
    refused(dir.path(), "match l.png/x.png r.png -o m.pfm", 1, &["l.png/x.png", "cannot read"]);
    refused(dir.path(), "match folder r.png -o m.pfm", 1, &["folder", "it is a folder"]);
    refused(dir.path(), "eval --data none", 1, &["none", "cannot read"]);
    refused(dir.path(), "eval --data l.png", 1, &["l.png", "cannot read"]);
    refused(dir.path(), "eval --data folder", 1, &["folder", "no scene here"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("loop.png", dir.path().join("loop.png")).unwrap();
        refused(dir.path(), "match loop.png r.png -o m.pfm", 1, &["loop.png", "cannot read"]);
    }
}

#[test]
fn unwritable_paths() {
    let dir = pair(24, 16);
    fs::create_dir(dir.path().join("folder.pfm")).unwrap();
    let with = |output: &str| format!("match l.png r.png --disparities 16 --backend reference -o {output}");
    refused(dir.path(), &with("none/m.pfm"), 1, &["none/m.pfm", "there is no folder"]);
    refused(dir.path(), &with("l.png/m.pfm"), 1, &["l.png/m.pfm", "there is no folder"]);
    refused(dir.path(), &with("folder.pfm"), 1, &["folder.pfm", "it is a folder"]);
    refused(dir.path(), "demo --out l.png --size 8x8 --backend reference", 1, &["l.png", "cannot make the folder"]);
    #[cfg(target_os = "linux")]
    refused(dir.path(), &with("/proc/m.pfm"), 1, &["/proc/m.pfm", "cannot write"]);
    assert_eq!(files(dir.path()), ["folder.pfm", "l.png", "r.png"]);
}

#[test]
fn outputs_that_make_no_sense() {
    let dir = pair(24, 16);
    let with = |rest: &str| format!("match l.png r.png --disparities 16 --backend reference {rest}");
    for name in ["m.jpg", "m.txt", "m"] {
        refused(dir.path(), &with(&format!("-o {name}")), 2, &[name, ".pfm, .png, .tif or .tiff"]);
    }
    refused(dir.path(), &with("-o m.pfm --encoding kitti"), 2, &["m.pfm", "kitti", ".png"]);
    refused(dir.path(), &with("-o m.png --encoding pfm"), 2, &["m.png", ".pfm"]);
    refused(dir.path(), &with("-o m.png --color=m.png"), 2, &["m.png", "another name"]);
    refused(dir.path(), &with("-o m.pfm --color=c.xyz"), 2, &["c.xyz", ".png"]);
    let before = fs::read(dir.path().join("l.png")).unwrap();
    refused(dir.path(), &with("-o l.png"), 2, &["l.png", "an input"]);
    refused(dir.path(), &with("-o ./r.png"), 2, &["r.png", "an input"]);
    refused(dir.path(), &with("-o m.pfm --color=l.png"), 2, &["l.png", "an input"]);
    assert_eq!(fs::read(dir.path().join("l.png")).unwrap(), before);
    // Values that the encoding cannot hold: a negative range, and 3 pixels times 100.
    refused(dir.path(), &with("-o m.png --min-disparity -20"), 1, &["m.png", "kitti", "pixel ("]);
    refused(dir.path(), &with("-o m.png --encoding middlebury=100"), 1, &["m.png", "middlebury=100", "2.55"]);
    assert_eq!(files(dir.path()), ["l.png", "r.png"]);
}

#[test]
fn backends_that_are_not_here() {
    let dir = pair(24, 16);
    let info: serde_json::Value = serde_json::from_str(&done(dir.path(), "info --json")).unwrap();
    for backend in info["backends"].as_array().unwrap() {
        let name = backend["name"].as_str().unwrap();
        if backend["available"] == false {
            let reason = backend["reason"].as_str().unwrap();
            refused(dir.path(), &format!("match l.png r.png -o m.pfm --backend {name}"), 1, &[name, reason]);
        } else {
            done(dir.path(), &format!("match l.png r.png -o m.pfm --disparities 16 --backend {name}"));
        }
    }
}

/// A limit on the size of files fails the write in the middle, as a full disk does, and needs no mount.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_leaves_the_old_file() {
    let dir = pair(200, 160);
    // An unrelated right image: the map is noise, which no encoder packs below the limit.
    texture(200, 160, 7919).save(dir.path().join("r.png")).unwrap();
    for (name, flags) in [("m.pfm", ""), ("m.png", "--encoding raw16"), ("m.tif", ""), ("m.tif", "--color=c.png")] {
        let path = dir.path().join(name);
        fs::write(&path, "old").unwrap();
        // In units of 512 or 1024 bytes; the signal must not end the process before it can report.
        let script = format!(
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" match l.png r.png -o {name} -d 64 --lr-max-diff -1 --uniqueness 1 --backend reference {flags}"
        );
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_stereo")]).current_dir(dir.path());
        one_error(&shell.output().unwrap(), &script, 1, &[name, "cannot write", "File too large"]);
        assert_eq!(fs::read(&path).unwrap(), b"old", "{name}");
        fs::remove_file(&path).unwrap();
        assert_eq!(files(dir.path()), ["l.png", "r.png"], "no temporary file stays");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_that_is_full_or_closed() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let here = Path::new(".");
    for args in ["info", "info --json", "completions bash"] {
        let output = stereo(here, args).stdout(full()).output().unwrap();
        one_error(&output, args, 1, &["standard output", "No space left"]);
        // As `stereo … | head` when head has gone: nobody is left to tell, and nothing failed.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = stereo(here, args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), cli::text(&output.stderr).as_str()), (Some(0), ""), "stereo {args}");
    }
}

#[test]
fn raw_frames_of_impossible_sizes() {
    let dir = pair(24, 16);
    for size in ["0x0", "0x48", "32769x1", "99999999x99999999", "18446744073709551615x2"] {
        refused(dir.path(), &format!("stream - --size {size}"), 2, &["size = ", size, "32768"]);
    }
}

#[test]
fn flags_of_another_source() {
    let dir = pair(24, 16);
    for flag in ["size 2x2", "pixel-format gray", "layout top-bottom"] {
        let name = flag.split(' ').next().unwrap();
        refused(dir.path(), &format!("stream . --{flag}"), 2, &[name, "for raw frames only"]);
    }
    for flag in ["right r%d.png", "repeat 2"] {
        let name = flag.split(' ').next().unwrap();
        refused(dir.path(), &format!("stream - --size 2x2 --{flag}"), 2, &[name, "for image files only"]);
    }
}

#[test]
fn two_outputs_of_one_name() {
    let dir = pair(24, 16);
    fs::create_dir(dir.path().join("sub")).unwrap();
    for color in ["m.png", "./m.png", "sub/../m.png"] {
        refused(
            dir.path(),
            &format!("match l.png r.png -o m.png -d 8 --color={color}"),
            2,
            &["another name than the map"],
        );
    }
    assert_eq!(files(dir.path()), ["l.png", "r.png", "sub"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_an_end_is_not_read_for_ever() {
    let dir = pair(24, 16);
    refused(dir.path(), "match /dev/zero r.png -o m.pfm", 1, &["/dev/zero", "does not end"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_takes_nothing_is_no_failure() {
    let dir = pair(24, 16);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let status = stereo(dir.path(), "match l.png r.png -o m.pfm -d 8").stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
