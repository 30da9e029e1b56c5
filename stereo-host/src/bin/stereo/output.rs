//! Standard output, standard error and progress.

use std::{
    io::{IsTerminal, Write},
    path::Path,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Serialize, Serializer};
use stereo_host::{
    DeviceCode, Error, Params, Report, Result, StageReport,
    eval::{Score, THRESHOLDS},
};
use tracing::level_filters::LevelFilter;

/// Logs go to standard error: results stay alone on standard output.
pub fn start_logging(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::INFO,
        (false, 1) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(level)
        .with_target(false)
        .without_time()
        // A message that cannot be written would otherwise be reported by a panicking `eprintln!`.
        .log_internal_errors(false)
        .init();
}

/// One line; a closed standard error is no reason to stop.
pub fn print_error(error: &Error) {
    let _ = writeln!(std::io::stderr(), "error: {error}");
}

/// Writes to standard output. `println!` would panic when the reader has gone.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| Error::File {
        path: "standard output".into(),
        action: "cannot write",
        source,
    })
}

/// A file's name in a report: JSON is Unicode, names need not be.
pub struct Lossy<'a>(pub &'a Path);

impl Serialize for Lossy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

/// Writes a report for machines to standard output.
pub fn print_json(report: &impl Serialize) -> Result<()> {
    // Maps with string keys and finite numbers only: nothing here can fail to serialise.
    let text = serde_json::to_string_pretty(report).expect("reports are serialisable");
    print(&(text + "\n"))
}

/// The stages and their times as a table.
pub fn stage_table(report: &Report) -> String {
    const LONGEST_SUM: usize = "on the device".len();
    let width = |of: fn(&StageReport) -> usize| report.stages.iter().map(of).max().unwrap_or(0);
    let (stage, variant) =
        (width(|s| s.stage.chars().count()).max(LONGEST_SUM), width(|s| s.describe().chars().count()));
    let mut table = String::new();
    for s in &report.stages {
        table += &format!("{:stage$}  {:variant$}  {:9.3} ms\n", s.stage, s.describe(), s.ms);
    }
    if let Some(ms) = report.device_ms {
        table += &format!("{:stage$}  {:variant$}  {ms:9.3} ms\n", "on the device", "");
    }
    table + &format!("{:stage$}  {:variant$}  {:9.3} ms\n", "total", "", report.total_ms)
}

/// A line on the PTX of a match on a GPU; nothing elsewhere.
pub fn code_line(code: Option<&DeviceCode>) -> String {
    code.map_or_else(String::new, |code| format!("GPU code: {code}\n"))
}

/// Scores in per cent, one scene a row.
pub fn score_table(rows: &[(String, Score)]) -> String {
    let name = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let heading: String = THRESHOLDS.iter().map(|t| format!("{:>7}", format!("bad-{t}"))).collect();
    let mut table = format!("{:name$}  {:>28}   {:>28}\n", "", "dense, %", "given, %");
    table += &format!("{:name$}  {heading}   {heading}  density   error\n", "");
    for (scene, score) in rows {
        let per_cent = |shares: [f64; THRESHOLDS.len()]| -> String {
            shares.iter().map(|share| format!("{:7.2}", 100.0 * share)).collect()
        };
        table += &format!(
            "{scene:name$}  {}   {}  {:7.2} {:7.3}\n",
            per_cent(score.dense_bad),
            per_cent(score.given_bad),
            100.0 * score.density,
            score.average_error
        );
    }
    table
}

/// The disparities that a map with these parameters can hold: what the colours of a preview span.
pub fn range(params: &Params) -> std::ops::RangeInclusive<f64> {
    let lowest = f64::from(params.min_disparity);
    lowest..=lowest + f64::from(params.disparities) - 1.0
}

/// A bar over `steps`, shown where standard error is a terminal and `--quiet` is off.
pub fn progress(steps: u64, what: &'static str) -> ProgressBar {
    // The template is a constant that the library knows how to read.
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}").expect("a valid template");
    ProgressBar::with_draw_target(Some(steps), target()).with_style(style).with_message(what)
}

/// A sign of life for work of unknown length.
pub fn spinner(what: String) -> ProgressBar {
    const TICK: Duration = Duration::from_millis(200);
    let spinner = ProgressBar::with_draw_target(None, target()).with_message(what);
    spinner.enable_steady_tick(TICK);
    spinner
}

fn target() -> ProgressDrawTarget {
    if tracing::enabled!(tracing::Level::INFO) { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}
