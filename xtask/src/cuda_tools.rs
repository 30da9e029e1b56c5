//! Finds and runs NVIDIA's assembler and disassembler.

use crate::error::{Error, Result};
use crate::workspace;
use std::path::{Path, PathBuf};

/// Names the assembler, before anything else is looked at. The disassembler is expected beside it.
pub const PTXAS_VARIABLE: &str = "STEREO_PTXAS";

/// Where a virtual environment in the workspace's root has the tools, below `lib/python*/site-packages`.
const IN_PACKAGES: &str = "nvidia/cu13/bin";

/// How to get the tools without a CUDA toolkit.
pub const ADVICE: &str = "\
install a CUDA toolkit, or in the workspace's root:
  python3 -m venv .venv && .venv/bin/pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm
or name the assembler: STEREO_PTXAS=PATH";

/// The two programs.
#[derive(Debug)]
pub struct CudaTools {
    /// Assembles PTX to machine code.
    pub ptxas: PathBuf,
    /// Disassembles machine code.
    pub nvdisasm: PathBuf,
}

impl CudaTools {
    /// `STEREO_PTXAS`, then `PATH`, `CUDA_PATH` and `CUDA_HOME`, then `.venv` in the workspace's root.
    ///
    /// # Errors
    /// [`Error::Missing`] with the places that were looked at.
    pub fn find() -> Result<Self> {
        Ok(Self { ptxas: find("ptxas")?, nvdisasm: find("nvdisasm")? })
    }

    /// The assembler's version line.
    pub fn version(&self) -> Result<String> {
        let text = workspace::capture(workspace::command(&self.ptxas).arg("--version"))?;
        Ok(text.lines().find(|line| line.contains("release")).unwrap_or(text.trim()).to_owned())
    }

    /// Assembles a PTX file for a compute capability and returns what the assembler reports.
    pub fn assemble(&self, ptx: &Path, compute_capability: u32, cubin: &Path) -> Result<String> {
        let mut command = workspace::command(&self.ptxas);
        command.arg("-v").arg(format!("-arch=sm_{compute_capability}")).arg("-o").arg(cubin).arg(ptx);
        let (stdout, stderr) = workspace::capture_both(&mut command)?;
        Ok(stderr + &stdout)
    }

    /// Disassembles machine code.
    pub fn disassemble(&self, cubin: &Path) -> Result<String> {
        workspace::capture(workspace::command(&self.nvdisasm).arg("-c").arg(cubin))
    }
}

fn find(name: &str) -> Result<PathBuf> {
    if let Some(ptxas) = std::env::var_os(PTXAS_VARIABLE).map(PathBuf::from) {
        let tool = ptxas.with_file_name(name);
        return if tool.is_file() { Ok(tool) } else { Err(missing(name, &[tool])) };
    }
    let mut folders: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    folders
        .extend(["CUDA_PATH", "CUDA_HOME"].iter().filter_map(std::env::var_os).map(|dir| Path::new(&dir).join("bin")));
    let libraries = std::fs::read_dir(workspace::root().join(".venv/lib"));
    let pythons = libraries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    folders.extend(pythons.map(|python| python.join("site-packages").join(IN_PACKAGES)));
    let tool = folders.iter().map(|folder| folder.join(name)).find(|tool| tool.is_file());
    tool.ok_or_else(|| missing(name, &[]))
}

fn missing(name: &str, looked_at: &[PathBuf]) -> Error {
    let places = match looked_at {
        [] => format!("looked in {PTXAS_VARIABLE}, PATH, CUDA_PATH, CUDA_HOME and .venv\n"),
        paths => paths.iter().map(|path| format!("there is no {}\n", path.display())).collect(),
    };
    Error::Missing { what: name.to_owned(), advice: places + ADVICE }
}
