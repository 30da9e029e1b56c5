//! Frames that stay on the GPU: what is timed is the device, not the copies from and to the host.

use stereo_host::{
    Backend, DeviceImage, DevicePair, Matcher, Options, Params, Pixels, Plan, Report, Result, SceneSpec, Tuning,
    cuda::{CudaContext, DeviceBuffer, Priority, Stream},
};

/// A rendered pair in device memory, and room for its map.
pub struct Frames {
    left: DeviceBuffer<u8>,
    right: DeviceBuffer<u8>,
    map: DeviceBuffer<i16>,
    width: usize,
    height: usize,
    ordinal: Option<u32>,
}

impl Frames {
    /// A pair of `width x height` with disparities up to `disparities`, on GPU `ordinal` (without one,
    /// the first).
    ///
    /// # Errors
    /// No GPU, a size that cannot be rendered, or too little memory.
    pub fn new(width: usize, height: usize, disparities: u32, ordinal: Option<u32>) -> Result<Self> {
        stereo_host::cuda::device::availability(ordinal)?;
        let context = CudaContext::new(ordinal)?;
        let scene = SceneSpec { width, height, disparities, ..SceneSpec::default() }.render()?;
        let stream = Stream::new(context, Priority::Low)?;
        let upload = |gray: &stereo_host::io::Gray| {
            let view = gray.view()?;
            let Pixels::U8(pixels) = view.pixels() else { unreachable!("rendered scenes have 8 bits") };
            let buffer = DeviceBuffer::new(context, width * height)?;
            // SAFETY: the pixels outlive the copy, which is waited for; nothing else uses the buffer.
            unsafe { stream.upload(pixels, &buffer)? };
            stream.synchronize()?;
            Ok::<_, stereo_host::Error>(buffer)
        };
        let (left, right) = (upload(&scene.left)?, upload(&scene.right)?);
        let map = DeviceBuffer::new(context, width * height)?;
        Ok(Self { left, right, map, width, height, ordinal })
    }

    /// The GPU's name and compute capability.
    pub fn device(&self) -> String {
        self.map.context().device().to_string()
    }

    /// A matcher for these frames; `timing` measures every kernel.
    ///
    /// # Errors
    /// As [`Matcher::new`].
    pub fn matcher(&self, params: &Params, tuning: Tuning, timing: bool) -> Result<Matcher> {
        let options = Options { backend: Backend::Cuda, device: self.ordinal, tuning, timing, ..Options::default() };
        Matcher::new(self.width, self.height, params, &options)
    }

    /// Matches the pair `warmup + iterations` times with every matcher in turn; calls `record` with the
    /// matcher's number and its report after each of the latter.
    ///
    /// # Errors
    /// The device's.
    pub fn measure(
        &self,
        matchers: &mut [Matcher],
        warmup: u32,
        iterations: u32,
        mut record: impl FnMut(usize, &Report),
    ) -> Result<()> {
        let image = |address| DeviceImage::dense(address, self.width);
        let pair = DevicePair { left: image(self.left.device_ptr()), right: image(self.right.device_ptr()), bits: 8 };
        let map = DeviceImage::dense(self.map.device_ptr(), self.width * size_of::<i16>());
        for run in 0..warmup + iterations {
            for (i, matcher) in matchers.iter_mut().enumerate() {
                // SAFETY: the buffers have the matchers' size and live as long as this; one matcher at
                // a time uses them, and is waited for.
                unsafe { matcher.compute_device(&pair, map)? };
                if run >= warmup {
                    record(i, matcher.report());
                }
            }
        }
        Ok(())
    }

    /// As [`Frames::measure`] with one matcher that has `plan`.
    ///
    /// # Errors
    /// The device's.
    pub fn measure_plan(
        &self,
        params: &Params,
        plan: Plan,
        timing: bool,
        (warmup, iterations): (u32, u32),
        mut record: impl FnMut(&Report),
    ) -> Result<()> {
        let mut matcher = [self.matcher(params, Tuning::Fixed(plan), timing)?];
        self.measure(&mut matcher, warmup, iterations, |_, report| record(report))
    }
}
