//! What the tests of the command share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use image::{GrayImage, ImageBuffer, Luma};
use tempfile::TempDir;

/// The command under test; it runs in `folder`.
pub fn stereo(folder: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stereo"));
    command.current_dir(folder).args(args.split_whitespace()).env_remove("RUST_BACKTRACE");
    // On a machine with a GPU, what tests measure is not for the user's matches.
    command.env("STEREO_CACHE_DIR", std::env::temp_dir().join("stereo-tests"));
    command
}

/// Runs to a successful end; returns standard output.
#[track_caller]
pub fn done(folder: &Path, args: &str) -> String {
    let output = stereo(folder, args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "stereo {args}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs to an error: one line that starts with `error: ` and holds every word, nothing on standard output,
/// and exit code `code`. Returns the line.
#[track_caller]
pub fn refused(folder: &Path, args: &str, code: i32, words: &[&str]) -> String {
    one_error(&stereo(folder, args).output().unwrap(), args, code, words)
}

#[track_caller]
pub fn one_error(output: &Output, args: &str, code: i32, words: &[&str]) -> String {
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "stereo {args}: {line}");
    assert!(line.starts_with("error: ") && line.ends_with('\n'), "stereo {args}: {line:?}");
    assert_eq!(line.lines().count(), 1, "stereo {args}: {line}");
    for word in words {
        assert!(line.contains(word), "stereo {args}: {word:?} is not in: {line}");
    }
    assert!(output.stdout.is_empty(), "stereo {args}: {}", text(&output.stdout));
    line
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with `l.png` and `r.png`: the same texture, shifted by 3 pixels.
pub fn pair(width: u32, height: u32) -> TempDir {
    let dir = TempDir::new().unwrap();
    texture(width, height, 0).save(dir.path().join("l.png")).unwrap();
    texture(width, height, 3).save(dir.path().join("r.png")).unwrap();
    dir
}

pub fn texture(width: u32, height: u32, shift: u32) -> GrayImage {
    GrayImage::from_fn(width, height, |x, y| Luma([texel(x + shift, y)]))
}

pub fn texture16(width: u32, height: u32, shift: u32) -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_fn(width, height, |x, y| Luma([u16::from(texel(x + shift, y)) * 257]))
}

fn texel(x: u32, y: u32) -> u8 {
    (x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77)).wrapping_mul(0xc2b2_ae3d).to_be_bytes()[0]
}

/// The files in a folder, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The shared data; `None`, said plainly, where it is not there.
pub fn shared_data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if data.is_dir() {
        return Some(data);
    }
    eprintln!("skipped: there is no {}", data.display());
    None
}
