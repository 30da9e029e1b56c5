//! Ctrl-C: exit code 130, and no file, whole or temporary, that was not there before.
#![cfg(unix)]

mod cli;

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Starts the command, sends SIGINT once its first line is on standard error, and checks its end.
fn interrupted(folder: &std::path::Path, args: &str) {
    let mut child =
        cli::stereo(folder, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    log.read_line(&mut first).unwrap();
    assert!(first.contains("DEBUG"), "stereo {args}: {first}");
    let start = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(status.code(), Some(130), "stereo {args}: {rest}");
    assert_eq!(rest.lines().filter(|line| *line == "error: interrupted").count(), 1, "stereo {args}: {rest}");
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?} to stop", start.elapsed());
}

#[test]
fn a_long_match_stops_at_once_and_leaves_nothing() {
    let dir = cli::pair(1500, 1000);
    interrupted(dir.path(), "match l.png r.png -o m.pfm -d 256 --backend reference -v --color");
    assert_eq!(cli::files(dir.path()), ["l.png", "r.png"]);
}

#[test]
fn a_benchmark_stops_between_runs() {
    let dir = cli::pair(8, 8);
    interrupted(dir.path(), "bench --size 64x48 -d 16 --backend reference --iterations 1000000 -v");
}
