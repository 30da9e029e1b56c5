//! `test`: every check the project has, in one command, with a plain account of what could not run.

use crate::error::{Error, Result};
use crate::ptx_file::Arch;
use crate::{build_ptx, ptx_report, workspace};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

/// Run every check: formatting, lints, documentation, all tests, the stable toolchain, the committed PTX.
///
/// What a machine lacks (a GPU, a device compiler, an assembler, a stable toolchain, the data folder) is named and
/// counted as skipped; `cargo xtask doctor` says how to get it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask test         before a commit
  cargo xtask test --ci    a device compiler and an assembler must be there")]
pub struct Args {
    /// Fail where a check is skipped for want of a tool that a package manager can install.
    #[arg(long)]
    ci: bool,
}

/// What people build who use the library; the device build, the chores and the benchmarks may need nightly.
const HOST_PACKAGES: [&str; 3] = ["stereo-host", "stereo-kernels", "stereo-tests"];

/// How a step ended, with a note for people.
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

/// One line of the summary.
struct Step {
    name: &'static str,
    time: Duration,
    outcome: Outcome,
}

/// What the tests of one or more programs said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// How many tests said that they could not do their work, by reason. The harness counts them as passed.
    skipped: BTreeMap<String, usize>,
}

/// Runs everything; a failed step does not stop the others.
///
/// # Errors
/// [`Error::Check`] naming the failed steps.
pub fn run(args: &Args) -> Result<()> {
    let mut tests = Tally::default();
    let steps = [
        step("format", || component("fmt", "rustfmt", args.ci, &["fmt", "--all", "--check"])),
        step("lints", || {
            component("clippy", "clippy", args.ci, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        // The device layer over `cuda_std`: nothing here compiles it for a GPU, but its types are checked.
        step("rust-cuda layer", || {
            let arguments =
                ["clippy", "--package", "stereo-kernels", "--features", "rust-cuda", "--", "-D", "warnings"];
            component("clippy", "clippy", args.ci, &arguments)
        }),
        step("documentation", || {
            let mut command = workspace::cargo();
            status(command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
        }),
        step("tests", || {
            let mut command = workspace::cargo();
            run_tests(command.args(["test", "--workspace", "--no-fail-fast"]), &mut tests)
        }),
        step("stable toolchain", stable),
        step("committed PTX", || Ok(optional(build_ptx::check(&Arch::COMMITTED, None), args.ci))),
        step("PTX report", || Ok(optional(ptx_report::check(), args.ci))),
    ];
    summarize(&steps, &tests)
}

fn step(name: &'static str, work: impl FnOnce() -> Result<Outcome>) -> Step {
    eprintln!("\n== {name}");
    let start = Instant::now();
    let outcome = work().unwrap_or_else(|error| Outcome::Failed(error.to_string()));
    let time = start.elapsed();
    if let Outcome::Failed(reason) = &outcome {
        eprintln!("{reason}");
    }
    eprintln!("== {name}: {} in {:.1} s", outcome.word(), time.as_secs_f64());
    Step { name, time, outcome }
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }

    /// The first line of its note.
    fn note(&self) -> &str {
        let (Self::Passed(note) | Self::Failed(note) | Self::Skipped(note)) = self;
        note.lines().next().unwrap_or_default()
    }
}

/// A step that needs an optional tool: its absence is a skip, or a failure where tools are mandatory.
fn optional(result: Result<String>, mandatory: bool) -> Outcome {
    match result {
        Ok(note) => Outcome::Passed(note),
        Err(error @ Error::Missing { .. }) if !mandatory => Outcome::Skipped(error.to_string()),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Runs a cargo command that comes as a component of the toolchain.
fn component(tool: &str, component: &str, mandatory: bool, arguments: &[&str]) -> Result<Outcome> {
    let there = workspace::output(workspace::cargo().args([tool, "--version"]))?.status.success();
    if !there {
        let advice = format!("rustup component add {component}");
        let missing = Error::Missing { what: format!("cargo {tool}"), advice };
        return Ok(optional(Err(missing), mandatory));
    }
    status(workspace::cargo().args(arguments))
}

fn status(command: &mut Command) -> Result<Outcome> {
    let status = command.status().map_err(|source| Error::Start { program: workspace::display(command), source })?;
    Ok(if status.success() {
        Outcome::Passed(String::new())
    } else {
        Outcome::Failed(format!("{} ended with {status}", workspace::display(command)))
    })
}

/// The host crates and all their tests compile on stable, the library also without CUDA; a folder of their own keeps both toolchains' builds warm.
/// What the tests say there is what they said before: only the compiler is another one.
fn stable() -> Result<Outcome> {
    let version = workspace::output(workspace::stable_cargo().arg("--version"));
    let Some(version) = version.ok().filter(|output| output.status.success()) else {
        return Ok(Outcome::Skipped("no stable toolchain: rustup toolchain install stable".into()));
    };
    let mut command = workspace::stable_cargo();
    command.args(["check", "--all-targets", "--target-dir"]).arg(workspace::target_dir().join("stable"));
    command.args(HOST_PACKAGES.iter().flat_map(|package| ["--package", package]));
    // The library without the CUDA backend, as a crate elsewhere takes it that has no CUDA_LIBRARY_PATH.
    let mut without_cuda = workspace::stable_cargo();
    without_cuda.args(["check", "--package", "stereo-host", "--no-default-features", "--target-dir"]);
    without_cuda.arg(workspace::target_dir().join("stable"));
    for command in [&mut command, &mut without_cuda] {
        match status(command)? {
            Outcome::Passed(_) => {}
            other => return Ok(other),
        }
    }
    Ok(Outcome::Passed(String::from_utf8_lossy(&version.stdout).trim().to_owned()))
}

/// Runs `cargo test`, shows what matters of its output while it runs, and counts.
fn run_tests(command: &mut Command, tally: &mut Tally) -> Result<Outcome> {
    command.args(["--", "--show-output"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = |source| Error::Start { program: "cargo test".into(), source };
    let mut child = command.spawn().map_err(start)?;
    let (sender, lines) = mpsc::channel();
    forward(child.stdout.take(), false, sender.clone());
    forward(child.stderr.take(), true, sender);
    let mut shown_by_passing_tests = false;
    for (from_stderr, line) in lines {
        tally.read(&line);
        if from_stderr {
            eprintln!("{line}");
            continue;
        }
        match line.as_str() {
            "successes:" => shown_by_passing_tests = true,
            "failures:" => shown_by_passing_tests = false,
            line if line.starts_with("test result:") => shown_by_passing_tests = false,
            _ => {}
        }
        let one_passed = line.starts_with("test ") && line.ends_with(" ok");
        if !shown_by_passing_tests && !one_passed && !line.is_empty() {
            println!("{line}");
        }
    }
    let status = child.wait().map_err(start)?;
    let note = format!("{} tests", tally.passed + tally.failed);
    Ok(match (status.success(), tally.passed) {
        (true, 0) => Outcome::Failed("no test ran".into()),
        (true, _) => Outcome::Passed(note),
        (false, _) => Outcome::Failed(format!("{} ended with {status}", workspace::display(command))),
    })
}

/// Sends a stream's lines from a thread of its own, so that neither pipe can fill up.
fn forward(stream: Option<impl Read + Send + 'static>, from_stderr: bool, sender: Sender<(bool, String)>) {
    let Some(stream) = stream else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(|line| line.ok()) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send((from_stderr, line)).is_err() {
                break;
            }
        }
    });
}

impl Tally {
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result:") {
            let words: Vec<&str> = counts.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                let counter = match pair[1] {
                    "passed" => &mut self.passed,
                    "failed" => &mut self.failed,
                    "ignored" => &mut self.ignored,
                    _ => continue,
                };
                *counter += pair[0].parse().unwrap_or(0);
            }
        } else if let Some(reason) = skip_reason(line) {
            *self.skipped.entry(reason.to_owned()).or_default() += 1;
        }
    }

    fn skips(&self) -> usize {
        self.skipped.values().sum::<usize>() + self.ignored
    }

    fn line(&self) -> String {
        let skips = self.skipped.values().sum::<usize>();
        format!("{} passed, {} failed, {} skipped", self.passed.saturating_sub(skips), self.failed, self.skips())
    }
}

/// The reason in a test's line `skipped: [TEST: ]REASON`.
fn skip_reason(line: &str) -> Option<&str> {
    const MARK: &str = "skipped: ";
    let line = line.trim_start();
    let (mark, reason) = line.split_at_checked(MARK.len())?;
    if !mark.eq_ignore_ascii_case(MARK) {
        return None;
    }
    Some(match reason.split_once(": ") {
        Some((test, reason)) if !test.contains(' ') => reason,
        _ => reason,
    })
}

fn summarize(steps: &[Step], tests: &Tally) -> Result<()> {
    println!("\nsummary");
    for step in steps {
        let (word, note) = (step.outcome.word(), step.outcome.note());
        println!("  {:17} {word:8}{:7.1} s  {note}", step.name, step.time.as_secs_f64());
    }
    for (reason, count) in &tests.skipped {
        println!("{count} tests could not run: {reason}");
    }
    if tests.ignored > 0 {
        println!("{} tests are marked as ignored", tests.ignored);
    }
    println!("tests: {}", tests.line());
    let count = |word| steps.iter().filter(|step| step.outcome.word() == word).count();
    let (passed, failed, skipped) = (count("passed"), count("FAILED"), count("skipped"));
    println!("steps: {passed} passed, {failed} failed, {skipped} skipped");
    let names: Vec<&str> =
        steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).map(|step| step.name).collect();
    if names.is_empty() { Ok(()) } else { Err(Error::Check(format!("failed: {}", names.join(", ")))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_not_counted_as_passed() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "skipped: cuda_sum: no CUDA device (CUDA: no driver)",
            "SKIPPED: no CUDA device (CUDA: no driver)",
            "skipped nothing",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.skipped.into_iter().collect::<Vec<_>>(), [("no CUDA device (CUDA: no driver)".into(), 2)]);
        let tally = Tally { passed: 15, failed: 2, ignored: 1, skipped: [("x".into(), 2)].into() };
        assert_eq!(tally.line(), "13 passed, 2 failed, 3 skipped");
    }

    #[test]
    fn a_missing_tool_is_a_skip_or_where_mandatory_a_failure() {
        let missing = || Err(Error::Missing { what: "ptxas".into(), advice: String::new() });
        assert!(matches!(optional(missing(), false), Outcome::Skipped(note) if note.contains("ptxas")));
        assert!(matches!(optional(missing(), true), Outcome::Failed(_)));
        assert!(matches!(optional(Err(Error::Check("stale".into())), false), Outcome::Failed(_)));
    }
}
