//! `stereo stream` through the real command.

mod cli;

use std::{fs, io::Write, path::Path, process::Stdio};

use cli::{done, refused, stereo, text, texture};
use serde_json::Value;
use tempfile::TempDir;

const SIZE: (u32, u32) = (48, 32);

/// A sequence of `count` pairs whose shift grows, in the folders `left` and `right`, and as raw frames.
fn sequence(count: u32) -> (TempDir, Vec<u8>) {
    let dir = TempDir::new().unwrap();
    let mut raw = Vec::new();
    for side in ["left", "right"] {
        fs::create_dir(dir.path().join(side)).unwrap();
    }
    for i in 0..count {
        let views = [texture(SIZE.0, SIZE.1, i), texture(SIZE.0, SIZE.1, i + 3)];
        for (view, side) in views.iter().zip(["left", "right"]) {
            view.save(dir.path().join(format!("{side}/f_{i:03}.png"))).unwrap();
        }
        for y in 0..SIZE.1 {
            for view in &views {
                raw.extend((0..SIZE.0).map(|x| view.get_pixel(x, y).0[0]));
            }
        }
    }
    (dir, raw)
}

#[test]
fn a_frame_of_another_size_is_named() {
    for algorithm in ["sgm", "masda"] {
        let (dir, _) = sequence(3);
        texture(SIZE.0 + 1, SIZE.1, 0).save(dir.path().join("right/f_002.png")).unwrap();
        let args = format!("stream . -d 16 --backend cpu --algorithm {algorithm} --out maps");
        refused(dir.path(), &args, 1, &["right/f_002.png", "49x32", "began with 48x32"]);
        assert_eq!(cli::files(&dir.path().join("maps")).len(), 2, "{algorithm}");
    }
}

#[test]
fn a_missing_file_does_not_shift_the_pairs() {
    let (dir, _) = sequence(4);
    fs::remove_file(dir.path().join("left/f_001.png")).unwrap();
    fs::remove_file(dir.path().join("right/f_002.png")).unwrap();
    refused(dir.path(), "stream . -d 16", 1, &["f_002.png has no partner", "f_001.png"]);
    // Names that tell the views apart: the numbers decide.
    for (old, new) in [("f_000", "left_000"), ("f_002", "left_001"), ("f_003", "left_003")] {
        let name = |stem: &str| dir.path().join(format!("left/{stem}.png"));
        fs::rename(name(old), name(new)).unwrap();
    }
    done(dir.path(), "stream . -d 16 --backend cpu");
}

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap()
}

fn maps(folder: &Path, count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|i| fs::read(folder.join(format!("{i:06}.pfm"))).unwrap()).collect()
}

#[test]
fn folders_patterns_and_raw_frames_give_the_maps_of_match() {
    for algorithm in ["sgm", "masda"] {
        let (dir, raw) = sequence(4);
        let flags = format!("-d 16 --backend cpu --algorithm {algorithm}");
        let report = json(&done(dir.path(), &format!("stream . --out a --json {flags}")));
        assert_eq!((&report["frames"], &report["dropped"]), (&4.into(), &0.into()));
        assert_eq!(report["backend"], "cpu");
        assert!(report["frames_per_second"].as_f64().unwrap() > 0.0);
        assert!(report["latency"]["p99_ms"].as_f64() >= report["latency"]["p50_ms"].as_f64());
        let streamed = maps(&dir.path().join("a"), 4);
        for (i, map) in streamed.iter().enumerate() {
            done(dir.path(), &format!("match left/f_{i:03}.png right/f_{i:03}.png -o one.pfm {flags}"));
            assert_eq!(&fs::read(dir.path().join("one.pfm")).unwrap(), map, "{algorithm}, frame {i}");
        }

        done(dir.path(), &format!("stream left/f_%03d.png --right right/f_%03d.png --start 1 --out b {flags}"));
        assert_eq!(maps(&dir.path().join("b"), 3), streamed[1..]);

        let mut child = stereo(dir.path(), &format!("stream - --size 48x32 --out c --json {flags}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&raw).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(json(&text(&output.stdout))["frames"], 4);
        assert_eq!(maps(&dir.path().join("c"), 4), streamed);
    }
}

#[test]
fn repeated_pinned_and_latest_only() {
    let (dir, _) = sequence(3);
    let flags = "-d 16 --backend cpu --algorithm masda --json";
    let report = json(&done(dir.path(), &format!("stream . --repeat 5 --pin --depth 1 {flags}")));
    assert_eq!((&report["frames"], &report["depth"]), (&15.into(), &1.into()));
    let report = json(&done(dir.path(), &format!("stream . --repeat 30 --latest {flags}")));
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(count("frames") + count("dropped"), 90);
    let people = done(dir.path(), "stream . -d 16 --backend cpu --timing");
    assert!(people.contains("frames/s") && people.contains("census") && people.contains("median"), "{people}");
}

#[test]
fn wrong_use_and_broken_sources_say_why() {
    let (dir, raw) = sequence(2);
    refused(dir.path(), "stream -", 2, &["size", "WxH"]);
    refused(dir.path(), "stream left.png --right r_%d.png", 2, &["left.png", "left_%04d.png"]);
    refused(dir.path(), "stream x_%d.png --right y_%d.png", 1, &["x_0.png", "y_0.png"]);
    refused(dir.path(), "stream left", 1, &["left", "image_0 and image_1"]);
    refused(dir.path(), "stream . --depth 0", 2, &["depth = 0", "1 to 1024"]);
    fs::remove_file(dir.path().join("right/f_001.png")).unwrap();
    refused(dir.path(), "stream .", 1, &["2 left images", "1 right"]);

    // The last frame is cut: the maps before it are there, the error names what is missing.
    let mut child = stereo(dir.path(), "stream - --size 48x32 -d 16 --backend cpu --out maps")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&raw[..raw.len() - 5]).unwrap();
    let output = child.wait_with_output().unwrap();
    cli::one_error(&output, "stream -", 1, &["frame 1", "of 3072 bytes"]);
    assert_eq!(maps(&dir.path().join("maps"), 1).len(), 1);
}
