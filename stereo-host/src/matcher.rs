//! The matcher: built for a size, reused across frames.

use std::{fmt, path::PathBuf, str::FromStr, time::Instant};

use serde::{Deserialize, Serialize};

#[cfg(cuda)]
use crate::gpu::on_cuda::CudaExecutor;
use crate::gpu::{engine::GpuSgm, on_emulator::EmulatorExecutor};
use crate::{
    Algorithm, CpuLevel, DeviceCode, DeviceImage, DevicePair, DisparityMap, Error, GrayView, Params, Plan, PlanSource,
    PtxSource, Report, Result, Tuning, TuningReport, cpu::CpuEngine, device_image, masda, masda::MasdaEngine,
    reference, view::check_size,
};

/// Where a match runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The best one available: CUDA, else the CPU.
    #[default]
    Auto,
    /// The scalar definition: slow, and the referee of all others.
    Reference,
    /// Threads and vector instructions.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// The GPU kernels run on the CPU, checked for races and out-of-bounds access: small images only.
    Emulator,
}

impl Backend {
    /// Every backend that can be asked for by name, [`Backend::Auto`] left out.
    pub const ALL: [Self; 4] = [Self::Cuda, Self::Cpu, Self::Reference, Self::Emulator];

    /// The name as the command spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Reference => "reference",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Emulator => "emulator",
        }
    }

    /// Whether a matcher can be built on this backend here.
    ///
    /// # Errors
    /// [`Error::Unavailable`] says why not.
    pub fn availability(self) -> Result<()> {
        self.availability_with(&PtxSource::Environment)
    }

    /// What [`Backend::Auto`] stands for on this machine; any other backend is itself.
    pub fn resolve(self) -> Self {
        self.resolve_with(&PtxSource::Environment)
    }

    /// As [`Backend::availability`], with the PTX of `ptx`.
    pub(crate) fn availability_with(self, ptx: &PtxSource) -> Result<()> {
        match self {
            Self::Auto | Self::Reference | Self::Cpu | Self::Emulator => Ok(()),
            Self::Cuda => crate::cuda::device::availability_with(None, ptx),
        }
    }

    /// As [`Backend::resolve`], with the PTX of `ptx`.
    fn resolve_with(self, ptx: &PtxSource) -> Self {
        match self {
            Self::Auto => [Self::Cuda, Self::Cpu]
                .into_iter()
                .find(|backend| backend.availability_with(ptx).is_ok())
                .unwrap_or(Self::Reference),
            named => named,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .chain([Self::Auto])
            .find(|backend| backend.name() == name)
            .ok_or_else(|| Error::parameter("backend", name, "auto, cuda, cpu, reference or emulator"))
    }
}

/// The most CPU threads that a matcher takes: beyond any machine's cores, starting them alone takes minutes.
pub const MAX_THREADS: usize = 1024;

/// How a matcher runs, as opposed to what it computes: no option changes a byte of the result, as long as the PTX of a
/// folder is of this version's kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where to run.
    pub backend: Backend,
    /// CPU threads, at most [`MAX_THREADS`]; `None` takes all. The result does not depend on it.
    pub threads: Option<usize>,
    /// Which GPU, by the driver's number; `None` takes the first.
    pub device: Option<u32>,
    /// Where a GPU's PTX comes from; read when a matcher is built.
    pub ptx: PtxSource,
    /// How a GPU's kernels and streams are chosen.
    pub tuning: Tuning,
    /// Measure every stage (costs a little; on a GPU, an event per kernel).
    pub timing: bool,
}

impl Options {
    /// These options with the PTX of `folder`, in files that are named as in `stereo-host/ptx`, whatever
    /// `STEREO_PTX_DIR` says. As with anything else that a GPU lacks, [`Backend::Auto`] takes the CPU where the folder
    /// has nothing for it; [`Backend::Cuda`] fails and says why.
    ///
    /// ```no_run
    /// use stereo_host::{Backend, Matcher, Options, Params};
    /// let options = Options { backend: Backend::Cuda, ..Options::default() }.with_ptx_folder("ptx/rust-cuda");
    /// let matcher = Matcher::new(1920, 1080, &Params::default(), &options)?;
    /// # Ok::<(), stereo_host::Error>(())
    /// ```
    #[must_use]
    pub fn with_ptx_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { ptx: PtxSource::Folder(folder.into()), ..self }
    }

    /// How many threads a pool of this matcher has: what was asked for, else one per core.
    pub(crate) fn pool_threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores).min(MAX_THREADS)
    }

    /// Checks what does not depend on the machine.
    pub(crate) fn validate(&self) -> Result<()> {
        match self.threads {
            Some(threads) if !(1..=MAX_THREADS).contains(&threads) => {
                Err(Error::parameter("threads", threads, format!("1 to {MAX_THREADS}")))
            }
            _ => Ok(()),
        }
    }
}

/// One backend's implementation, built for a size and parameters that were checked.
///
/// `left` and `right` have the built size and the same depth; `map` has the built size and units.
pub(crate) trait Engine: Send {
    /// Matches one pair. Stages go to `report` when timing is on.
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()>;

    /// Queues the match of a pair in device memory; the map goes to device memory, too. Where the host
    /// has to finish it, this waits, and tells `report`.
    ///
    /// # Safety
    /// As [`Matcher::queue_device`]. The addresses and pitches were checked.
    unsafe fn queue_device(&mut self, _pair: &DevicePair, _map: DeviceImage, _report: &mut Report) -> Result<()> {
        Err(self.not_a_gpu("device memory is taken"))
    }

    /// Waits for what is queued; what the device says of it goes to `report`.
    fn synchronize(&mut self, _report: &mut Report) -> Result<()> {
        Ok(())
    }

    /// The driver's handle of the stream that frames begin and end on.
    fn stream(&self) -> Option<u64> {
        None
    }

    /// Measures plans, takes the fastest and stores it.
    fn tune(&mut self) -> Result<TuningReport> {
        Err(self.not_a_gpu("plans are measured"))
    }

    /// The kernels and streams in use, and where that choice comes from.
    fn plan(&self) -> Option<(Plan, PlanSource)> {
        None
    }

    /// The device's name for the report.
    fn device(&self) -> String;

    /// The PTX in use.
    fn device_code(&self) -> Option<DeviceCode> {
        None
    }

    /// The error of an engine without a GPU.
    fn not_a_gpu(&self, what: &str) -> Error {
        let reason = format!("{what} on a GPU only; this matcher runs on {}", self.device());
        Error::Unavailable { backend: Backend::Cuda.name(), reason }
    }
}

/// A stereo matcher for pairs of one size. Build it once and reuse it: after the first frame of a
/// depth, `compute_into` allocates no working memory.
///
/// ```
/// use stereo_host::{Backend, GrayView, Matcher, Options, Params};
/// let pixels: Vec<u8> = (0..64 * 48).map(|i| (i * 7919 >> 3) as u8).collect();
/// let view = GrayView::from_u8(&pixels, 64, 48)?;
/// let params = Params { disparities: 16, ..Params::default() };
/// let mut matcher = Matcher::new(64, 48, &params, &Options::default())?;
/// let map = matcher.compute(&view, &view)?;
/// assert_eq!(map.get(40, 24), Some(0.0));
/// # Ok::<(), stereo_host::Error>(())
/// ```
pub struct Matcher {
    engine: Box<dyn Engine>,
    params: Params,
    width: usize,
    height: usize,
    backend: Backend,
    report: Report,
}

impl Matcher {
    /// A matcher for left and right images of `width x height`.
    ///
    /// # Errors
    /// Refused parameters or sizes, a backend that is not available, or too little memory.
    pub fn new(width: usize, height: usize, params: &Params, options: &Options) -> Result<Self> {
        Self::check_build(width, height, params, options)?;
        if let Algorithm::Masda(_) = params.algorithm {
            let backend = masda::resolve_backend(options)?;
            let engine = Box::new(MasdaEngine::new(width, height, params, &Options { backend, ..options.clone() })?);
            return Ok(Self { engine, params: params.clone(), width, height, backend, report: Report::default() });
        }
        let backend = options.backend.resolve_with(&options.ptx);
        backend.availability_with(&options.ptx)?;
        let engine: Box<dyn Engine> = match backend {
            Backend::Reference => Box::new(reference::ReferenceEngine::new(width, height, params, options)?),
            Backend::Cpu => Box::new(CpuEngine::new(width, height, params, options, CpuLevel::choose()?)?),
            #[cfg(cuda)]
            Backend::Cuda => {
                let executor = CudaExecutor::new(options.device, &options.ptx)?;
                Box::new(GpuSgm::new(executor, width, height, params, options)?)
            }
            Backend::Emulator => Box::new(GpuSgm::new(EmulatorExecutor::new(), width, height, params, options)?),
            _ => unreachable!("refused by availability()"),
        };
        Ok(Self { engine, params: params.clone(), width, height, backend, report: Report::default() })
    }

    /// A matcher on the CPU with the vector instructions of `level`, for tests and comparisons:
    /// [`Matcher::new`] takes the best ones, or those that [`crate::LEVEL_VARIABLE`] names.
    ///
    /// # Errors
    /// As [`Matcher::new`]; also when this machine does not have the level, and for another algorithm than SGM.
    pub fn with_cpu_level(
        width: usize,
        height: usize,
        params: &Params,
        options: &Options,
        level: CpuLevel,
    ) -> Result<Self> {
        Self::check_build(width, height, params, options)?;
        if let Algorithm::Masda(_) = params.algorithm {
            let reason = "vector levels are SGM's; MASDA on the CPU has none to choose from".to_owned();
            return Err(Error::Unavailable { backend: Backend::Cpu.name(), reason });
        }
        let engine = Box::new(CpuEngine::new(width, height, params, options, level)?);
        let (params, report) = (params.clone(), Report::default());
        Ok(Self { engine, params, width, height, backend: Backend::Cpu, report })
    }

    fn check_build(width: usize, height: usize, params: &Params, options: &Options) -> Result<()> {
        check_size(width, height)?;
        params.validate()?;
        options.validate()
    }

    /// Matches a pair into a new map.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the images differ from each other or from the built size; a device's failure.
    pub fn compute(&mut self, left: &GrayView<'_>, right: &GrayView<'_>) -> Result<DisparityMap> {
        let mut map = DisparityMap::new(self.width, self.height, &self.params)?;
        self.compute_into(left, right, &mut map)?;
        Ok(map)
    }

    /// Matches a pair into an existing map of this matcher's size and units.
    ///
    /// # Errors
    /// As [`Matcher::compute`]; also when `map` has another size, scale or invalid value.
    pub fn compute_into(&mut self, left: &GrayView<'_>, right: &GrayView<'_>, map: &mut DisparityMap) -> Result<()> {
        self.check_pair(left, right)?;
        self.check_map(map)?;
        let start = self.begin();
        self.engine.compute(left, right, map, &mut self.report)?;
        self.report.total_ms = start.elapsed().as_secs_f64() * 1e3;
        Ok(())
    }

    /// Matches a pair in the memory of the matcher's GPU into a map there: 16-bit disparities as in
    /// [`DisparityMap`], and the same bytes as [`Matcher::compute`] gives. Waits for the result.
    ///
    /// ```no_run
    /// use stereo_host::{Backend, DeviceImage, DevicePair, Matcher, Options, Params};
    /// # let (left, right, map) = (0, 0, 0);
    /// let options = Options { backend: Backend::Cuda, ..Options::default() };
    /// let mut matcher = Matcher::new(1920, 1080, &Params::default(), &options)?;
    /// let image = |address| DeviceImage::dense(address, 1920);
    /// let pair = DevicePair { left: image(left), right: image(right), bits: 8 };
    /// // SAFETY: the three buffers are of that size, and no work on them is under way.
    /// unsafe { matcher.compute_device(&pair, DeviceImage::dense(map, 1920 * 2))? };
    /// # Ok::<(), stereo_host::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`Matcher::queue_device`], until this returns.
    ///
    /// # Errors
    /// As [`Matcher::queue_device`] and [`Matcher::synchronize`].
    pub unsafe fn compute_device(&mut self, pair: &DevicePair, map: DeviceImage) -> Result<()> {
        let start = Instant::now();
        // SAFETY: the caller's promise.
        unsafe { self.queue_device(pair, map)? };
        self.synchronize()?;
        self.report.total_ms = start.elapsed().as_secs_f64() * 1e3;
        Ok(())
    }

    /// As [`Matcher::compute_device`], but only queues the work, on the stream that
    /// [`Matcher::stream`] names; any number of frames may be queued, and are matched in order.
    /// [`Matcher::synchronize`] waits for them. Speckle removal and filling run on the host: with them
    /// this waits until they are done.
    ///
    /// # Safety
    /// From the moment when the matcher's stream reaches this work until it is done, both images and
    /// the map are in memory that the GPU can access, with as many rows as the matcher's height, and
    /// no other work writes the images or touches the map. Work that makes or uses them is ordered
    /// with the matcher's stream, or waited for.
    ///
    /// # Errors
    /// [`Error::Unavailable`] on any backend but [`Backend::Cuda`], [`Error::Image`] for a pair or map
    /// that cannot be one; the driver's.
    pub unsafe fn queue_device(&mut self, pair: &DevicePair, map: DeviceImage) -> Result<()> {
        device_image::check(pair, map, self.width)?;
        self.begin();
        // SAFETY: the caller's promise.
        unsafe { self.engine.queue_device(pair, map, &mut self.report) }
    }

    /// Waits for all that [`Matcher::queue_device`] has queued. The report is then about the last
    /// frame of it.
    ///
    /// # Errors
    /// A device's failure.
    pub fn synchronize(&mut self) -> Result<()> {
        self.engine.synchronize(&mut self.report)
    }

    /// The driver's handle (`CUstream`) of the stream on which [`Matcher::queue_device`] queues, in the
    /// device's primary context; `None` where there is none. It is the matcher's: order work with it
    /// by events, but do not destroy it.
    pub fn stream(&self) -> Option<u64> {
        self.engine.stream()
    }

    /// Measures plans on the device, for up to two seconds, takes the fastest and stores it for
    /// [`Tuning::Auto`] and [`Tuning::Cached`], whatever was stored before.
    ///
    /// # Errors
    /// [`Error::Unavailable`] on any backend but [`Backend::Cuda`]; a device's failure. A cache folder
    /// that cannot be written is a warning only, and no file in the report.
    pub fn tune(&mut self) -> Result<TuningReport> {
        self.engine.tune()
    }

    /// The kernels and streams in use, and where that choice comes from; `None` on the CPU.
    pub fn plan(&self) -> Option<(Plan, PlanSource)> {
        self.engine.plan()
    }

    /// What the last match did.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The backend in use, never [`Backend::Auto`].
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The parameters this matcher was built with.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Width and height of the images it takes.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Starts the report of a frame.
    fn begin(&mut self) -> Instant {
        let start = Instant::now();
        self.report.stages.clear();
        self.report.device_ms = None;
        self.report.backend = self.backend.name();
        (self.report.plan, self.report.plan_source) = self.engine.plan().unzip();
        if self.report.device.is_empty() {
            self.report.device = self.engine.device();
            self.report.device_code = self.engine.device_code();
        }
        start
    }

    fn check_pair(&self, left: &GrayView<'_>, right: &GrayView<'_>) -> Result<()> {
        let size = |v: &GrayView<'_>| format!("{}x{}", v.width(), v.height());
        let (l, r) = (size(left), size(right));
        if l != r {
            return Err(Error::Mismatch { what: "right image's size", got: r, expected: format!("the left's {l}") });
        }
        if (left.width(), left.height()) != (self.width, self.height) {
            let expected = format!("the matcher's {}x{}", self.width, self.height);
            return Err(Error::Mismatch { what: "image size", got: l, expected });
        }
        let (l, r) = (left.pixels().bits(), right.pixels().bits());
        if l != r {
            let expected = format!("the left's {l} bits");
            return Err(Error::Mismatch { what: "right image's depth", got: format!("{r} bits"), expected });
        }
        Ok(())
    }

    fn check_map(&self, map: &DisparityMap) -> Result<()> {
        let of = |w, h, scale: i32, invalid: i32| format!("{w}x{h}, scale {scale}, invalid {invalid}");
        let got = of(map.width(), map.height(), map.scale().into(), map.invalid().into());
        let expected = of(self.width, self.height, self.params.scale(), self.params.invalid_value());
        if got == expected { Ok(()) } else { Err(Error::Mismatch { what: "disparity map", got, expected }) }
    }
}
