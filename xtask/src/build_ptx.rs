//! `build-ptx`: compiles the device crate to PTX, one file per architecture.

use crate::device_toolchain::DeviceToolchain;
use crate::error::{Error, Result};
use crate::ptx_file::{self, Arch, Stamp};
use crate::{rust_cuda, workspace};
use clap::ValueEnum;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// The committed files together stay below this.
const MAX_TOTAL_BYTES: u64 = 8 << 20;

/// The target triple of the device.
const TARGET: &str = "nvptx64-nvidia-cuda";

/// Compile the kernels to PTX, one file per architecture.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask build-ptx                        all committed architectures, into stereo-host/ptx
  cargo xtask build-ptx --arch 90              one, while working on a kernel
  cargo xtask build-ptx --check                is the committed PTX what the sources give?
  cargo xtask build-ptx --rustc /usr/bin/rustc with this compiler
  cargo xtask build-ptx --codegen rust-cuda    by rust-cuda's compiler, into stereo-host/ptx/rust-cuda
  cargo xtask build-ptx --codegen rust-cuda --arch 100,120 --out try

docs/two-ways-to-ptx.md says what each code generator can do and what it needs.")]
pub struct Args {
    /// Architectures to build [default: the committed ones; for rust-cuda those that this machine's LLVM serves]
    #[arg(long, value_enum, value_delimiter = ',')]
    arch: Vec<Arch>,
    /// Write nothing; fail if the committed files are not what the sources give. With another compiler than the
    /// stamped one only the sources' digests are compared.
    #[arg(long, conflicts_with = "out")]
    check: bool,
    /// The code generator.
    #[arg(long, value_enum, default_value_t = Codegen::Nvptx)]
    codegen: Codegen,
    /// The compiler to use instead of the one that is found; it needs its own core sources, for rust-cuda also the
    /// compiler's libraries. Also: STEREO_DEVICE_RUSTC (nvptx only).
    #[arg(long, value_name = "PATH")]
    rustc: Option<PathBuf>,
    /// Write the files into this folder. `STEREO_PTX_DIR` and `stereo bench --compare-ptx` read such folders.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Who turns Rust into PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Codegen {
    /// rustc's own NVPTX backend: the committed files.
    Nvptx,
    /// rust-cuda's backend over libNVVM, driven by its `cuda_builder`; its files are not committed.
    RustCuda,
}

/// Builds or checks.
///
/// # Errors
/// No usable compiler, a failed build, more bytes than allowed, or (with `--check`) stale files.
pub fn run(args: &Args) -> Result<()> {
    match args.codegen {
        Codegen::RustCuda if args.check => {
            Err(Error::Check("--check compares committed files, and none of rust-cuda's are committed".into()))
        }
        Codegen::RustCuda => rust_cuda::run(&args.arch, args.rustc.as_deref(), args.out.as_deref()),
        Codegen::Nvptx => {
            let archs = if args.arch.is_empty() { &Arch::COMMITTED[..] } else { &args.arch };
            let extra = archs.iter().find(|arch| !Arch::COMMITTED.contains(arch));
            if let (Some(arch), None) = (extra, &args.out) {
                return Err(Error::Check(format!("no PTX for {arch} is committed: name another folder with --out")));
            }
            if args.check {
                println!("{}", check(archs, args.rustc.as_deref())?);
                return Ok(());
            }
            write(archs, args.rustc.as_deref(), args.out.as_deref())
        }
    }
}

fn write(archs: &[Arch], rustc: Option<&Path>, out: Option<&Path>) -> Result<()> {
    let toolchain = DeviceToolchain::find(rustc)?;
    println!("using {toolchain}");
    let built = build_all(&toolchain, archs)?;
    if out.is_none() {
        check_total(&archs.iter().copied().zip(built.iter().map(|text| text.len() as u64)).collect::<Vec<_>>())?;
    }
    let folder = out.map_or_else(ptx_file::folder, |out| workspace::root().join(out));
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder, "cannot create"))?;
    for (arch, text) in archs.iter().zip(&built) {
        let path = arch.file_in(&folder);
        ptx_file::write_whole(&path, text)?;
        println!("{}: {} bytes, PTX {}", workspace::relative(&path), text.len(), decimal(arch.ptx_version()));
    }
    Ok(())
}

/// Compares the committed files with the sources; the text says what was compared.
///
/// # Errors
/// [`Error::Check`] for stale, missing or too large files; [`Error::Missing`] where no compiler is found and the
/// digests alone are fine.
pub fn check(archs: &[Arch], rustc: Option<&Path>) -> Result<String> {
    let mut committed = Vec::new();
    for arch in archs {
        let path = arch.path();
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path, "cannot read"))?;
        let stamp = Stamp::read(&path, &text)?;
        let changed = stamp.changed_sources();
        if !changed.is_empty() || stamp.sources.is_empty() {
            let changed = changed.join(", ");
            return Err(stale(&path, &format!("these sources changed since it was built: {changed}")));
        }
        committed.push((path, text, stamp));
    }
    check_total(&[])?;
    let stamped = committed.first().map(|(_, _, stamp)| stamp.compiler.as_str());
    let toolchain = DeviceToolchain::find_like(rustc, stamped)?;
    let ours = toolchain.version.to_string();
    if let Some((path, _, stamp)) = committed.iter().find(|(_, _, stamp)| stamp.compiler != ours) {
        return Ok(format!(
            "sources match the stamps; not rebuilt, because {} was built by {} and this is {ours}",
            workspace::relative(path),
            stamp.compiler
        ));
    }
    for ((path, text, _), rebuilt) in committed.iter().zip(build_all(&toolchain, archs)?) {
        if *text != rebuilt {
            let line = text.lines().zip(rebuilt.lines()).position(|(old, new)| old != new);
            let place = line.map_or("at its end".into(), |line| format!("from line {} on", line + 1));
            return Err(stale(path, &format!("a rebuild by the same compiler differs {place}")));
        }
    }
    Ok(format!("{} files equal a rebuild by {ours}", committed.len()))
}

fn stale(path: &Path, reason: &str) -> Error {
    Error::Check(format!(
        "{} is stale: {reason}\nrun `cargo xtask build-ptx` and commit the result",
        workspace::relative(path)
    ))
}

fn build_all(toolchain: &DeviceToolchain, archs: &[Arch]) -> Result<Vec<String>> {
    // One architecture's code generation is one thread's work (fat LTO, one codegen unit), so they run side by side.
    archs.par_iter().map(|&arch| build(toolchain, arch)).collect()
}

fn build(toolchain: &DeviceToolchain, arch: Arch) -> Result<String> {
    let code_flags = [
        format!("-Ctarget-cpu=sm_{}", arch.number()),
        format!("-Ctarget-feature=+ptx{}", arch.ptx_version()),
        // Stable names, and no paths of this machine in panic texts.
        "-Csymbol-mangling-version=v0".into(),
        "-Zlocation-detail=none".into(),
        // Loops over a lane's disparities must unroll whole, or their arrays end in local memory.
        "-Cllvm-args=-unroll-threshold=16000".into(),
    ];
    // With fat LTO the assembly text is the complete module; there is nothing left to link.
    let all_flags = [code_flags.as_slice(), &["-Clinker=true".into()]].concat().join("\u{1f}");
    // The assembly file's name is always the same, so every compiler and every set of flags gets a folder of its own.
    let stamped_flags = code_flags.join(" ");
    let key = ptx_file::short_digest(&format!("{} {stamped_flags}", toolchain.version));
    let target_dir = workspace::target_dir().join("ptx").join(format!("sm_{}-{key}", arch.number()));
    // Named, as cargo has not always kept its intermediate files in the same place.
    let assembly = target_dir.join("stereo_kernels.s");
    let mut command = workspace::cargo();
    command
        .args(["rustc", "--package", "stereo-kernels", "--lib", "--crate-type", "cdylib", "--profile", "ptx"])
        .args(["--target", TARGET, "-Zbuild-std=core", "--target-dir"])
        .arg(&target_dir)
        .arg("--")
        .arg(format!("--emit=asm={}", assembly.display()))
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", all_flags)
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let output = workspace::capture_both(&mut command)?;
    warnings(&output.1).for_each(|warning| eprintln!("sm_{}: {warning}\n", arch.number()));
    let raw = std::fs::read_to_string(&assembly).map_err(Error::file(&assembly, "cannot read"))?;
    if !raw.contains(".entry") {
        return Err(Error::Check(format!(
            "the device crate has no kernel for sm_{}: {}",
            arch.number(),
            workspace::relative(&assembly)
        )));
    }
    let sources = ptx_file::sources(&target_dir.join(TARGET).join("ptx/stereo_kernels.d"))?;
    let stamp = Stamp::new(toolchain.version.to_string(), stamped_flags, sources)?;
    Ok(stamp.text() + &ptx_file::clean(&raw)?)
}

/// What the compiler says about the device crate, which no lint step on the host sees.
fn warnings(text: &str) -> impl Iterator<Item = &str> {
    let expected = ["unstable feature specified", "generated "];
    text.split("\n\n")
        .map(str::trim)
        .filter(move |block| block.starts_with("warning: ") && !expected.iter().any(|text| block.contains(text)))
}

/// Holds the committed files, some of them about to be `replaced` by files of other sizes, against the limit.
fn check_total(replaced: &[(Arch, u64)]) -> Result<()> {
    let committed = |arch: Arch| std::fs::metadata(arch.path()).map_or(0, |file| file.len());
    let new = |arch| replaced.iter().find(|(other, _)| *other == arch).map(|(_, bytes)| *bytes);
    let total: u64 = Arch::COMMITTED.into_iter().map(|arch| new(arch).unwrap_or_else(|| committed(arch))).sum();
    if total > MAX_TOTAL_BYTES {
        return Err(Error::Check(format!("the PTX files have {total} bytes together, the limit is {MAX_TOTAL_BYTES}")));
    }
    Ok(())
}

fn decimal(ptx_version: u32) -> String {
    format!("{}.{}", ptx_version / 10, ptx_version % 10)
}
