//! `build-ptx --codegen rust-cuda`: looks for all that rust-cuda's compiler needs, then runs the small workspace in
//! `stereo-kernels/rust-cuda`, which drives `cuda_builder`.

use crate::error::{Error, Result};
use crate::ptx_file::{self, Arch, Stamp};
use crate::workspace;
use regex::Regex;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first architecture for which libNVVM takes the newer of its two dialects.
const FIRST_OF_LLVM_19: Arch = Arch::Sm100;

/// The variables in which `cuda_builder`'s crates look for a CUDA toolkit, in their order.
const CUDA_VARIABLES: [&str; 3] = ["CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];

/// Where they look without one.
const CUDA_FOLDERS: [&str; 3] = ["/usr/local/cuda", "/usr/lib/cuda", "/opt/cuda"];

/// The Python packages' files are laid out in a way of their own below this, in a virtual environment of the
/// workspace's root.
const IN_PACKAGES: &str = "nvidia/cu13";

/// What the toolkit must have, below its root.
const CUDA_FILES: [&str; 5] = [
    "include/cuda.h",
    "include/cuda_runtime_api.h",
    "nvvm/include/nvvm.h",
    "nvvm/lib64/libnvvm.so",
    "nvvm/libdevice/libdevice.10.bc",
];

const CUDA_ADVICE: &str = "\
install a CUDA toolkit (12.9 or later for compute_100 and later) and name its root: CUDA_PATH=DIR, or in the workspace's root:
  python3 -m venv .venv && .venv/bin/pip install nvidia-nvvm nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt
Its version decides the PTX version, and so the driver that is needed: 13.0 writes PTX 9.0 for driver 580";

const LIBCLANG_ADVICE: &str = "\
bindgen reads the headers with it; install it, for example
  sudo apt-get install libclang-dev
or name its folder: LIBCLANG_PATH=DIR";

/// Which LLVM the compiler backend is built over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Llvm {
    /// For architectures before Blackwell.
    V7,
    /// For Blackwell and later.
    V19,
}

impl Llvm {
    fn serving(arch: Arch) -> Self {
        if arch < FIRST_OF_LLVM_19 { Self::V7 } else { Self::V19 }
    }

    fn major(self) -> &'static str {
        match self {
            Self::V7 => "7",
            Self::V19 => "19",
        }
    }

    /// The variable that names its `llvm-config`, and what it is called without one.
    fn config(self) -> (&'static str, &'static str) {
        match self {
            Self::V7 => ("LLVM_CONFIG", "llvm-config"),
            Self::V19 => ("LLVM_CONFIG_19", "llvm-config-19"),
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::V7 => {
                "compute_75 to compute_90 need LLVM 7.1: build it (targets X86 and NVPTX) and name it: LLVM_CONFIG=PATH,\n\
                 or leave these architectures out: --arch 100,120"
            }
            Self::V19 => {
                "compute_100 and later need LLVM 19: sudo apt-get install llvm-19-dev, or name it: LLVM_CONFIG_19=PATH,\n\
                 or leave these architectures out: --arch 75,80,90"
            }
        }
    }

    /// Its `llvm-config`.
    fn find(self) -> Result<LlvmConfig> {
        let (variable, name) = self.config();
        let program = env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from);
        let ask = |argument| workspace::capture(workspace::command(&program).arg(argument));
        let missing = |reason: String| Error::Missing {
            what: format!("LLVM {}", self.major()),
            advice: format!("{reason}\n{}", self.advice()),
        };
        let version = ask("--version").map_err(|error| missing(error.to_string().trim().to_owned()))?;
        let version = version.trim().to_owned();
        if version.split('.').next() != Some(self.major()) {
            return Err(missing(format!("{} is version {version}", program.display())));
        }
        // Where it comes as one shared library, as from distributions, the static ones may be incomplete.
        let shared = ask("--shared-mode").is_ok_and(|mode| mode.trim() == "shared");
        Ok(LlvmConfig { program, version, shared })
    }
}

#[derive(Debug)]
struct LlvmConfig {
    program: PathBuf,
    version: String,
    shared: bool,
}

/// The compiler with its libraries.
#[derive(Debug)]
struct Toolchain {
    rustc: PathBuf,
    /// `rustc --version`.
    version: String,
    /// Chosen by the caller, so that rustup is not asked.
    explicit: bool,
}

impl Toolchain {
    /// `explicit`, or the pinned nightly; both with `rustc-dev` and `rust-src`.
    fn find(explicit: Option<&Path>) -> Result<Self> {
        let channel = pinned_channel()?;
        let advice = format!(
            "rustup toolchain install {channel} --component rust-src,rustc-dev,llvm-tools\n\
             or name a rustc of that date that has the compiler's libraries beside it: --rustc PATH"
        );
        let missing =
            |reason: String| Error::Missing { what: format!("Rust {channel}"), advice: format!("{reason}\n{advice}") };
        let said = |error: Error| missing(error.to_string().trim().to_owned());
        let rustc = match explicit {
            Some(path) => path.to_path_buf(),
            None => {
                let mut which = workspace::command("rustup");
                // It must not start a download; its backtraces help nobody.
                which.args(["which", "rustc", "--toolchain", &channel]);
                which.env("RUSTUP_AUTO_INSTALL", "0").env("RUST_BACKTRACE", "0");
                PathBuf::from(workspace::capture(&mut which).map_err(said)?.trim())
            }
        };
        let ask = |arguments: &[&str]| workspace::capture(workspace::command(&rustc).args(arguments)).map_err(said);
        let version = ask(&["--version"])?.trim().to_owned();
        let host = ask(&["-vV"])?.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?.trim());
        let libraries = sysroot.join("lib/rustlib").join(&host).join("lib");
        if !has_file(&libraries, |name| name.starts_with("librustc_driver")) {
            return Err(missing(format!("component rustc-dev: no librustc_driver in {}", libraries.display())));
        }
        let sources = sysroot.join("lib/rustlib/src/rust/library/core/Cargo.toml");
        if !sources.is_file() {
            return Err(missing(format!("component rust-src: there is no {}", sources.display())));
        }
        Ok(Self { rustc, version, explicit: explicit.is_some() })
    }
}

/// All that must be there before anything is built.
#[derive(Debug)]
struct Prerequisites {
    toolchain: Toolchain,
    /// The root of a CUDA toolkit.
    cuda: PathBuf,
    /// The folder with libclang.
    libclang: PathBuf,
    llvm: Vec<(Llvm, LlvmConfig)>,
}

impl Prerequisites {
    /// Looks for everything that `archs` need, or where there are none, that any architecture needs.
    ///
    /// # Errors
    /// [`Error::Missing`] that lists all that is missing, not just the first.
    fn find(archs: &[Arch], rustc: Option<&Path>) -> Result<Self> {
        let mut lacks = Vec::new();
        let toolchain = keep(Toolchain::find(rustc), &mut lacks);
        let cuda = keep(find_cuda(), &mut lacks);
        let libclang = keep(find_libclang(), &mut lacks);
        let mut llvm = Vec::new();
        let mut other = Vec::new();
        for version in [Llvm::V7, Llvm::V19] {
            let asked = archs.iter().any(|&arch| Llvm::serving(arch) == version);
            match version.find() {
                Ok(found) => llvm.push((version, found)),
                Err(error) if asked => lacks.push(error),
                Err(error) => other.push(error),
            }
        }
        if llvm.is_empty() && archs.is_empty() {
            lacks.append(&mut other);
        }
        match (toolchain, cuda, libclang) {
            (Some(toolchain), Some(cuda), Some(libclang)) if lacks.is_empty() => {
                Ok(Self { toolchain, cuda, libclang, llvm })
            }
            _ => {
                let text: Vec<String> = lacks.iter().map(ToString::to_string).collect();
                Err(Error::Missing { what: "what rust-cuda's compiler needs".into(), advice: text.join("\n\n") })
            }
        }
    }

    fn llvm(&self, version: Llvm) -> Option<&LlvmConfig> {
        self.llvm.iter().find(|(found, _)| *found == version).map(|(_, config)| config)
    }
}

impl fmt::Display for Prerequisites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let llvm: Vec<_> = self.llvm.iter().map(|(_, config)| config.version.as_str()).collect();
        write!(f, "{}, LLVM {}, CUDA in {}", self.toolchain.version, llvm.join(" and "), self.cuda.display())
    }
}

fn keep<T>(result: Result<T>, lacks: &mut Vec<Error>) -> Option<T> {
    result.map_err(|error| lacks.push(error)).ok()
}

/// For `doctor`: what is there, or everything that is missing.
pub fn state() -> Result<String> {
    Prerequisites::find(&[], None).map(|found| found.to_string())
}

/// Builds for `archs`, or where there are none, for all that the LLVM of this machine serves.
///
/// # Errors
/// [`Error::Missing`] with all that is missing and how to get it; a failed build; PTX that is not as expected.
pub fn run(archs: &[Arch], rustc: Option<&Path>, out: Option<&Path>) -> Result<()> {
    let found = Prerequisites::find(archs, rustc)?;
    println!("using {found}");
    let mut wanted = archs.to_vec();
    if wanted.is_empty() {
        let all = [&Arch::COMMITTED[..], &[Arch::Sm120]].concat();
        let (served, left): (Vec<Arch>, Vec<Arch>) =
            all.into_iter().partition(|&arch| found.llvm(Llvm::serving(arch)).is_some());
        if let Some(&arch) = left.first() {
            let names: Vec<String> = left.iter().map(ToString::to_string).collect();
            println!("left out: {}, for want of LLVM {}", names.join(", "), Llvm::serving(arch).major());
        }
        wanted = served;
    }
    let folder = out.map_or_else(|| ptx_file::folder().join("rust-cuda"), |out| workspace::root().join(out));
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder, "cannot create"))?;
    for arch in wanted {
        println!("{arch}: the first build of the compiler backend takes minutes");
        let text = build(&found, arch)?;
        let path = arch.file_in(&folder);
        ptx_file::write_whole(&path, &text)?;
        println!("{}: {} bytes", workspace::relative(&path), text.len());
    }
    println!("to use it: STEREO_PTX_DIR={}", folder.display());
    Ok(())
}

/// The workspace that is built.
fn own_workspace() -> PathBuf {
    workspace::root().join("stereo-kernels/rust-cuda")
}

fn build(found: &Prerequisites, arch: Arch) -> Result<String> {
    let llvm = Llvm::serving(arch);
    let config = found.llvm(llvm).ok_or_else(|| Error::Check(format!("no LLVM for {arch}")))?;
    // The two backends have one name, so each has a folder.
    let target_dir = workspace::target_dir().join("rust-cuda").join(format!("llvm{}", llvm.major()));
    std::fs::create_dir_all(&target_dir).map_err(Error::file(&target_dir, "cannot create"))?;
    let raw_file = target_dir.join(format!("{arch}.ptx"));
    let architecture = format!("compute_{}", arch.number());
    let mut command = command(found, llvm, config, &target_dir)?;
    command.arg("--").arg(own_workspace().join("kernels")).arg(&architecture).arg(&raw_file);
    let status = command.status().map_err(|source| Error::Start { program: workspace::display(&command), source })?;
    if !status.success() {
        let output = "see above for what the compiler said".into();
        return Err(Error::Failed { program: workspace::display(&command), status, output });
    }
    let raw = std::fs::read_to_string(&raw_file).map_err(Error::file(&raw_file, "cannot read"))?;
    let dependencies = target_dir.join("nvptx64-nvidia-cuda/release/stereo_kernels.d");
    let compiler = format!(
        "rust-cuda {} over {} ({}, LLVM {})",
        revision()?,
        libnvvm(&raw),
        found.toolchain.version,
        config.version
    );
    let sources = ptx_file::sources(&dependencies)?;
    let stamp = Stamp::new(compiler, architecture, sources)?;
    Ok(stamp.text() + &raise_alignment(&ptx_file::clean(&raw)?, &raw_file)?)
}

/// `cargo run` of the builder, as far as its own arguments, with nothing of the toolchain that runs this chore.
fn command(found: &Prerequisites, llvm: Llvm, config: &LlvmConfig, target_dir: &Path) -> Result<Command> {
    let mut command = workspace::command("cargo");
    // rustup chooses the toolchain by the folder.
    command.current_dir(own_workspace()).args(["run", "--package", "builder"]);
    if llvm == Llvm::V19 {
        command.args(["--features", "llvm19"]);
    }
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    if found.toolchain.explicit {
        let folder = found.toolchain.rustc.parent().unwrap_or(Path::new(""));
        command.env("RUSTC", &found.toolchain.rustc).env("PATH", prepended("PATH", folder)?);
        // It may be a release, which has the compiler's features only so.
        command.env("RUSTC_BOOTSTRAP", "1");
    } else {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    if config.shared {
        command.env("LLVM_LINK_SHARED", "1");
    }
    command
        .env(llvm.config().0, &config.program)
        .env("CUDA_PATH", &found.cuda)
        .env("LIBCLANG_PATH", &found.libclang)
        .env("CARGO_TARGET_DIR", target_dir)
        // The compiler opens libNVVM.
        .env("LD_LIBRARY_PATH", prepended("LD_LIBRARY_PATH", &found.cuda.join("nvvm/lib64"))?);
    Ok(command)
}

/// A variable with a list of folders, and one more before them.
fn prepended(variable: &str, folder: &Path) -> Result<OsString> {
    let old = env::var_os(variable).unwrap_or_default();
    let folders =
        std::iter::once(folder.to_path_buf()).chain(env::split_paths(&old).filter(|path| !path.as_os_str().is_empty()));
    env::join_paths(folders).map_err(|error| Error::Format { what: variable.into(), reason: error.to_string() })
}

/// The toolchain that `rust-toolchain.toml` of the workspace pins.
fn pinned_channel() -> Result<String> {
    first_match(&own_workspace().join("rust-toolchain.toml"), r#"(?m)^channel = "([^"]+)""#)?.ok_or_else(|| {
        Error::Format {
            what: "stereo-kernels/rust-cuda/rust-toolchain.toml".into(),
            reason: "it names no channel".into(),
        }
    })
}

/// The revision of rust-cuda in the lock file; with a patched one there is none.
fn revision() -> Result<String> {
    let found = first_match(&own_workspace().join("Cargo.lock"), r"git\+[^#]*/Rust-CUDA\?[^#]*#([0-9a-f]{8})")?;
    Ok(found.unwrap_or_else(|| "patched".into()))
}

fn first_match(file: &Path, pattern: &str) -> Result<Option<String>> {
    let text = std::fs::read_to_string(file).map_err(Error::file(file, "cannot read"))?;
    let pattern =
        Regex::new(pattern).map_err(|error| Error::Format { what: "a pattern".into(), reason: error.to_string() })?;
    Ok(pattern.captures(&text).map(|found| found[1].to_owned()))
}

/// libNVVM signs its output.
fn libnvvm(ptx: &str) -> String {
    let version =
        ptx.lines().take(20).find_map(|line| line.strip_prefix("// Cuda compilation tools,")?.rsplit(", V").next());
    format!("libNVVM {}", version.unwrap_or("of unknown version"))
}

/// `cuda_std` declares dynamic shared memory as 16 bytes aligned to 16. The kernels need it aligned to 128, and the 16
/// bytes would count as static shared memory of every kernel.
fn raise_alignment(ptx: &str, file: &Path) -> Result<String> {
    const DECLARED: &str = ".extern .shared .align 16 .b8 _Zcuda_std_dyn_shared[16];";
    const NEEDED: &str = ".extern .shared .align 128 .b8 _Zcuda_std_dyn_shared[];";
    if ptx.matches("_Zcuda_std_dyn_shared[").count() != 1 || !ptx.contains(DECLARED) {
        return Err(Error::Format {
            what: file.display().to_string(),
            reason: format!("there is no line `{DECLARED}`"),
        });
    }
    Ok(ptx.replace(DECLARED, NEEDED))
}

/// A CUDA toolkit as `cuda_builder` takes it: a named one, or one where it is looked for. One that is named and does not
/// fit is an error, not a reason to look further.
fn find_cuda() -> Result<PathBuf> {
    let lacks = |folder: &Path| CUDA_FILES.iter().map(|file| folder.join(file)).find(|path| !path.is_file());
    let missing = |reason: String| Error::Missing {
        what: "libNVVM and the CUDA headers".into(),
        advice: format!("{reason}\n{CUDA_ADVICE}"),
    };
    let named = CUDA_VARIABLES.iter().find_map(|name| Some((name, PathBuf::from(env::var_os(name)?))));
    if let Some((variable, folder)) = named {
        return match lacks(&folder) {
            None => Ok(folder),
            Some(file) => Err(missing(format!("{variable}: there is no {}", file.display()))),
        };
    }
    let found = CUDA_FOLDERS.iter().map(PathBuf::from).find(|folder| lacks(folder).is_none());
    match found {
        Some(folder) => Ok(folder),
        None => from_packages()?.ok_or_else(|| {
            missing(format!("looked in {}, {} and .venv", CUDA_VARIABLES.join(", "), CUDA_FOLDERS.join(", ")))
        }),
    }
}

/// The Python packages, laid out as a toolkit by links.
fn from_packages() -> Result<Option<PathBuf>> {
    let pythons = std::fs::read_dir(workspace::root().join(".venv/lib"));
    let mut packages = pythons
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages").join(IN_PACKAGES)));
    let Some(packages) = packages.find(|folder| folder.join("include/nvvm.h").is_file()) else { return Ok(None) };
    let root = workspace::target_dir().join("rust-cuda/cuda");
    if root.exists() {
        std::fs::remove_dir_all(&root).map_err(Error::file(&root, "cannot replace"))?;
    }
    let libraries = packages.join("lib");
    let names = std::fs::read_dir(&libraries).map_err(Error::file(&libraries, "cannot read"))?;
    let names: Vec<_> = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let library = names.iter().find(|name| name.starts_with("libnvvm.so")).map(|name| libraries.join(name));
    let links = [
        (packages.join("include"), "include"),
        (packages.join("include/nvvm.h"), "nvvm/include/nvvm.h"),
        (packages.join("nvvm/libdevice"), "nvvm/libdevice"),
        (libraries.clone(), "lib64"),
    ];
    for (target, link) in links {
        make_link(&target, &root.join(link))?;
    }
    if let Some(library) = library {
        make_link(&library, &root.join("nvvm/lib64/libnvvm.so"))?;
        // The name that a program linked to it asks for.
        if let Some(name) = library.file_name() {
            let link = root.join("nvvm/lib64").join(name);
            if !link.exists() {
                make_link(&library, &link)?;
            }
        }
    }
    Ok(CUDA_FILES.iter().all(|file| root.join(file).is_file()).then_some(root))
}

fn make_link(target: &Path, link: &Path) -> Result<()> {
    if let Some(folder) = link.parent() {
        std::fs::create_dir_all(folder).map_err(Error::file(folder, "cannot create"))?;
    }
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(target, link);
    #[cfg(not(unix))]
    let made: std::io::Result<()> = Err(std::io::ErrorKind::Unsupported.into());
    made.map_err(Error::file(link, "cannot link"))
}

fn find_libclang() -> Result<PathBuf> {
    // Not libclang-cpp.
    let is_it = |name: &str| {
        let end = name.strip_prefix("libclang").unwrap_or_default();
        end.starts_with(".so")
            || end.strip_prefix('-').is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    if let Some(folder) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        let advice = format!("LIBCLANG_PATH: there is none in {}\n{LIBCLANG_ADVICE}", folder.display());
        return if has_file(&folder, is_it) {
            Ok(folder)
        } else {
            Err(Error::Missing { what: "libclang".into(), advice })
        };
    }
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> =
        versions.filter(|path| path.join("lib").is_dir()).map(|path| path.join("lib")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"].map(PathBuf::from),
    );
    folders
        .into_iter()
        .find(|folder| has_file(folder, is_it))
        .ok_or_else(|| Error::Missing { what: "libclang".into(), advice: LIBCLANG_ADVICE.into() })
}

fn has_file(folder: &Path, is_it: impl Fn(&str) -> bool) -> bool {
    let names =
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.into_iter().any(|name| is_it(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_has_its_llvm() {
        let served = |arch| Llvm::serving(arch).major();
        assert_eq!(Arch::COMMITTED.map(served), ["7", "7", "7", "19"]);
        assert_eq!(served(Arch::Sm120), "19");
    }

    #[test]
    fn shared_memory_is_aligned_or_the_ptx_is_refused() {
        let declared = ".version 9.0\n.extern .shared .align 16 .b8 _Zcuda_std_dyn_shared[16];\nmov.u32 %r1,_Zcuda_std_dyn_shared;\n";
        let raised = raise_alignment(declared, Path::new("x.ptx")).unwrap();
        assert!(raised.contains(".align 128 .b8 _Zcuda_std_dyn_shared[];"), "{raised}");
        let other = declared.replace("16]", "32]");
        for text in [".version 9.0\n", other.as_str()] {
            assert!(raise_alignment(text, Path::new("x.ptx")).unwrap_err().to_string().contains("x.ptx"));
        }
    }

    #[test]
    fn the_version_of_libnvvm_is_read_from_its_output() {
        let ptx = "//\n// Cuda compilation tools, release 13.5, V13.5.37\n// Based on NVVM 23.0.0\n";
        assert_eq!(libnvvm(ptx), "libNVVM 13.5.37");
        assert_eq!(libnvvm(".version 9.0"), "libNVVM of unknown version");
    }

    #[test]
    fn the_pin_and_the_revision_are_there() {
        assert!(pinned_channel().unwrap().starts_with("nightly-20"));
        assert_eq!(revision().unwrap().len(), 8, "the lock file must be the one of the unpatched sources");
    }
}
