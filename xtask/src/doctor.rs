//! `doctor`: what this machine lacks for the project's chores, and how to get it.

use crate::cuda_tools::CudaTools;
use crate::device_toolchain::DeviceToolchain;
use crate::error::{Error, Result};
use crate::ptx_file::{Arch, Stamp};
use crate::{rust_cuda, workspace};
use std::collections::BTreeSet;
use stereo_host::Backend;

/// Say what is missing for the device build, the GPU and the tests, and how to get it.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints one entry per thing; nothing that is missing is an error.
pub fn run(_: &Args) -> Result<()> {
    let rustc = workspace::capture(workspace::command("rustc").arg("--version"));
    say("host compiler", rustc.map(|text| text.trim().to_owned()), "");
    say("stable compiler", stable(), "without it the check that the host crates build on stable is skipped");
    say("device compiler", DeviceToolchain::find(None).map(|found| found.to_string()), "");
    say("assembler", CudaTools::find().and_then(|tools| tools.version()), "");
    say("rust-cuda", rust_cuda::state(), "only `build-ptx --codegen rust-cuda` needs it");
    say("committed PTX", committed_ptx(), "run `cargo xtask build-ptx`");
    say("GPU", gpu(), "without it the GPU tests are skipped; everything else, the emulator too, works");
    let data = workspace::data_dir().ok_or("no ../shared/data and no STEREO_DATA_DIR");
    say("data folder", data.map(|dir| dir.display().to_string()), "without it the tests on real scenes are skipped");
    Ok(())
}

fn say<E: std::fmt::Display>(what: &str, state: Result<String, E>, advice: &str) {
    match state {
        Ok(text) => println!("ok       {what}: {text}"),
        Err(error) => {
            println!("missing  {what}: {}", error.to_string().replace('\n', "\n         "));
            if !advice.is_empty() {
                println!("         {advice}");
            }
        }
    }
}

fn stable() -> Result<String> {
    let text = workspace::capture(workspace::stable_cargo().arg("--version"))?;
    Ok(text.trim().to_owned())
}

fn committed_ptx() -> Result<String> {
    let mut compilers = BTreeSet::new();
    for arch in Arch::COMMITTED {
        let path = arch.path();
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path, "cannot read"))?;
        let stamp = Stamp::read(&path, &text)?;
        if let Some(source) = stamp.changed_sources().first() {
            return Err(Error::Check(format!("{} is older than {source}", workspace::relative(&path))));
        }
        compilers.insert(stamp.compiler);
    }
    Ok(format!("up to date, built by {}", Vec::from_iter(compilers).join(" and ")))
}

fn gpu() -> Result<String> {
    Backend::Cuda.availability()?;
    Ok("the CUDA backend is available; `stereo info` says which device".into())
}
