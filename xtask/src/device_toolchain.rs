//! Finds a compiler that can build the device crate: a rustc and the `core` sources of the very same version.

use crate::error::{Error, Result};
use crate::workspace;
use std::fmt;
use std::path::{Path, PathBuf};

/// Names a rustc for the device build, before anything else is looked at.
pub const RUSTC_VARIABLE: &str = "STEREO_DEVICE_RUSTC";

/// Where distributions put their rustc. Debian's `rust-web-src` puts matching sources beside it.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";

/// How to get a device toolchain, both ways.
pub const ADVICE: &str = "\
install one of the two:
  rustup toolchain install nightly --component rust-src
  sudo apt-get install rustc-web rust-web-src      (Debian 12 and later)
or name a compiler that has its sources: --rustc PATH or STEREO_DEVICE_RUSTC=PATH";

/// A compiler and its sources.
#[derive(Debug)]
pub struct DeviceToolchain {
    /// The compiler, by its full path.
    pub rustc: PathBuf,
    /// How it was found, for people.
    pub origin: &'static str,
    /// What it says about itself.
    pub version: Version,
}

/// The part of `rustc -vV` that decides about the generated code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// For example `1.96.0` or `1.97.0-nightly`.
    pub release: String,
    /// The commit, or `unknown`.
    pub commit: String,
    /// The version of LLVM.
    pub llvm: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rustc {} ({}), LLVM {}", self.release, self.commit, self.llvm)
    }
}

impl fmt::Display for DeviceToolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.origin, self.version, self.rustc.display())
    }
}

impl DeviceToolchain {
    /// The explicit choice, else the active toolchain if it is a nightly with its sources, else the system's compiler.
    ///
    /// # Errors
    /// [`Error::Missing`] with the reason for every candidate. An explicit choice that does not fit is an error, not a
    /// reason to look further.
    pub fn find(explicit: Option<&Path>) -> Result<Self> {
        Self::find_like(explicit, None)
    }

    /// As [`DeviceToolchain::find`], but of several that are usable the one that calls itself `wanted`, as a stamp does:
    /// only that one can rebuild what it built.
    ///
    /// # Errors
    /// As [`DeviceToolchain::find`].
    pub fn find_like(explicit: Option<&Path>, wanted: Option<&str>) -> Result<Self> {
        let variable = std::env::var_os(RUSTC_VARIABLE).map(PathBuf::from);
        let chosen = explicit.map(|path| ("--rustc", path.to_path_buf()));
        if let Some((origin, rustc)) = chosen.or(variable.map(|path| (RUSTC_VARIABLE, path))) {
            return Self::usable(&rustc, origin, false).map_err(|reason| missing(&[(origin, reason)]));
        }
        let active = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let (mut usable, mut reasons) = (Vec::new(), Vec::new());
        for (origin, rustc, nightly_only) in
            [("active toolchain", active, true), ("system toolchain", SYSTEM_RUSTC.into(), false)]
        {
            match Self::usable(&rustc, origin, nightly_only) {
                Ok(found) => usable.push(found),
                Err(reason) => reasons.push((origin, reason)),
            }
        }
        preferred(usable, wanted).ok_or_else(|| missing(&reasons))
    }

    fn usable(rustc: &Path, origin: &'static str, nightly_only: bool) -> Result<Self, String> {
        let ask = |arguments: &[&str]| {
            workspace::capture(workspace::command(rustc).args(arguments)).map_err(|error| error.to_string())
        };
        let version = Version::parse(&ask(&["-vV"])?)?;
        if nightly_only && !version.release.contains("nightly") && !version.release.contains("dev") {
            return Err(format!("rustc {} is not a nightly", version.release));
        }
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?.trim());
        let sources = sysroot.join("lib/rustlib/src/rust");
        if !sources.join("library/core/Cargo.toml").is_file() {
            return Err(format!("rustc {} has no core sources in {}", version.release, sources.display()));
        }
        // Source trees carry this file. rustup's component does not, but is installed and updated with its compiler.
        if let Ok(text) = std::fs::read_to_string(sources.join("src/version")) {
            let number = version.release.split('-').next().unwrap_or_default();
            if text.trim() != number {
                return Err(format!("rustc {number} has core sources of another version, {}", text.trim()));
            }
        }
        let own = sysroot.join("bin/rustc");
        Ok(Self { rustc: if own.is_file() { own } else { rustc.to_path_buf() }, origin, version })
    }
}

impl Version {
    fn parse(text: &str) -> Result<Self, String> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .map(str::to_owned)
                .ok_or_else(|| format!("`rustc -vV` names no {name}"))
        };
        Ok(Self {
            release: field("release")?,
            commit: field("commit-hash").unwrap_or_else(|_| "unknown".into()),
            llvm: field("LLVM version")?,
        })
    }
}

/// The one that is called `wanted`, else the first.
fn preferred(mut usable: Vec<DeviceToolchain>, wanted: Option<&str>) -> Option<DeviceToolchain> {
    let like = usable.iter().position(|found| Some(found.version.to_string().as_str()) == wanted);
    (!usable.is_empty()).then(|| usable.swap_remove(like.unwrap_or(0)))
}

fn missing(reasons: &[(&str, String)]) -> Error {
    let mut advice = String::new();
    for (origin, reason) in reasons {
        advice.push_str(&format!("  {origin}: {reason}\n"));
    }
    Error::Missing { what: "a compiler for the device crate".into(), advice: advice + ADVICE }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERBOSE: &str = "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc\ncommit-hash: ac68\n\
                           host: x86_64-unknown-linux-gnu\nrelease: 1.96.0\nLLVM version: 22.1.8\n";

    #[test]
    fn the_verbose_version_is_understood() {
        let version = Version::parse(VERBOSE).unwrap();
        assert_eq!(version.to_string(), "rustc 1.96.0 (ac68), LLVM 22.1.8");
        assert!(Version::parse("rustc 1.96.0").unwrap_err().contains("release"));
    }

    #[test]
    fn the_stamped_compiler_is_preferred() {
        let named = |release: &str| {
            let version = Version { release: release.into(), commit: "ac68".into(), llvm: "22.1.8".into() };
            DeviceToolchain { rustc: release.into(), origin: "test", version }
        };
        let both = || vec![named("1.101.0-nightly"), named("1.96.0")];
        let chosen = |wanted| preferred(both(), wanted).unwrap().version.release;
        assert_eq!(chosen(None), "1.101.0-nightly");
        assert_eq!(chosen(Some("rustc 1.96.0 (ac68), LLVM 22.1.8")), "1.96.0");
        assert_eq!(chosen(Some("rustc 1.95.0 (ac68), LLVM 22.1.8")), "1.101.0-nightly");
        assert!(preferred(Vec::new(), None).is_none());
    }

    #[test]
    fn a_refused_choice_says_why_and_what_to_install() {
        let error = DeviceToolchain::find(Some(Path::new("no-such-rustc"))).unwrap_err().to_string();
        assert!(error.contains("no-such-rustc"), "{error}");
        assert!(error.contains("rustup toolchain install") && error.contains("rust-web-src"), "{error}");
    }
}
