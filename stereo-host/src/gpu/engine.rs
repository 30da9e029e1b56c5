//! The SGM matcher on an executor: frames in, maps out, and the choice of a plan.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{
    executor::Executor,
    plan::Plan,
    sgm::{Buffers, Images, Launches, Pixel, Size, check_plan, runs_as_written},
};
use crate::{
    DeviceCode, DeviceImage, DevicePair, DisparityMap, Error, GrayView, Options, Params, Pixels, PlanSource, Report,
    Result, StageReport, Tuning, TuningKey, TuningReport,
    matcher::Engine,
    reference::{self, stage},
    tuning::{
        cache,
        search::{self, Machine},
    },
};

/// The SGM matcher on an executor.
pub(crate) struct GpuSgm<E: Executor> {
    executor: E,
    params: Params,
    plan: Plan,
    source: PlanSource,
    timing: bool,
    size: Size,
    buffers: Buffers<E>,
    images8: Option<Images<E, u8>>,
    images16: Option<Images<E, u16>>,
    /// The map of a frame that the host has to finish on its way to device memory.
    staging: Option<DisparityMap>,
    /// Whether a frame is queued of which the report knows nothing yet.
    pending: bool,
}

impl<E: Executor> GpuSgm<E> {
    /// A matcher for a size; `params` were validated.
    pub(crate) fn new(executor: E, width: usize, height: usize, params: &Params, options: &Options) -> Result<Self> {
        let size = Size::new(width, height, params);
        let (plan, source) = match options.tuning {
            Tuning::Fixed(plan) => (plan, PlanSource::Given),
            Tuning::Auto | Tuning::Cached => (Plan::PLAIN, PlanSource::Default),
        };
        check_plan(&executor, size, plan)?;
        let buffers = Buffers::new(&executor, size, params)?;
        let mut matcher = Self {
            executor,
            params: params.clone(),
            plan,
            source,
            timing: options.timing,
            size,
            buffers,
            images8: None,
            images16: None,
            staging: None,
            pending: false,
        };
        matcher.choose(options.tuning)?;
        matcher.executor.time_stages(matcher.timing);
        Ok(matcher)
    }

    /// Takes the plan that `tuning` leads to.
    fn choose(&mut self, tuning: Tuning) -> Result<()> {
        let key = match tuning {
            Tuning::Fixed(_) => None,
            Tuning::Auto | Tuning::Cached => self.key(),
        };
        // Without a key there is nothing to measure.
        let Some(key) = key else { return Ok(()) };
        match cache::find(&key).filter(|&plan| self.fits(plan)) {
            Some(plan) => self.take(plan, PlanSource::Cache),
            None if tuning == Tuning::Auto => drop(self.measure(key)?),
            None => {}
        }
        Ok(())
    }

    fn take(&mut self, plan: Plan, source: PlanSource) {
        (self.plan, self.source) = (plan, source);
        // What was recorded for the earlier plan.
        (self.images8, self.images16) = (None, None);
    }

    fn fits(&self, plan: Plan) -> bool {
        check_plan(&self.executor, self.size, plan).is_ok()
    }

    /// What a plan for this matcher is measured for.
    fn key(&self) -> Option<TuningKey> {
        let identity = self.executor.identity()?;
        Some(TuningKey {
            device: identity.device,
            driver: identity.driver,
            program: identity.program,
            width: self.size.width,
            height: self.size.height,
            disparities: self.size.padded,
            paths: self.params.paths,
        })
    }

    /// Measures plans, takes the fastest and stores it.
    fn measure(&mut self, key: TuningKey) -> Result<TuningReport> {
        // Recordings of plans that may be left behind, and their images.
        (self.images8, self.images16) = (None, None);
        self.executor.time_stages(false);
        let start = Instant::now();
        let mut images = Images::new(&self.executor, self.size)?;
        fill_with_texture(&self.executor, self.size, &mut images)?;
        let found = search::search(&mut Trials { matcher: self, images: &images, recordings: HashMap::new(), start })?;
        self.executor.time_stages(self.timing);
        let file = cache::store(&key, found.plan);
        self.take(found.plan, PlanSource::Measured);
        let report = TuningReport {
            key,
            plan: found.plan,
            chosen: found.chosen,
            plain: found.plain,
            complete: found.complete,
            seconds: start.elapsed().as_secs_f64(),
            trials: found.trials,
            file,
        };
        tracing::debug!(
            "measured {} plans in {:.2} s: {} takes {:.3} ms, plain {:.3} ms",
            report.trials.len(),
            report.seconds,
            report.plan,
            report.chosen.median_ms,
            report.plain.median_ms
        );
        Ok(report)
    }

    /// Brings a pair to the device with `load` and queues its match.
    fn run<T: Pixel>(
        (executor, buffers): (&E, &Buffers<E>),
        (params, plan, size): (&Params, Plan, Size),
        slot: &mut Option<Images<E, T>>,
        load: impl FnOnce(&mut Images<E, T>) -> Result<()>,
    ) -> Result<()> {
        let images = match slot {
            Some(images) => images,
            None => slot.insert(Images::new(executor, size)?),
        };
        load(images)?;
        let Images { left, right, recording } = images;
        executor
            .replay(recording, |executor| Launches { executor, params, plan, size, buffers }.queue::<T>(left, right))
    }

    /// Uploads a pair and queues its match.
    fn run_host<T: Pixel>(
        machine: (&E, &Buffers<E>),
        what: (&Params, Plan, Size),
        slot: &mut Option<Images<E, T>>,
        (left, right): (&[T], &[T]),
        (left_stride, right_stride): (usize, usize),
    ) -> Result<()> {
        let ((executor, _), (_, _, size)) = (machine, what);
        let (width, height) = (size.width as usize, size.height as usize);
        Self::run(machine, what, slot, |images| {
            executor.upload(left, left_stride, width, height, &mut images.left)?;
            executor.upload(right, right_stride, width, height, &mut images.right)
        })
    }

    /// Copies a pair from device memory and queues its match.
    ///
    /// # Safety
    /// As [`Engine::queue_device`].
    unsafe fn run_device<T: Pixel>(
        machine: (&E, &Buffers<E>),
        what: (&Params, Plan, Size),
        slot: &mut Option<Images<E, T>>,
        pair: &DevicePair,
    ) -> Result<()> {
        let ((executor, _), (_, _, size)) = (machine, what);
        let (width, height) = (size.width as usize, size.height as usize);
        Self::run(machine, what, slot, |images| {
            // SAFETY: the caller's promise.
            unsafe {
                executor.copy_in(pair.left, width, height, &mut images.left)?;
                executor.copy_in(pair.right, width, height, &mut images.right)
            }
        })
    }

    /// The stages that the host does, after the device's.
    fn post_process(&self, map: &mut DisparityMap) -> Vec<StageReport> {
        let width = self.size.width as usize;
        let mut report = Report::default();
        if let Some(speckle) = self.params.speckle {
            report.time(stage::SPECKLE, "cpu", || {
                reference::remove_speckles(map.values_mut(), width, speckle, &self.params);
            });
        }
        if self.params.fill {
            report.time(stage::FILL, "cpu", || reference::fill(map.values_mut(), width, &self.params));
        }
        report.stages
    }

    /// What the device has to say of the frame that it has finished.
    fn report_device(&self, report: &mut Report) -> Result<()> {
        report.device_ms = self.executor.frame_ms()?;
        report.stages = self.executor.take_stages()?;
        Ok(())
    }
}

impl<E: Executor> Engine for GpuSgm<E> {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        let Self { executor, params, plan, size, buffers, images8, images16, .. } = self;
        let (machine, what) = ((&*executor, &*buffers), (&*params, *plan, *size));
        let strides = (left.stride(), right.stride());
        match (left.pixels(), right.pixels()) {
            (Pixels::U8(l), Pixels::U8(r)) => Self::run_host(machine, what, images8, (l, r), strides)?,
            (Pixels::U16(l), Pixels::U16(r)) => Self::run_host(machine, what, images16, (l, r), strides)?,
            _ => unreachable!("the matcher has checked that both have the same depth"),
        }
        executor.download(&mut buffers.disparities, map.values_mut())?;
        self.report_device(report)?;
        report.stages.append(&mut self.post_process(map));
        Ok(())
    }

    unsafe fn queue_device(&mut self, pair: &DevicePair, map: DeviceImage, report: &mut Report) -> Result<()> {
        let Self { executor, params, plan, size, buffers, images8, images16, .. } = self;
        let (machine, what) = ((&*executor, &*buffers), (&*params, *plan, *size));
        // SAFETY: the caller's promise.
        unsafe {
            match pair.bits {
                8 => Self::run_device(machine, what, images8, pair)?,
                _ => Self::run_device(machine, what, images16, pair)?,
            }
        }
        let (width, height) = (size.width as usize, size.height as usize);
        self.pending = true;
        if params.speckle.is_some() || params.fill {
            let mut staging = match self.staging.take() {
                Some(staging) => staging,
                None => DisparityMap::new(width, height, params)?,
            };
            executor.download(&mut buffers.disparities, staging.values_mut())?;
            self.report_device(report)?;
            report.stages.append(&mut self.post_process(&mut staging));
            self.executor.upload(staging.values(), width, width, height, &mut self.buffers.disparities)?;
            self.staging = Some(staging);
            self.pending = false;
        }
        // SAFETY: the caller's promise.
        unsafe { self.executor.copy_out(&self.buffers.disparities, map, width, height) }
    }

    fn synchronize(&mut self, report: &mut Report) -> Result<()> {
        self.executor.synchronize()?;
        if std::mem::take(&mut self.pending) {
            self.report_device(report)?;
        }
        Ok(())
    }

    fn stream(&self) -> Option<u64> {
        self.executor.main_stream()
    }

    fn tune(&mut self) -> Result<TuningReport> {
        match self.key() {
            Some(key) => self.measure(key),
            None => {
                let reason = "the emulator's times say nothing about a GPU".to_owned();
                Err(Error::Unavailable { backend: "emulator", reason })
            }
        }
    }

    fn plan(&self) -> Option<(Plan, PlanSource)> {
        Some((self.plan, self.source))
    }

    fn device(&self) -> String {
        self.executor.device()
    }

    fn device_code(&self) -> Option<DeviceCode> {
        self.executor.device_code()
    }
}

/// Frames of a matcher with one plan and another; every plan is recorded once.
struct Trials<'a, E: Executor> {
    matcher: &'a GpuSgm<E>,
    images: &'a Images<E, u8>,
    recordings: HashMap<Plan, Option<E::Recording>>,
    start: Instant,
}

impl<E: Executor> Machine for Trials<'_, E> {
    fn fits(&self, plan: Plan) -> bool {
        self.matcher.fits(plan) && runs_as_written(self.matcher.size, plan)
    }

    fn run(&mut self, plan: Plan) -> Result<f64> {
        let GpuSgm { executor, params, size, buffers, .. } = self.matcher;
        let recording = self.recordings.entry(plan).or_default();
        executor.replay(recording, |executor| {
            let launches = Launches { executor, params, plan, size: *size, buffers };
            launches.queue::<u8>(&self.images.left, &self.images.right)
        })?;
        // Only machines that take times have a key to be tuned for.
        executor
            .frame_ms()?
            .ok_or_else(|| Error::Unavailable { backend: "cuda", reason: "the device takes no times".to_owned() })
    }

    fn spent(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A pair to measure with: noise, shifted, so that penalties and the winners are as varied as in a
/// picture.
fn fill_with_texture<E: Executor>(executor: &E, size: Size, images: &mut Images<E, u8>) -> Result<()> {
    /// Pixels between the left and the right view of the same point.
    const SHIFT: usize = 5;
    let (width, height) = (size.width as usize, size.height as usize);
    // The middle byte of a product with the golden ratio's fraction: no two neighbours alike.
    let texel = |i: usize| ((i as u32).wrapping_mul(0x9e37_79b1) >> 13) as u8;
    let texture: Vec<u8> = (0..width * height + SHIFT).map(texel).collect();
    executor.upload(&texture, width, width, height, &mut images.left)?;
    executor.upload(&texture[SHIFT..], width, width, height, &mut images.right)
}
