//! MASDA: dense matching by one-to-one assignment on each row (masda.md).
//!
//! Two halves that run on different frames at the same time in a [`crate::pipeline`]:
//! an [`ImagePlane`] reduces a pair to two [`Candidates`] per pixel, and a [`GraphSolver`] decides among them.
//! [`mod@reference`] is the plain definition of both and the referee; [`crate::Matcher`] joins them.
//!
//! 16-bit images are taken: the census compares all 16 bits, while the intensity score and the filter's
//! coefficients see a difference shifted right by 8, since their tables have 256 entries. Images whose
//! values fill only part of 16 bits (10- or 12-bit sensors) should be shifted up first.

mod candidates;
mod cpu;
mod engine;
pub mod reference;
mod solver;
mod tables;
mod threads;

pub use candidates::{Candidate, Candidates};
pub use engine::{GraphSolver, ImagePlane, graph_solver, image_plane};
pub(crate) use engine::{MasdaEngine, build_solver, check_pair, check_sizes, resolve_backend};
pub use tables::{CENSUS_BITS, LEVELS, ONE, Tables, level_difference};

/// The stages' names in a [`crate::Report`], the same on every backend.
pub mod stage {
    /// Both images' descriptors.
    pub const CENSUS: &str = "census";
    /// The filter's coefficients of every pixel and pass.
    pub const COEFFICIENTS: &str = "coefficients";
    /// The graded score, unless it is fused into the next pass.
    pub const SCORE: &str = "score";
    /// The filter's first pass.
    pub const HORIZONTAL_FORWARD: &str = "horizontal forward";
    /// The score and the first pass in one kernel.
    pub const SCORE_AND_FORWARD: &str = "score, horizontal forward";
    /// The filter's second pass.
    pub const HORIZONTAL_BACKWARD: &str = "horizontal backward";
    /// The score and the first two passes where they are one loop over rows.
    pub const ROWS: &str = "score, horizontal forward and backward";
    /// The filter's third pass.
    pub const VERTICAL_FORWARD: &str = "vertical forward";
    /// The filter's last pass.
    pub const VERTICAL_BACKWARD: &str = "vertical backward";
    /// The last pass and the best two in one kernel.
    pub const BACKWARD_AND_TOP_TWO: &str = "vertical backward, top two";
    /// The best two candidates, unless that is fused into the last pass.
    pub const TOP_TWO: &str = "top two";
    /// The last two passes and the best two where they are one loop over column strips.
    pub const COLUMNS: &str = "vertical forward and backward, top two";
    /// Messages and decoding of every row.
    pub const SOLVE: &str = "solve";
    /// Speckle removal.
    pub const SPECKLE: &str = crate::reference::stage::SPECKLE;
    /// Filling and its median.
    pub const FILL: &str = crate::reference::stage::FILL;
}
