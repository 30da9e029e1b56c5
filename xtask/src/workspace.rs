//! Where things are, and how programs are run.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The folder for build outputs.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that runs this chore.
pub fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The stable toolchain's cargo, where rustup has one; it never installs one.
pub fn stable_cargo() -> Command {
    let mut command = command("rustup");
    command.args(["run", "stable", "cargo"]).env("RUSTUP_AUTO_INSTALL", "0").env_remove("RUSTC").env_remove("RUSTDOC");
    command
}

/// The folder with the eight scenes and libSGM's outputs, found as the tests find it.
pub fn data_dir() -> Option<PathBuf> {
    let folder = std::env::var_os("STEREO_DATA_DIR").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    folder.join("middlebury").is_dir().then_some(folder)
}

/// A command that runs in the workspace's root.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command and returns what it wrote; a failure carries all of it.
pub fn capture(command: &mut Command) -> Result<String> {
    capture_both(command).map(|(stdout, _)| stdout)
}

/// As [`capture`], with standard error beside standard output.
pub fn capture_both(command: &mut Command) -> Result<(String, String)> {
    let output = output(command)?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if !output.status.success() {
        return Err(Error::Failed { program: display(command), status: output.status, output: stdout + &stderr });
    }
    Ok((stdout, stderr))
}

/// Runs a command to its end, whatever its status.
pub fn output(command: &mut Command) -> Result<Output> {
    command.output().map_err(|source| Error::Start { program: display(command), source })
}

/// The command as it would be typed.
pub fn display(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// A path as seen from the workspace's root, for people and for stamps.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
