//! Sets `cfg(cuda)` where the CUDA backend exists and is wanted, and embeds whatever PTX `cargo xtask build-ptx` has
//! written to `ptx/`. A list in the source would not do: the crate must also build while a file is
//! missing, as `xtask`, which makes them, depends on it.

use std::{env, error::Error, fmt::Write as _, fs, io::Write as _, path::Path};

use flate2::{Compression, write::ZlibEncoder};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("ptx");
    println!("cargo:rerun-if-changed=build.rs");
    // Cargo takes a path that does not exist for one that has changed.
    let watched = if folder.is_dir() { folder.as_path() } else { Path::new(".") };
    println!("cargo:rerun-if-changed={}", watched.display());

    // The targets for which `src/cuda/symbols.rs` has a jump; `Cargo.toml` has the same condition.
    println!("cargo:rustc-check-cfg=cfg(cuda)");
    let target = |part| env::var(format!("CARGO_CFG_TARGET_{part}"));
    let wanted = env::var_os("CARGO_FEATURE_CUDA").is_some();
    if wanted && target("OS")? == "linux" && ["x86_64", "aarch64"].contains(&target("ARCH")?.as_str()) {
        println!("cargo:rustc-cfg=cuda");
    }

    let mut images = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if let Some(arch) = arch(&path) {
                println!("cargo:rerun-if-changed={}", path.display());
                images.push((arch, path));
            }
        }
    }
    images.sort();

    let out = env::var("OUT_DIR")?;
    let mut source = String::from("&[\n");
    for (arch, path) in images {
        // As text the images are larger than the rest of the program.
        let packed = Path::new(&out).join(format!("stereo_sm{arch}.ptx.zlib"));
        let mut encoder = ZlibEncoder::new(fs::File::create(&packed)?, Compression::best());
        encoder.write_all(&fs::read(&path)?)?;
        encoder.finish()?;
        writeln!(source, "    ({arch}, include_bytes!({packed:?})),")?;
    }
    source.push_str("]\n");
    fs::write(Path::new(&out).join("embedded_ptx.rs"), source)?;
    Ok(())
}

/// The 90 of `stereo_sm90.ptx`; the same rule as in `src/cuda/ptx.rs`.
fn arch(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("stereo_sm")?.strip_suffix(".ptx")?.parse().ok()
}
