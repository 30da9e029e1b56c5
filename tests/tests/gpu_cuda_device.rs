//! Pairs and maps in device memory, as another library on the same GPU would hand them over: the same
//! bytes as from the host. Without a GPU every test that needs one says that it was skipped.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use stereo_host::{
    Backend, DeviceImage, DevicePair, Error, Matcher, Options, Params, SceneSpec, Speckle,
    cuda::{CudaContext, DeviceBuffer, DeviceCopy, Priority, Stream},
    io::Gray,
};
use stereo_tests::gpu::{has_cuda, on};

/// Rows in device memory, `pitch` elements apart.
struct Rows<T: DeviceCopy> {
    buffer: DeviceBuffer<T>,
    pitch: usize,
}

impl<T: DeviceCopy + Default> Rows<T> {
    fn new(context: CudaContext, pitch: usize, height: usize) -> Self {
        Self { buffer: DeviceBuffer::new(context, pitch * height).unwrap(), pitch }
    }

    fn filled(context: CudaContext, pixels: &[T], width: usize, pitch: usize) -> Self {
        let height = pixels.len() / width;
        let rows = Self::new(context, pitch, height);
        let stream = Stream::new(context, Priority::Low).unwrap();
        // SAFETY: the pixels outlive the copy, which is waited for; nothing else uses the buffer yet.
        unsafe { stream.upload_rows(pixels, width, &rows.buffer, pitch, width, height).unwrap() };
        stream.synchronize().unwrap();
        rows
    }

    fn image(&self) -> DeviceImage {
        DeviceImage { address: self.buffer.device_ptr(), pitch: self.pitch * size_of::<T>() }
    }

    /// The first `width` elements of every row.
    fn read(&self, width: usize) -> Vec<T> {
        let mut values = vec![T::default(); self.buffer.len()];
        let stream = Stream::new(self.buffer.context(), Priority::Low).unwrap();
        // SAFETY: the values outlive the copy, which is waited for; the matcher has been waited for.
        unsafe { stream.download(&self.buffer, &mut values).unwrap() };
        stream.synchronize().unwrap();
        values.chunks(self.pitch).flat_map(|row| row[..width].iter().copied()).collect()
    }
}

fn scene(seed: u64) -> (Vec<u8>, Vec<u8>) {
    let scene = SceneSpec { width: WIDTH, height: HEIGHT, disparities: 64, seed, ..SceneSpec::default() };
    let scene = scene.render().unwrap();
    let (Gray::U8(left), Gray::U8(right)) = (scene.left, scene.right) else { panic!("scenes have 8 bits") };
    (left.into_raw(), right.into_raw())
}

const WIDTH: usize = 333;
const HEIGHT: usize = 201;

fn widen(pixels: &[u8]) -> Vec<u16> {
    pixels.iter().map(|&v| u16::from(v) * 257).collect()
}

#[test]
fn device_pairs_give_the_hosts_bytes() {
    if !has_cuda("device_pairs_give_the_hosts_bytes") {
        return;
    }
    let context = CudaContext::new(None).unwrap();
    let (left, right) = scene(1);
    let base = Params { disparities: 64, ..Params::default() };
    for params in [
        base.clone(),
        Params { fill: true, ..base.clone() },
        Params { speckle: Some(Speckle { max_size: 100, max_diff: 1 }), ..base.clone() },
    ] {
        for timing in [false, true] {
            let mut matcher = Matcher::new(WIDTH, HEIGHT, &params, &Options { timing, ..on(Backend::Cuda) }).unwrap();
            let view = |p| stereo_host::GrayView::from_u8(p, WIDTH, HEIGHT).unwrap();
            let expected = matcher.compute(&view(&left), &view(&right)).unwrap();
            for (pitch, map_pitch) in [(WIDTH, WIDTH), (512, WIDTH), (WIDTH, 400), (340, 341)] {
                let [l, r] = [&left, &right].map(|pixels| Rows::filled(context, pixels, WIDTH, pitch));
                let map = Rows::<i16>::new(context, map_pitch, HEIGHT);
                let pair = DevicePair { left: l.image(), right: r.image(), bits: 8 };
                // SAFETY: three buffers of that size, which nothing else uses.
                unsafe { matcher.compute_device(&pair, map.image()).unwrap() };
                assert!(map.read(WIDTH) == expected.values(), "pitch {pitch}, {map_pitch}: {params:?}");
                let report = matcher.report();
                assert!(report.device_ms.unwrap() > 0.0 && report.total_ms > 0.0);
                assert_eq!(report.stages.iter().any(|s| s.stage == "census"), timing);
                // What host and device do in turn does not mix.
                assert_eq!(matcher.compute(&view(&left), &view(&right)).unwrap(), expected);
            }
        }
    }
}

#[test]
fn device_pairs_of_16_bits() {
    if !has_cuda("device_pairs_of_16_bits") {
        return;
    }
    let context = CudaContext::new(None).unwrap();
    let (left, right) = scene(2);
    let (left, right) = (widen(&left), widen(&right));
    let params = Params { disparities: 64, ..Params::default() };
    let mut matcher = Matcher::new(WIDTH, HEIGHT, &params, &on(Backend::Cuda)).unwrap();
    let view = |p| stereo_host::GrayView::from_u16(p, WIDTH, HEIGHT).unwrap();
    let expected = matcher.compute(&view(&left), &view(&right)).unwrap();
    let [l, r] = [&left, &right].map(|pixels| Rows::filled(context, pixels, WIDTH, 350));
    let map = Rows::<i16>::new(context, WIDTH, HEIGHT);
    // SAFETY: three buffers of that size, which nothing else uses.
    unsafe {
        matcher.compute_device(&DevicePair { left: l.image(), right: r.image(), bits: 16 }, map.image()).unwrap();
    }
    assert!(map.read(WIDTH) == expected.values());
}

#[test]
fn many_queued_frames_are_matched_in_order() {
    if !has_cuda("many_queued_frames_are_matched_in_order") {
        return;
    }
    let context = CudaContext::new(None).unwrap();
    let params = Params { disparities: 64, ..Params::default() };
    let mut matcher = Matcher::new(WIDTH, HEIGHT, &params, &on(Backend::Cuda)).unwrap();
    assert!(matcher.stream().is_some());
    fn view(p: &[u8]) -> stereo_host::GrayView<'_> {
        stereo_host::GrayView::from_u8(p, WIDTH, HEIGHT).unwrap()
    }
    let frames: Vec<_> = (0..8)
        .map(|seed| {
            let (left, right) = scene(seed);
            let expected = matcher.compute(&view(&left), &view(&right)).unwrap();
            let [left, right] = [left, right].map(|pixels| Rows::filled(context, &pixels, WIDTH, WIDTH));
            (left, right, Rows::<i16>::new(context, WIDTH, HEIGHT), expected)
        })
        .collect();
    for (left, right, map, _) in &frames {
        let pair = DevicePair { left: left.image(), right: right.image(), bits: 8 };
        // SAFETY: every frame has buffers of its own, which live until all are done.
        unsafe { matcher.queue_device(&pair, map.image()).unwrap() };
    }
    matcher.synchronize().unwrap();
    for (i, (_, _, map, expected)) in frames.iter().enumerate() {
        assert!(map.read(WIDTH) == expected.values(), "frame {i}");
    }
    assert!(matcher.report().device_ms.unwrap() > 0.0);
}

#[test]
fn device_memory_is_refused_where_there_is_no_device() {
    let params = Params { disparities: 16, ..Params::default() };
    let image = |address| DeviceImage::dense(address, 40);
    let pair = DevicePair { left: image(256), right: image(8192), bits: 8 };
    for backend in [Backend::Reference, Backend::Emulator] {
        let mut matcher = Matcher::new(40, 20, &params, &on(backend)).unwrap();
        // SAFETY: the matcher refuses before it touches any memory.
        let refused = unsafe { matcher.compute_device(&pair, DeviceImage::dense(65_536, 80)) };
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{backend}: {refused:?}");
        let short = DeviceImage::dense(65_536, 79);
        // SAFETY: as above.
        let refused = unsafe { matcher.queue_device(&pair, short) }.unwrap_err().to_string();
        assert!(refused.contains("79") && refused.contains("80"), "{refused}");
        assert!(matches!(matcher.tune(), Err(Error::Unavailable { .. })), "{backend}");
        assert_eq!(matcher.stream(), None);
    }
}
