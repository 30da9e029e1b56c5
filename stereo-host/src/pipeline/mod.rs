//! Streams of pairs: several frames in flight, one named thread per role, bounded queues between them.
//!
//! ```text
//! source -> stereo-load -> stereo-match ---------------------------> consumer      (SGM)
//! source -> stereo-load -> stereo-match -> stereo-solve -----------> consumer      (MASDA)
//! ```
//!
//! With MASDA the image plane of frame `t + 1` is computed while frame `t` is solved (masda.md, pipeline). Every map is what
//! [`crate::Matcher`] gives for the same pair, in the source's order.
//!
//! A slow consumer slows the source down and loses no frame, unless [`PipelineOptions::latest_only`] is set: then a frame that
//! waits to be matched is replaced by a newer one. Dropping the [`Stream`] stops every stage; the first error, in
//! whichever stage, is the stream's last item.
//!
//! ```
//! use std::sync::Arc;
//! use stereo_host::{Options, Params, SceneSpec, pipeline::{Pipeline, PipelineOptions}};
//!
//! let spec = SceneSpec { width: 64, height: 48, disparities: 16, ..SceneSpec::default() };
//! let scene = Arc::new(spec.render()?);
//! let params = Params { disparities: 16, ..Params::default() };
//! let pipeline = Pipeline::new(64, 48, &params, &Options::default(), &PipelineOptions::default())?;
//! for frame in pipeline.start((0..3).map(move |_| Ok(scene.clone())))? {
//!     let frame = frame?;
//!     println!("frame {}: {:.0} % valid after {:?}", frame.index, 100.0 * frame.map.density(), frame.latency);
//! }
//! # Ok::<(), stereo_host::Error>(())
//! ```
//!
//! A channel is a source as well: `receiver.into_iter().map(Ok)`.

mod latest;
mod queue;
mod stages;
mod stream;
mod summary;

use std::sync::Arc;

pub use stream::{Frame, Stream};
pub use summary::{Latency, Summary};

use crate::{
    Algorithm, Error, GrayView, Matcher, Options, Params, Result, Scene,
    io::Gray,
    masda::{self, GraphSolver, ImagePlane},
    view::check_size,
};

/// The most frames that may wait between two stages.
pub const MAX_DEPTH: usize = 1024;

/// A rectified pair that owns its pixels, so that it can wait in a queue.
pub trait StereoPair: Send + 'static {
    /// The left and the right image.
    ///
    /// # Errors
    /// When the pixels do not make a view.
    fn views(&self) -> Result<(GrayView<'_>, GrayView<'_>)>;
}

impl StereoPair for (Gray, Gray) {
    fn views(&self) -> Result<(GrayView<'_>, GrayView<'_>)> {
        Ok((self.0.view()?, self.1.view()?))
    }
}

impl StereoPair for Scene {
    fn views(&self) -> Result<(GrayView<'_>, GrayView<'_>)> {
        Ok((self.left.view()?, self.right.view()?))
    }
}

impl<P: StereoPair + Sync> StereoPair for Arc<P> {
    fn views(&self) -> Result<(GrayView<'_>, GrayView<'_>)> {
        self.as_ref().views()
    }
}

/// How frames travel, as opposed to what is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineOptions {
    /// Frames that may wait between two stages, `1..=1024`. Default 2.
    pub depth: usize,
    /// Replace a frame that waits to be matched by a newer one, instead of making the source wait: for live sources.
    /// At most one result then waits for the consumer, whatever `depth` is. Default off.
    pub latest_only: bool,
    /// Bind MASDA's solver threads to cores, one each; without effect on anything else. Whether it helps depends on what
    /// else the machine does: measure it. Default off.
    pub pin_solver: bool,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self { depth: 2, latest_only: false, pin_solver: false }
    }
}

impl PipelineOptions {
    fn validate(&self) -> Result<()> {
        if (1..=MAX_DEPTH).contains(&self.depth) {
            return Ok(());
        }
        Err(Error::parameter("depth", self.depth, format!("1 to {MAX_DEPTH}")))
    }

    /// The capacity of the queues behind the first one.
    fn inner_depth(&self) -> usize {
        if self.latest_only { 1 } else { self.depth }
    }
}

/// A pipeline for pairs of one size, ready to start.
pub struct Pipeline {
    work: Work,
    options: PipelineOptions,
}

/// What the matching stages run.
enum Work {
    /// One stage.
    Whole(Box<Matcher>),
    /// Two stages that overlap.
    Halves(Box<Halves>),
}

/// MASDA's two stages.
struct Halves {
    plane: Box<dyn ImagePlane>,
    solver: Box<dyn GraphSolver>,
    params: Params,
    width: usize,
    height: usize,
    backend: &'static str,
}

impl Pipeline {
    /// A pipeline for images of `width x height`: MASDA in two overlapping stages, SGM in one.
    ///
    /// # Errors
    /// As [`Matcher::new`]; a refused depth.
    pub fn new(
        width: usize,
        height: usize,
        params: &Params,
        options: &Options,
        pipeline: &PipelineOptions,
    ) -> Result<Self> {
        pipeline.validate()?;
        options.validate()?;
        check_size(width, height)?;
        let work = match params.algorithm {
            Algorithm::Sgm => Work::Whole(Box::new(Matcher::new(width, height, params, options)?)),
            Algorithm::Masda(_) => {
                let plane = masda::image_plane(params, options)?;
                let solver = masda::build_solver(params, options, pipeline.pin_solver)?;
                let backend = masda::resolve_backend(options)?.name();
                Work::Halves(Box::new(Halves { plane, solver, params: params.clone(), width, height, backend }))
            }
        };
        Ok(Self { work, options: pipeline.clone() })
    }

    /// A pipeline around a matcher, whatever it computes, as one stage.
    ///
    /// # Errors
    /// A refused depth.
    pub fn with_matcher(matcher: Matcher, pipeline: &PipelineOptions) -> Result<Self> {
        pipeline.validate()?;
        Ok(Self { work: Work::Whole(Box::new(matcher)), options: pipeline.clone() })
    }

    /// A pipeline around two halves of MASDA, for example with an image plane of one's own.
    ///
    /// # Errors
    /// Refused parameters, sizes or depth.
    pub fn with_halves(
        width: usize,
        height: usize,
        params: &Params,
        plane: Box<dyn ImagePlane>,
        solver: Box<dyn GraphSolver>,
        pipeline: &PipelineOptions,
    ) -> Result<Self> {
        pipeline.validate()?;
        check_size(width, height)?;
        params.validate()?;
        let halves = Halves { plane, solver, params: params.clone(), width, height, backend: "custom" };
        Ok(Self { work: Work::Halves(Box::new(halves)), options: pipeline.clone() })
    }

    /// Starts the stages on `source` and gives the frames as they are finished. An error from the source is the
    /// stream's last item, after the frames before it.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start<P, S>(self, source: S) -> Result<Stream<P>>
    where
        P: StereoPair,
        S: IntoIterator<Item = Result<P>> + Send + 'static,
    {
        stages::start(self, source)
    }

    /// Starts the stages on `source`, hands every frame to `sink` on the thread `stereo-emit`, and waits for the end.
    ///
    /// # Errors
    /// The first error of any stage, the sink included, whereupon everything stops.
    pub fn run<P, S, F>(self, source: S, mut sink: F) -> Result<Summary>
    where
        P: StereoPair,
        S: IntoIterator<Item = Result<P>> + Send + 'static,
        F: FnMut(Frame<P>) -> Result<()> + Send,
    {
        let mut stream = self.start(source)?;
        std::thread::scope(|scope| {
            let emit = move || {
                for frame in stream.by_ref() {
                    sink(frame?)?;
                }
                Ok(stream.summary())
            };
            let thread = std::thread::Builder::new()
                .name("stereo-emit".to_owned())
                .spawn_scoped(scope, emit)
                .map_err(stages::no_thread)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
