//! The choice of a [`Plan`] by measurement: which kernels and streams are fastest depends on the
//! device, the size and the number of disparities, and no rule is known that is right on all (tma.md).
//!
//! | file | holds |
//! |---|---|
//! | `search` | which plans are measured, in what order, and what counts as faster |
//! | `cache` | the choices made before, one file each |

pub(crate) mod cache;
pub(crate) mod search;

use std::{fmt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Error, Paths, Plan, Result, Times};

/// How a matcher on a GPU comes to its [`Plan`]. Elsewhere nothing is chosen: the emulator takes
/// [`Plan::PLAIN`] unless a plan is given, the CPU has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tuning {
    /// The plan measured before for this device, size, disparities, paths and program; without one,
    /// measure now, which takes up to two seconds, and remember the result in the user's cache folder
    /// (`STEREO_CACHE_DIR` names another). For matchers that are built once and used for many frames.
    #[default]
    Auto,
    /// The plan measured before; without one, [`Plan::PLAIN`]. Never measures: for a single pair.
    Cached,
    /// This plan.
    Fixed(Plan),
}

impl FromStr for Tuning {
    type Err = Error;

    /// Reads `auto`, `cached`, `plain`, or a plan as JSON.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "cached" => Ok(Self::Cached),
            "plain" => Ok(Self::Fixed(Plan::PLAIN)),
            json => json.parse().map(Self::Fixed),
        }
    }
}

/// Where the plan of a match comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanSource {
    /// [`Tuning::Fixed`].
    Given,
    /// Measured when the matcher was built, or by [`crate::Matcher::tune`].
    Measured,
    /// Measured earlier.
    Cache,
    /// [`Plan::PLAIN`], since none was measured or nothing can be.
    Default,
}

impl fmt::Display for PlanSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "given",
            Self::Measured => "measured",
            Self::Cache => "measured earlier",
            Self::Default => "default",
        })
    }
}

/// What a measured plan is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningKey {
    /// The GPU's name and compute capability.
    pub device: String,
    /// The driver's version, which stands for its compiler.
    pub driver: String,
    /// The version of this program and a digest of the device code.
    pub program: String,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Disparities as the cost volume holds them: rounded up to what the kernels take.
    pub disparities: u32,
    /// Path directions.
    pub paths: Paths,
}

/// One measured plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The plan.
    pub plan: Plan,
    /// How often it ran.
    pub runs: usize,
    /// Device time of a frame, without copies from and to the host.
    #[serde(flatten)]
    pub times: Times,
}

/// What a tuning run measured and chose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TuningReport {
    /// What the choice is valid for.
    pub key: TuningKey,
    /// The choice.
    pub plan: Plan,
    /// The choice's and [`Plan::PLAIN`]'s times, measured in turn at the end.
    pub chosen: Times,
    /// See [`TuningReport::chosen`].
    pub plain: Times,
    /// Whether every candidate was measured before the time was up.
    pub complete: bool,
    /// How long it took.
    pub seconds: f64,
    /// Every measured plan, in the order of the first measurement.
    pub trials: Vec<Trial>,
    /// Where the choice was stored; `None` when the cache folder cannot be written.
    pub file: Option<PathBuf>,
}

/// Removes every stored choice; returns how many there were.
///
/// # Errors
/// [`Error::File`] when a file is there but cannot be removed.
pub fn clear_cache() -> Result<usize> {
    cache::Cache::from_env().map_or(Ok(0), |cache| cache.clear())
}

/// The folder with the stored choices: `STEREO_CACHE_DIR`, else `stereo` in the user's cache folder.
pub fn cache_folder() -> Option<PathBuf> {
    cache::Cache::from_env().map(|cache| cache.folder().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathKernel;

    #[test]
    fn tunings_by_name_and_by_plan() {
        assert_eq!("auto".parse::<Tuning>().unwrap(), Tuning::Auto);
        assert_eq!("cached".parse::<Tuning>().unwrap(), Tuning::Cached);
        assert_eq!("plain".parse::<Tuning>().unwrap(), Tuning::Fixed(Plan::PLAIN));
        let plan = Plan { vertical: PathKernel::Bulk { chunk: 8, stages: 4 }, streams: 2, ..Plan::PLAIN };
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(json.parse::<Tuning>().unwrap(), Tuning::Fixed(plan));
        assert_eq!(plan.to_string(), json, "a plan prints as it is read");
        for (text, words) in [
            ("fast", "fast"),
            ("{}", "horizontal"),
            (&json.replace("\"streams\":2", "\"streams\":9"), "streams = 9"),
            (&json.replace("\"chunk\":8", "\"chunk\":7"), "chunk = 7"),
            (&json.replace("\"streams\"", "\"threads\""), "threads"),
        ] {
            let error = text.parse::<Tuning>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
