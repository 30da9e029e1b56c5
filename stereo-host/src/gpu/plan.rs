//! Which kernels and streams a match on a GPU uses. No plan changes a byte of the result.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use stereo_kernels::aggregate::bulk;

use crate::{Direction, Error, Result};

/// How the path costs of one direction are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathKernel {
    /// Costs are loaded into registers ahead of their use.
    #[default]
    Plain,
    /// Bulk copies bring the costs into shared memory (tma.md); from compute capability 9.0 on.
    Bulk {
        /// Steps of a path per copy stage: a power of two up to 16.
        chunk: u32,
        /// Stages in flight, at least 2.
        stages: u32,
    },
    /// The same for the horizontal directions with two-dimensional copies, one for all rows of a warp
    /// (a tensor map, tma.md); for 64, 128 and 256 disparities.
    Tiles {
        /// Steps of a path per copy stage: a power of two up to 16, and at most 2048 bytes of costs.
        chunk: u32,
        /// Stages in flight, at least 2.
        stages: u32,
    },
}

impl PathKernel {
    /// The chunk's length as a power of two.
    pub(crate) fn step_bits(chunk: u32) -> u32 {
        chunk.trailing_zeros()
    }

    /// Chunk and stages of the copies; `None` for plain kernels.
    pub(crate) fn ring(self) -> Option<(u32, u32)> {
        match self {
            Self::Plain => None,
            Self::Bulk { chunk, stages } | Self::Tiles { chunk, stages } => Some((chunk, stages)),
        }
    }

    fn validate(self) -> Result<()> {
        let Some((chunk, stages)) = self.ring() else { return Ok(()) };
        if !chunk.is_power_of_two() || chunk > bulk::MAX_STEPS {
            return Err(Error::parameter("chunk", chunk, format!("a power of two up to {}", bulk::MAX_STEPS)));
        }
        if !(2..=MAX_STAGES).contains(&stages) {
            return Err(Error::parameter("stages", stages, format!("2 to {MAX_STAGES}")));
        }
        Ok(())
    }
}

/// The most stages in flight: more never helped, and their barriers have a fixed place.
const MAX_STAGES: u32 = 16;

/// The most streams that directions are spread over: one each.
pub(crate) const MAX_STREAMS: u32 = 8;

/// Kernels and streams of a match on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// For left-to-right and right-to-left.
    pub horizontal: PathKernel,
    /// For up-to-down and down-to-up.
    pub vertical: PathKernel,
    /// For the diagonals.
    pub oblique: PathKernel,
    /// Streams that the directions are spread over, 1 to 8.
    pub streams: u32,
    /// Whether the horizontal directions' streams have priority over the others'.
    pub horizontal_first: bool,
}

impl Plan {
    /// Plain kernels, a stream per direction: right on every GPU.
    pub const PLAIN: Self = Self {
        horizontal: PathKernel::Plain,
        vertical: PathKernel::Plain,
        oblique: PathKernel::Plain,
        streams: MAX_STREAMS,
        horizontal_first: true,
    };

    /// The kernel for a direction.
    pub fn kernel(&self, direction: Direction) -> PathKernel {
        match direction.offset() {
            (_, 0) => self.horizontal,
            (0, _) => self.vertical,
            _ => self.oblique,
        }
    }

    /// Whether it needs bulk copies.
    pub fn needs_bulk(&self) -> bool {
        [self.horizontal, self.vertical, self.oblique].iter().any(|kernel| *kernel != PathKernel::Plain)
    }

    /// Checks every number against its range.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first value that is refused and its limit.
    pub fn validate(&self) -> Result<()> {
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Err(Error::parameter("streams", self.streams, format!("1 to {MAX_STREAMS}")));
        }
        for (group, kernel) in [("vertical", self.vertical), ("oblique", self.oblique)] {
            if let PathKernel::Tiles { .. } = kernel {
                return Err(Error::parameter(group, "tiles", "plain or bulk: tiles are for the horizontal directions"));
            }
        }
        [self.horizontal, self.vertical, self.oblique].into_iter().try_for_each(PathKernel::validate)
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl fmt::Display for Plan {
    /// One line of JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Plan {
    type Err = Error;

    /// Reads JSON and checks the plan.
    fn from_str(json: &str) -> Result<Self> {
        let plan: Self = serde_json::from_str(json).map_err(|error| {
            Error::parameter("plan", json.trim(), format!("auto, cached, plain or a plan as JSON ({error})"))
        })?;
        plan.validate()?;
        Ok(plan)
    }
}
