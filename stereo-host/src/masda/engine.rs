//! The two halves of MASDA and the engine that joins them.

#[cfg(cuda)]
use crate::gpu::on_cuda::CudaExecutor;
use crate::gpu::{masda::GpuPlane, on_emulator::EmulatorExecutor};

use super::{
    Candidates,
    cpu::CpuPlane,
    reference::{ReferencePlane, ReferenceSolver},
    solver::RowSolver,
};
use crate::{
    Algorithm, Backend, DeviceCode, DisparityMap, Error, GrayView, MasdaParams, Options, Params, Report, Result,
    matcher::Engine,
};

/// The first half: from a pair to two candidates per left pixel (masda.md, image plane).
pub trait ImagePlane: Send {
    /// Computes the candidates of a pair. Stages go to `report` when timing is on.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the images and `candidates` differ in size or depth; a device's failure.
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        candidates: &mut Candidates,
        report: &mut Report,
    ) -> Result<()>;

    /// The device's name for the report.
    fn device(&self) -> String;

    /// The PTX in use, for the report; `None` where it is not on a GPU.
    fn device_code(&self) -> Option<DeviceCode> {
        None
    }
}

/// The second half: from candidates to a map (masda.md, graph).
pub trait GraphSolver: Send {
    /// Solves every row, then masks, removes speckles and fills as the parameters say.
    /// `left` is the image the candidates were computed from.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when `candidates`, `left` and `map` differ in size.
    fn solve(
        &mut self,
        candidates: &Candidates,
        left: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()>;
}

/// The image plane of `options.backend`, for any size.
///
/// # Errors
/// Refused parameters, another algorithm than MASDA, a backend that is not available.
pub fn image_plane(params: &Params, options: &Options) -> Result<Box<dyn ImagePlane>> {
    let masda = masda_params(params)?;
    Ok(match resolve_backend(options)? {
        Backend::Reference => Box::new(ReferencePlane::new(params, &masda, options)),
        #[cfg(cuda)]
        Backend::Cuda => {
            let executor = CudaExecutor::new(options.device, &options.ptx)?;
            Box::new(GpuPlane::new(executor, params, &masda, options.timing))
        }
        Backend::Emulator => Box::new(GpuPlane::new(EmulatorExecutor::new(), params, &masda, options.timing)),
        _ => Box::new(CpuPlane::new(params, &masda, options)?),
    })
}

/// The graph solver that goes with the image plane of `options.backend`: the plain one for
/// [`Backend::Reference`], else threads over rows.
///
/// # Errors
/// Refused parameters, another algorithm than MASDA.
pub fn graph_solver(params: &Params, options: &Options) -> Result<Box<dyn GraphSolver>> {
    build_solver(params, options, false)
}

/// [`graph_solver`], its threads bound to cores where `pinned` says so.
pub(crate) fn build_solver(params: &Params, options: &Options, pinned: bool) -> Result<Box<dyn GraphSolver>> {
    let masda = masda_params(params)?;
    Ok(match resolve_backend(options)? {
        Backend::Reference => Box::new(ReferenceSolver::new(params, &masda, options)),
        _ => Box::new(RowSolver::new(params, &masda, options, pinned)?),
    })
}

fn masda_params(params: &Params) -> Result<MasdaParams> {
    params.validate()?;
    match params.algorithm {
        Algorithm::Masda(masda) => Ok(masda),
        Algorithm::Sgm => Err(Error::parameter("algorithm", "sgm", "masda for the two halves of masda.md")),
    }
}

/// The backend that runs the image plane: a GPU if there is one, else the CPU.
pub(crate) fn resolve_backend(options: &Options) -> Result<Backend> {
    let cuda = || Backend::Cuda.availability_with(&options.ptx);
    match options.backend {
        Backend::Auto => Ok(if cuda().is_ok() { Backend::Cuda } else { Backend::Cpu }),
        Backend::Cuda => cuda().map(|()| Backend::Cuda),
        named @ (Backend::Cpu | Backend::Reference | Backend::Emulator) => Ok(named),
    }
}

/// Refuses images and candidates that do not belong together.
pub(crate) fn check_sizes(left: &GrayView<'_>, candidates: &Candidates) -> Result<()> {
    let (image, pairs) = ((left.width(), left.height()), (candidates.width(), candidates.height()));
    if image == pairs {
        return Ok(());
    }
    let text = |(width, height)| format!("{width}x{height}");
    Err(Error::Mismatch {
        what: "candidates' size",
        got: text(pairs),
        expected: format!("the image's {}", text(image)),
    })
}

/// Refuses images that do not belong together.
pub(crate) fn check_pair(left: &GrayView<'_>, right: &GrayView<'_>) -> Result<()> {
    let of = |view: &GrayView<'_>| format!("{}x{}, {} bits", view.width(), view.height(), view.pixels().bits());
    let (got, expected) = (of(right), of(left));
    if got == expected { Ok(()) } else { Err(Error::Mismatch { what: "right image", got, expected }) }
}

/// Refuses a map that is not one of these candidates.
pub(super) fn check_map(candidates: &Candidates, map: &DisparityMap, params: &Params) -> Result<()> {
    let of = |w, h, scale: i32, invalid: i32| format!("{w}x{h}, scale {scale}, invalid {invalid}");
    let got = of(map.width(), map.height(), map.scale().into(), map.invalid().into());
    let expected = of(candidates.width(), candidates.height(), params.scale(), params.invalid_value());
    if got == expected { Ok(()) } else { Err(Error::Mismatch { what: "disparity map", got, expected }) }
}

/// Runs `work`, as a stage of the report when timing is on.
pub(super) fn timed<T>(
    report: &mut Report,
    timing: bool,
    stage: &'static str,
    variant: &str,
    work: impl FnOnce() -> T,
) -> T {
    if timing { report.time(stage, variant, work) } else { work() }
}

/// Both halves one after the other: MASDA as a backend of [`crate::Matcher`].
pub(crate) struct MasdaEngine {
    plane: Box<dyn ImagePlane>,
    solver: Box<dyn GraphSolver>,
    candidates: Candidates,
}

impl MasdaEngine {
    pub(crate) fn new(width: usize, height: usize, params: &Params, options: &Options) -> Result<Self> {
        Ok(Self {
            plane: image_plane(params, options)?,
            solver: graph_solver(params, options)?,
            candidates: Candidates::new(width, height)?,
        })
    }
}

impl Engine for MasdaEngine {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        self.plane.compute(left, right, &mut self.candidates, report)?;
        self.solver.solve(&self.candidates, left, map, report)
    }

    fn device(&self) -> String {
        self.plane.device()
    }

    fn device_code(&self) -> Option<DeviceCode> {
        self.plane.device_code()
    }
}
