//! Dense stereo matching: disparity maps from rectified pairs, by semi-global matching (SGM), the
//! same bytes on the CPU and on the GPU.
//!
//! [`Matcher`] is the entry point, [`Params`] what it computes, [`Options`] where it runs.

pub mod color;
mod cpu;
#[cfg_attr(not(cuda), path = "cuda/absent.rs")]
pub mod cuda;
mod device_code;
mod device_image;
mod direction;
mod disparity;
mod error;
pub mod eval;
mod gpu;
pub mod io;
pub mod masda;
mod matcher;
mod memory;
mod params;
pub mod pipeline;
pub mod reference;
mod report;
mod scene;
mod times;
mod tuning;
mod view;

pub use cpu::{CpuLevel, LEVEL_VARIABLE};
pub use device_code::{DeviceCode, PTX_DIR_VARIABLE, PtxImage, PtxSource};
pub use device_image::{DeviceImage, DevicePair};
pub use direction::Direction;
pub use disparity::DisparityMap;
pub use error::{Error, Result};
pub use gpu::plan::{PathKernel, Plan};
pub use matcher::{Backend, MAX_THREADS, Matcher, Options};
pub use params::{
    Algorithm, Census, Compat, MAX_DISPARITIES, MAX_MASDA_DISPARITIES, MAX_MASDA_ITERATIONS, MAX_SIDE, MasdaParams,
    Params, Paths, SUBPIXEL_BITS, Speckle,
};
pub use report::{Report, StageReport};
pub use scene::{Scene, SceneSpec};
pub use times::Times;
pub use tuning::{PlanSource, Trial, Tuning, TuningKey, TuningReport, cache_folder, clear_cache};
pub use view::{GrayView, Pixels};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
