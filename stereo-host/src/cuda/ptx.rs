//! The device code: which PTX there is and which of it a device and its driver take.

use std::{
    fs,
    io::Read as _,
    path::Path,
    sync::{Arc, OnceLock},
};

use flate2::read::ZlibDecoder;

use super::device::{CudaVersion, Driver};
use crate::{DeviceCode, Error, PtxImage, PtxSource, Result};

/// The PTX that this crate carries: the architecture (90 for `sm_90`) and the text, zlib-packed by the
/// build script, lowest first. `cargo xtask build-ptx` writes the files.
const EMBEDDED: &[(u32, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded_ptx.rs"));

/// [`EMBEDDED`], unpacked once.
fn embedded() -> Result<&'static [Ptx]> {
    static IMAGES: OnceLock<Result<Vec<Ptx>, String>> = OnceLock::new();
    let unpack = |&(arch, packed): &(u32, &[u8])| {
        let mut text = String::new();
        ZlibDecoder::new(packed).read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ptx::parse(arch, text.into(), format!("embedded sm_{arch}")).map_err(|error| error.to_string())
    };
    let images = IMAGES.get_or_init(|| EMBEDDED.iter().map(unpack).collect());
    images.as_deref().map_err(|reason| Error::Format { path: "embedded PTX".into(), reason: reason.clone() })
}

impl PtxSource {
    /// All images of the source, lowest architecture first.
    ///
    /// # Errors
    /// [`Error::File`] when the folder or a file cannot be read, [`Error::Format`] for a file that is not PTX.
    pub fn images(&self) -> Result<Vec<Ptx>> {
        match (self, self.resolve()) {
            (Self::Environment, Self::Folder(folder)) => {
                read_folder(&folder, "cannot read the folder that STEREO_PTX_DIR names")
            }
            (_, Self::Folder(folder)) => read_folder(&folder, "cannot read the given PTX folder"),
            _ => Ok(embedded()?.to_vec()),
        }
    }

    /// All images of the source, lowest architecture first, and which of them the GPUs of this machine run.
    ///
    /// # Errors
    /// As [`PtxSource::images`].
    pub fn list(&self) -> Result<Vec<PtxImage>> {
        let images = self.images()?;
        let driver = Driver::get().ok();
        // What GPU `ordinal` runs, if it runs any.
        let arch = |driver: &Driver, ordinal| {
            let device = driver.device(Some(ordinal)).ok()?;
            best(&images, device.compute_capability, driver.version).ok().map(Ptx::arch)
        };
        let describe = |image: &Ptx| {
            let CudaVersion { major, minor } = image.needed_driver();
            let runs = |driver: &'static Driver| {
                let ordinals = driver.devices.iter().map(|device| device.ordinal);
                ordinals.filter(|&ordinal| arch(driver, ordinal) == Some(image.arch)).collect()
            };
            PtxImage {
                code: image.describe(self),
                needed_cuda: (major, minor),
                devices: driver.map(runs).unwrap_or_default(),
            }
        };
        Ok(images.iter().map(describe).collect())
    }

    /// The image for a device of compute capability `capability` under a driver of version `driver`:
    /// of those that both take, the one of the highest architecture. PTX runs on its own and on every
    /// later architecture.
    ///
    /// # Errors
    /// [`Error::Unavailable`] says what is too old or missing, and what a folder holds; also as [`PtxSource::images`].
    pub fn choose(&self, capability: (u32, u32), driver: CudaVersion) -> Result<Ptx> {
        let images = self.images()?;
        best(&images, capability, driver).cloned().map_err(|reason| unavailable(self.explain(reason, &images)))
    }

    /// Why nothing of `images` fits, with what there is to choose from in a folder.
    fn explain(&self, reason: String, images: &[Ptx]) -> String {
        if let Self::Embedded = self.resolve() {
            let none = "this build carries no GPU code: run `cargo xtask build-ptx` and build again";
            return if images.is_empty() { none.to_owned() } else { reason };
        }
        let held: Vec<_> =
            images.iter().map(|image| format!("sm_{} (CUDA {})", image.arch, image.needed_driver())).collect();
        let held = if held.is_empty() { "no stereo_sm*.ptx".to_owned() } else { held.join(", ") };
        format!("{reason}; {self} holds {held}")
    }
}

/// PTX for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    arch: u32,
    isa: (u32, u32),
    text: Arc<str>,
}

impl Ptx {
    /// Takes PTX for architecture `arch` (90 for `sm_90`). `origin` names it in errors.
    ///
    /// # Errors
    /// [`Error::Format`] when the text has no `.version` directive or contains a NUL.
    pub fn parse(arch: u32, text: Arc<str>, origin: impl AsRef<Path>) -> Result<Self> {
        let refuse = |reason: &str| Error::Format { path: origin.as_ref().to_owned(), reason: reason.to_owned() };
        if text.contains('\0') {
            return Err(refuse("not PTX: it contains a NUL character"));
        }
        let isa = isa_version(&text).ok_or_else(|| refuse("not PTX: no line `.version <major>.<minor>`"))?;
        Ok(Self { arch, isa, text })
    }

    /// The lowest architecture that runs it: 90 for `sm_90`.
    pub fn arch(&self) -> u32 {
        self.arch
    }

    /// The version of the PTX instruction set that it is written in.
    pub fn isa(&self) -> (u32, u32) {
        self.isa
    }

    /// Who compiled it, as the stamp in its first comments says; `None` for PTX without one.
    pub fn compiler(&self) -> Option<&str> {
        let lines = self.text.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("//"));
        let mut comments = lines.filter_map(|line| line.strip_prefix("//").map(str::trim_start));
        comments
            .find_map(|comment| Some(comment.strip_prefix("compiler:")?.trim_start()).filter(|name| !name.is_empty()))
    }

    /// What a report says of it; `source` is where it was taken from.
    pub fn describe(&self, source: &PtxSource) -> DeviceCode {
        DeviceCode {
            arch: self.arch,
            isa: self.isa,
            compiler: self.compiler().map(str::to_owned),
            source: source.resolve(),
        }
    }

    /// The first CUDA version whose driver compiles it.
    pub fn needed_driver(&self) -> CudaVersion {
        first_cuda_version(self.isa)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn unavailable(reason: String) -> Error {
    Error::Unavailable { backend: crate::Backend::Cuda.name(), reason }
}

/// The images of a folder; `refused` says that it cannot be listed.
fn read_folder(folder: &Path, refused: &'static str) -> Result<Vec<Ptx>> {
    let fail = |path: &Path, action, source| Error::File { path: path.to_owned(), action, source };
    let mut images = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| fail(folder, refused, e))? {
        let path = entry.map_err(|e| fail(folder, refused, e))?.path();
        if let Some(arch) = arch_of_file(&path) {
            let text = fs::read_to_string(&path).map_err(|e| fail(&path, "cannot read", e))?;
            images.push(Ptx::parse(arch, text.into(), &path)?);
        }
    }
    images.sort_by_key(Ptx::arch);
    Ok(images)
}

/// The 90 of `stereo_sm90.ptx`.
fn arch_of_file(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("stereo_sm")?.strip_suffix(".ptx")?.parse().ok()
}

fn isa_version(text: &str) -> Option<(u32, u32)> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = line.split_whitespace().next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The CUDA release that introduced a version of PTX (PTX ISA manual, chapter "Release Notes").
fn first_cuda_version((major, minor): (u32, u32)) -> CudaVersion {
    let (cuda_major, cuda_minor) = match (major, minor) {
        (..=5, _) => (8, 0),
        (6, ..=2) => (9, minor),
        (6, _) => (10, minor - 3),
        (7, _) => (11, minor),
        (8, ..=5) => (12, minor),
        // CUDA 12.6 brought no new PTX.
        (8, _) => (12, minor + 1),
        (_, _) => (major + 4, minor),
    };
    CudaVersion { major: cuda_major, minor: cuda_minor }
}

fn best(images: &[Ptx], capability: (u32, u32), driver: CudaVersion) -> Result<&Ptx, String> {
    let (major, minor) = capability;
    let Some(lowest) = images.iter().map(Ptx::arch).min() else {
        return Err(format!(
            "the GPU takes code for compute capability {major}.{minor} or lower, CUDA {driver} or older"
        ));
    };
    let mut fitting: Vec<_> = images.iter().filter(|image| image.arch <= major * 10 + minor).collect();
    if fitting.is_empty() {
        return Err(format!(
            "the GPU's compute capability is {major}.{minor}, the GPU code needs at least {}.{}",
            lowest / 10,
            lowest % 10
        ));
    }
    let least = fitting.iter().map(|image| image.needed_driver()).min();
    fitting.retain(|image| image.needed_driver() <= driver);
    fitting.into_iter().max_by_key(|image| image.arch).ok_or_else(|| {
        let least = least.map(|version| version.to_string()).unwrap_or_default();
        format!(
            "the NVIDIA driver is too old: it supports CUDA {driver}, the GPU code needs CUDA {least}; update the driver"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(arch: u32, isa: (u32, u32)) -> Ptx {
        let text = format!("// comment\n.version {}.{}\n.target sm_{arch}\n", isa.0, isa.1);
        Ptx::parse(arch, text.into(), "test").unwrap()
    }

    const fn cuda(major: u32, minor: u32) -> CudaVersion {
        CudaVersion { major, minor }
    }

    #[test]
    fn embedded_images_are_ptx() {
        let images = PtxSource::Embedded.images().unwrap();
        assert_eq!(images.len(), EMBEDDED.len());
        for image in images {
            assert!(image.text().contains(&format!(".target sm_{}", image.arch())), "sm_{}", image.arch());
        }
    }

    #[test]
    fn isa_versions_name_their_cuda_release() {
        let cases = [
            ((6, 2), cuda(9, 2)),
            ((6, 3), cuda(10, 0)),
            ((6, 5), cuda(10, 2)),
            ((7, 8), cuda(11, 8)),
            ((8, 0), cuda(12, 0)),
            ((8, 5), cuda(12, 5)),
            ((8, 6), cuda(12, 7)),
            ((8, 8), cuda(12, 9)),
            ((9, 0), cuda(13, 0)),
        ];
        for (isa, version) in cases {
            assert_eq!(image(75, isa).needed_driver(), version, "{isa:?}");
        }
    }

    #[test]
    fn the_highest_architecture_that_device_and_driver_take() {
        let all = [image(75, (6, 3)), image(80, (7, 0)), image(90, (8, 6)), image(100, (8, 6))];
        let arch = |capability, driver| best(&all, capability, driver).map(Ptx::arch);
        assert_eq!(arch((7, 5), cuda(12, 8)), Ok(75));
        assert_eq!(arch((8, 9), cuda(12, 8)), Ok(80));
        assert_eq!(arch((9, 0), cuda(13, 0)), Ok(90));
        assert_eq!(arch((12, 0), cuda(13, 0)), Ok(100));
        assert_eq!(arch((9, 0), cuda(12, 4)), Ok(80), "an older driver takes the older instruction set");
        let old = arch((9, 0), cuda(9, 2)).unwrap_err();
        assert!(old.contains("supports CUDA 9.2") && old.contains("needs CUDA 10.0"), "{old}");
        let weak = arch((6, 1), cuda(12, 8)).unwrap_err();
        assert!(weak.contains("6.1") && weak.contains("7.5"), "{weak}");
    }

    #[test]
    fn the_compiler_is_the_stamps() {
        let compiler = |head: &str| {
            let text = format!("{head}\n.version 8.3\n.target sm_90\n// compiler: too late\n");
            Ptx::parse(90, text.into(), "test").unwrap().compiler().map(str::to_owned)
        };
        let stamped =
            "// Generated by `cargo xtask build-ptx`; do not edit.\n// compiler: rustc 1.96.0 (ac68), LLVM 22.1.8";
        assert_eq!(compiler(stamped).unwrap(), "rustc 1.96.0 (ac68), LLVM 22.1.8");
        assert_eq!(compiler(&stamped.replace('\n', "\r\n")).unwrap(), "rustc 1.96.0 (ac68), LLVM 22.1.8");
        assert_eq!(
            compiler("//\n// Generated by NVIDIA NVVM Compiler\n//\n// Compiler Build ID: CL-1\n\n//compiler:\ta: b ")
                .unwrap(),
            "a: b"
        );
        for none in [
            "",
            "// comment",
            "// Compiler Build ID: CL-1",
            "// compiler:",
            "// the compiler: rustc",
            "compiler: rustc",
            ".pragma \"x\";\n// compiler: rustc",
        ] {
            assert_eq!(compiler(none), None, "{none}");
        }
        for image in PtxSource::Embedded.images().unwrap() {
            assert!(image.compiler().unwrap().starts_with("rustc "), "sm_{}", image.arch());
        }
    }

    #[test]
    fn what_a_folder_holds_is_said_when_nothing_fits() {
        let folder = tempfile::tempdir().unwrap();
        let source = PtxSource::Folder(folder.path().to_owned());
        let holds = format!("the given PTX folder {} holds", folder.path().display());
        let refused = |capability, driver| source.choose(capability, driver).unwrap_err().to_string();
        let unavailable = |reason: &str| format!("backend cuda is not available here: {reason}");
        assert_eq!(
            refused((9, 0), cuda(13, 0)),
            unavailable(&format!(
                "the GPU takes code for compute capability 9.0 or lower, CUDA 13.0 or older; {holds} no stereo_sm*.ptx"
            ))
        );
        fs::write(folder.path().join("stereo_sm90.ptx"), ".version 8.6\n").unwrap();
        fs::write(folder.path().join("stereo_sm100.ptx"), ".version 8.8\n").unwrap();
        let all = format!("{holds} sm_90 (CUDA 12.7), sm_100 (CUDA 12.9)");
        assert_eq!(
            refused((8, 0), cuda(13, 0)),
            unavailable(&format!("the GPU's compute capability is 8.0, the GPU code needs at least 9.0; {all}"))
        );
        let old = refused((9, 0), cuda(12, 4));
        assert!(old.contains("supports CUDA 12.4") && old.ends_with(&format!("update the driver; {all}")), "{old}");
    }

    #[test]
    fn folders_replace_the_embedded_images() {
        let folder = tempfile::tempdir().unwrap();
        let source = PtxSource::Folder(folder.path().to_owned());
        fs::write(folder.path().join("stereo_sm90.ptx"), ".version 8.6\n.target sm_90\n").unwrap();
        fs::write(folder.path().join("stereo_sm75.ptx"), "  .version 6.3\n.target sm_75\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "not looked at").unwrap();
        assert_eq!(source.images().unwrap().iter().map(Ptx::arch).collect::<Vec<_>>(), [75, 90]);
        let chosen = source.choose((9, 0), cuda(13, 0)).unwrap();
        assert_eq!(chosen.isa(), (8, 6));
        assert_eq!(chosen.describe(&source).source, source);
        fs::write(folder.path().join("stereo_sm80.ptx"), "hello").unwrap();
        let bad = source.images().unwrap_err().to_string();
        assert!(bad.contains("stereo_sm80.ptx") && bad.contains(".version"), "{bad}");
        let absent = PtxSource::Folder(folder.path().join("absent")).images().unwrap_err().to_string();
        assert!(absent.contains("absent: cannot read the given PTX folder: "), "{absent}");
    }
}
