//! Which PTX a GPU runs: where it comes from, and what a report says of it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer};

/// The environment variable that names a folder whose PTX replaces the embedded one.
pub const PTX_DIR_VARIABLE: &str = "STEREO_PTX_DIR";

/// Where a GPU's PTX comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PtxSource {
    /// The folder that `STEREO_PTX_DIR` names, else the embedded PTX.
    #[default]
    Environment,
    /// The PTX that was built into this crate.
    Embedded,
    /// The `stereo_sm*.ptx` files of a folder, for kernels of another compiler or without a rebuild of this crate.
    Folder(#[serde(serialize_with = "lossy")] PathBuf),
}

impl PtxSource {
    /// What [`PtxSource::Environment`] stands for at the moment; any other source is itself.
    pub fn resolve(&self) -> Self {
        match (self, std::env::var_os(PTX_DIR_VARIABLE)) {
            (Self::Environment, Some(folder)) if !folder.is_empty() => Self::Folder(folder.into()),
            (Self::Environment, _) => Self::Embedded,
            (named, _) => named.clone(),
        }
    }
}

impl fmt::Display for PtxSource {
    /// Says of a folder who named it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.resolve()) {
            (Self::Environment, Self::Folder(folder)) => write!(f, "{PTX_DIR_VARIABLE} = {}", folder.display()),
            (_, Self::Folder(folder)) => write!(f, "the given PTX folder {}", folder.display()),
            _ => f.write_str("embedded"),
        }
    }
}

/// The PTX that a GPU runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceCode {
    /// The lowest architecture that runs it: 90 for `sm_90`.
    pub arch: u32,
    /// The version of the PTX instruction set that it is written in; as text, `8.3`, in a report for machines.
    #[serde(serialize_with = "dotted")]
    pub isa: (u32, u32),
    /// Who compiled it, in the words of its stamp; `None` without one.
    pub compiler: Option<String>,
    /// Where it comes from, never [`PtxSource::Environment`].
    pub source: PtxSource,
}

impl DeviceCode {
    /// The compiler, for people.
    pub fn compiler_name(&self) -> &str {
        self.compiler.as_deref().unwrap_or("unknown compiler")
    }
}

impl fmt::Display for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arch, isa: (major, minor), source, .. } = self;
        write!(f, "sm_{arch}, PTX {major}.{minor}, ")?;
        match source {
            PtxSource::Folder(folder) => write!(f, "{}", folder.display())?,
            embedded => write!(f, "{embedded}")?,
        }
        write!(f, ", {}", self.compiler_name())
    }
}

/// One of the images that a [`PtxSource`] has to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PtxImage {
    /// What it is.
    #[serde(flatten)]
    pub code: DeviceCode,
    /// The first CUDA version whose driver takes it; as text in a report for machines.
    #[serde(serialize_with = "dotted")]
    pub needed_cuda: (u32, u32),
    /// The GPUs of this machine, by the driver's numbers, that run this image rather than another.
    pub devices: Vec<u32>,
}

/// Names of folders need not be Unicode, JSON is.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn dotted<S: Serializer>((major, minor): &(u32, u32), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn device_code_for_people_and_machines() {
        let code = DeviceCode {
            arch: 90,
            isa: (8, 3),
            compiler: Some("rustc 1.96.0, LLVM 22.1.8".to_owned()),
            source: PtxSource::Embedded,
        };
        assert_eq!(code.to_string(), "sm_90, PTX 8.3, embedded, rustc 1.96.0, LLVM 22.1.8");
        let foreign = DeviceCode { compiler: None, source: PtxSource::Folder("a/b".into()), ..code.clone() };
        assert_eq!(foreign.to_string(), "sm_90, PTX 8.3, a/b, unknown compiler");
        assert_eq!(
            serde_json::to_value(&code).unwrap(),
            json!({ "arch": 90, "isa": "8.3", "compiler": "rustc 1.96.0, LLVM 22.1.8", "source": "embedded" })
        );
        let image = PtxImage { code: foreign, needed_cuda: (12, 3), devices: vec![0] };
        assert_eq!(
            serde_json::to_value(&image).unwrap(),
            json!({
                "arch": 90, "isa": "8.3", "compiler": null, "source": { "folder": "a/b" }, "needed_cuda": "12.3",
                "devices": [0]
            })
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_need_not_be_unicode() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        let source = PtxSource::Folder(OsStr::from_bytes(b"p\xff").into());
        assert_eq!(serde_json::to_value(source).unwrap(), json!({ "folder": "p\u{fffd}" }));
    }
}
