//! `bundle`: the test and benchmark binaries, the command, the PTX and the data in one folder, for a bare GPU machine.

use crate::error::{Error, Result};
use crate::{ptx_file, workspace};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The bundle stays below this, so that it travels anywhere.
const MAX_BYTES: u64 = 64 << 20;

/// What of the data folder the tests read.
const DATA: [&str; 2] = ["middlebury", "libsgm"];

/// Pack the test and benchmark binaries, the `stereo` command, the PTX and the test data for a machine without Rust.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The folder is self-contained. On the GPU machine:
  bundle/run.sh            the GPU tests (names with `gpu` or `cuda`), none may be skipped
  bundle/run.sh --all      every bundled test (see --all-tests)
  bundle/run.sh vertical   tests whose names contain this
  bundle/run.sh --sanitize small matches under compute-sanitizer's tools
  bundle/bin/stereo bench --backend cuda --size 1920x1080 --disparities 128")]
pub struct Args {
    /// The folder to write; an older bundle there is replaced.
    #[arg(long, default_value = "bundle", value_name = "DIR")]
    out: PathBuf,
    /// Every test binary, not only those of the GPU: may exceed the size limit.
    #[arg(long)]
    all_tests: bool,
}

/// A test binary whose name has one of these tests a GPU; `bundle_run.sh` has the same list.
const GPU_NAMES: [&str; 2] = ["gpu", "cuda"];

/// Builds the bundle.
///
/// # Errors
/// A failed build, or a bundle above the size limit (it stays, for a look at what is large).
pub fn run(args: &Args) -> Result<()> {
    let out = workspace::root().join(&args.out);
    let mut tests = executables(&["test", "--package", "stereo-tests", "--tests", "--release", "--no-run"])?;
    if args.all_tests {
        tests.extend(executables(&["test", "--workspace", "--release", "--no-run"])?);
    } else {
        tests.retain(|name, _| GPU_NAMES.iter().any(|part| name.contains(part)));
    }
    let benches = executables(&["bench", "--package", "stereo-benches", "--no-run"])?;
    let commands = executables(&["build", "--package", "stereo-host", "--bins", "--release"])?;
    if out.join("run.sh").is_file() {
        fs::remove_dir_all(&out).map_err(Error::file(&out, "cannot replace"))?;
    }
    for (folder, programs) in [("tests", &tests), ("benches", &benches), ("bin", &commands)] {
        let folder = out.join(folder);
        create(&folder)?;
        for (name, program) in programs {
            let copy = folder.join(name);
            fs::copy(program, &copy).map_err(Error::file(&copy, "cannot write"))?;
            workspace::capture(workspace::command("strip").arg(&copy))?;
        }
    }
    copy_tree(&ptx_file::folder(), &out.join("ptx"))?;
    match workspace::data_dir() {
        Some(data) => DATA.iter().try_for_each(|name| copy_tree(&data.join(name), &out.join("data").join(name)))?,
        None => println!("without the test data: no ../shared/data and no STEREO_DATA_DIR"),
    }
    write_script(&out.join("run.sh"))?;
    let bytes = size(&out)?;
    println!(
        "{}: {} test binaries, {} benchmarks, {:.1} MiB",
        workspace::relative(&out),
        tests.len(),
        benches.len(),
        bytes as f64 / f64::from(1 << 20)
    );
    if bytes > MAX_BYTES {
        return Err(Error::Check(format!("the bundle has {bytes} bytes, the limit is {MAX_BYTES}")));
    }
    Ok(())
}

/// Builds, and returns the programs by a name that says what they are: `CRATE-TARGET`.
fn executables(arguments: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = workspace::cargo();
    command.args(arguments).arg("--message-format=json-render-diagnostics").stderr(std::process::Stdio::inherit());
    let text = workspace::capture(&mut command)?;
    Ok(text.lines().filter_map(executable).collect())
}

/// A program's name and path, from one of cargo's messages about what it built.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?;
    let target = message.get("target")?;
    let name = target.get("name")?.as_str()?.replace('-', "_");
    let kind = target.get("kind")?.get(0)?.as_str()?;
    let test = message.get("profile")?.get("test")?.as_bool()?;
    // A crate's own tests carry the crate's name; say which of its parts they are from.
    let name = if test && kind != "test" && kind != "bench" { format!("{name}-{kind}") } else { name };
    Some((name, PathBuf::from(path)))
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::file(folder, "cannot create"))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = fs::read_dir(folder).and_then(|list| list.map(|entry| Ok(entry?.path())).collect());
    list.map_err(Error::file(folder, "cannot list"))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    create(to)?;
    for path in entries(from)? {
        let copy = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_tree(&path, &copy)?;
        } else {
            fs::copy(&path, &copy).map_err(Error::file(&copy, "cannot write"))?;
        }
    }
    Ok(())
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for path in entries(folder)? {
        let file = fs::metadata(&path).map_err(Error::file(&path, "cannot read"))?;
        bytes += if file.is_dir() { size(&path)? } else { file.len() };
    }
    Ok(bytes)
}

fn write_script(path: &Path) -> Result<()> {
    fs::write(path, include_str!("bundle_run.sh")).map_err(Error::file(path, "cannot write"))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, executable).map_err(Error::file(path, "cannot make executable"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_are_taken_from_cargos_messages() {
        let library = r#"{"reason":"compiler-artifact","target":{"name":"stereo_host","kind":["lib"]},"profile":{"test":false},"executable":null}"#;
        assert_eq!(executable(library), None);
        assert_eq!(executable("Compiling"), None);
        let unit = library.replace("null", r#""/t/stereo_host-1""#).replace("false", "true");
        assert_eq!(executable(&unit), Some(("stereo_host-lib".into(), "/t/stereo_host-1".into())));
        let integration = unit.replace(r#"["lib"]"#, r#"["test"]"#).replace("stereo_host\"", "gpu\"");
        assert_eq!(executable(&integration).map(|(name, _)| name), Some("gpu".into()));
    }
}
