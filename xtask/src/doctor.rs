//! `doctor`: what this machine lacks for the project's chores, and how to get it.

use crate::error::Result;
use crate::workspace;

/// Say what is missing for the device build, the GPU and the tests, and how to get it.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints one line per thing.
pub fn run(_: &Args) -> Result<()> {
    let data = workspace::root().join("../shared/data");
    let state = if data.is_dir() { "found" } else { "missing: tests on real scenes are skipped" };
    println!("data folder  {state}");
    let rustc = workspace::capture(workspace::command("rustc").arg("--version"))?;
    println!("compiler     {}", rustc.trim());
    Ok(())
}
