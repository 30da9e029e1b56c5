//! `build-ptx`: compiles the device crate to PTX, one file per architecture.

use crate::device_toolchain::DeviceToolchain;
use crate::error::{Error, Result};
use crate::ptx_file::{self, Arch, Stamp};
use crate::workspace;
use clap::ValueEnum;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// The committed files together stay below this.
const MAX_TOTAL_BYTES: u64 = 8 << 20;

/// The target triple of the device.
const TARGET: &str = "nvptx64-nvidia-cuda";

/// Compile the kernels to PTX, one file per architecture, into stereo-host/ptx.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask build-ptx                        all architectures
  cargo xtask build-ptx --arch 90              one, while working on a kernel
  cargo xtask build-ptx --check                is the committed PTX what the sources give?
  cargo xtask build-ptx --rustc /usr/bin/rustc with this compiler")]
pub struct Args {
    /// Architectures to build.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["75", "80", "90", "100"])]
    arch: Vec<Arch>,
    /// Write nothing; fail if the committed files are not what the sources give. With another compiler than the
    /// stamped one only the sources' digests are compared.
    #[arg(long)]
    check: bool,
    /// The code generator.
    #[arg(long, value_enum, default_value_t = Codegen::Nvptx)]
    codegen: Codegen,
    /// The compiler to use; it needs its own core sources. Also: STEREO_DEVICE_RUSTC.
    #[arg(long, value_name = "PATH")]
    rustc: Option<PathBuf>,
}

/// Who turns Rust into PTX.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Codegen {
    /// rustc's own NVPTX backend.
    Nvptx,
}

/// Builds or checks.
///
/// # Errors
/// No usable compiler, a failed build, more bytes than allowed, or (with `--check`) stale files.
pub fn run(args: &Args) -> Result<()> {
    let Codegen::Nvptx = args.codegen;
    if args.check {
        let report = check(&args.arch, args.rustc.as_deref())?;
        println!("{report}");
        return Ok(());
    }
    let toolchain = DeviceToolchain::find(args.rustc.as_deref())?;
    println!("using {toolchain}");
    let built = build_all(&toolchain, &args.arch)?;
    check_total(&args.arch.iter().copied().zip(built.iter().map(|text| text.len() as u64)).collect::<Vec<_>>())?;
    let folder = ptx_file::folder();
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder, "cannot create"))?;
    for (arch, text) in args.arch.iter().zip(&built) {
        write_whole(&arch.path(), text)?;
        println!("{}: {} bytes, PTX {}", workspace::relative(&arch.path()), text.len(), decimal(arch.ptx_version()));
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
    let toolchain = DeviceToolchain::find(rustc)?;
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
    let output_flags = [
        // With fat LTO the assembly text is the complete module; there is nothing left to link.
        "--emit=asm".into(),
        "-Clinker=true".into(),
    ];
    // The assembly file's name is always the same, so every compiler and every set of flags gets a folder of its own.
    let stamped_flags = code_flags.join(" ");
    let key = ptx_file::short_digest(&format!("{} {stamped_flags}", toolchain.version));
    let target_dir = workspace::target_dir().join("ptx").join(format!("sm_{}-{key}", arch.number()));
    let mut command = workspace::cargo();
    command
        .args(["rustc", "--package", "stereo-kernels", "--lib", "--crate-type", "cdylib", "--profile", "ptx"])
        .args(["--target", TARGET, "-Zbuild-std=core", "--target-dir"])
        .arg(&target_dir)
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", [code_flags.as_slice(), &output_flags].concat().join("\u{1f}"))
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let output = workspace::capture_both(&mut command)?;
    warnings(&output.1).for_each(|warning| eprintln!("sm_{}: {warning}\n", arch.number()));
    let artifacts = target_dir.join(TARGET).join("ptx/deps");
    let assembly = artifacts.join("stereo_kernels.s");
    let raw = std::fs::read_to_string(&assembly).map_err(Error::file(&assembly, "cannot read"))?;
    if !raw.contains(".entry") {
        return Err(Error::Check(format!(
            "the device crate has no kernel for sm_{}: {}",
            arch.number(),
            workspace::relative(&assembly)
        )));
    }
    let stamp = Stamp::new(&toolchain.version, stamped_flags, sources(&artifacts.join("stereo_kernels.d"))?)?;
    Ok(stamp.text() + &ptx_file::clean(&raw)?)
}

/// What the compiler says about the device crate, which no lint step on the host sees.
fn warnings(text: &str) -> impl Iterator<Item = &str> {
    let expected = ["unstable feature specified", "generated "];
    text.split("\n\n")
        .map(str::trim)
        .filter(move |block| block.starts_with("warning: ") && !expected.iter().any(|text| block.contains(text)))
}

/// The files that rustc read for this build, from its dependency file: a target, a colon, the files.
fn sources(dependencies: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(dependencies).map_err(Error::file(dependencies, "cannot read"))?;
    let first = text.lines().find_map(|line| line.split_once(".s: "));
    let (_, files) = first.ok_or_else(|| Error::Format {
        what: dependencies.display().to_string(),
        reason: "it names no assembly file".into(),
    })?;
    let mut files: Vec<_> = files.split_whitespace().map(|file| workspace::relative(Path::new(file))).collect();
    files.sort();
    Ok(files)
}

/// Holds the committed files, some of them about to be `replaced` by files of other sizes, against the limit.
fn check_total(replaced: &[(Arch, u64)]) -> Result<()> {
    let committed = |arch: Arch| std::fs::metadata(arch.path()).map_or(0, |file| file.len());
    let new = |arch| replaced.iter().find(|(other, _)| *other == arch).map(|(_, bytes)| *bytes);
    let total: u64 = Arch::ALL.into_iter().map(|arch| new(arch).unwrap_or_else(|| committed(arch))).sum();
    if total > MAX_TOTAL_BYTES {
        return Err(Error::Check(format!("the PTX files have {total} bytes together, the limit is {MAX_TOTAL_BYTES}")));
    }
    Ok(())
}

/// Never leaves half a file: the new text appears under its name only when it is whole.
fn write_whole(path: &Path, text: &str) -> Result<()> {
    let unfinished = path.with_extension("ptx.tmp");
    std::fs::write(&unfinished, text).map_err(Error::file(&unfinished, "cannot write"))?;
    std::fs::rename(&unfinished, path).map_err(Error::file(path, "cannot replace"))
}

fn decimal(ptx_version: u32) -> String {
    format!("{}.{}", ptx_version / 10, ptx_version % 10)
}
