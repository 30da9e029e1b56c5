//! What the pipeline asks of the layer, on the first GPU.

use std::{env, ffi::c_void, thread};

use stereo_host::{
    DeviceImage, Error, PtxSource, Result,
    cuda::{
        CudaContext, DeviceBuffer, Event, Kernel, LaunchConfig, PinnedBuffer, Priority, Stream, device::Driver, driver,
        ptx::Ptx,
    },
};

use crate::skipped;

/// Threads of a block in every launch here.
const BLOCK: u32 = 256;

fn smoke_ptx() -> Ptx {
    Ptx::parse(75, include_str!("smoke.ptx").into(), "smoke.ptx").unwrap()
}

/// The first GPU's context; `None` after a line that says why `test` could not run.
fn context(test: &str) -> Option<CudaContext> {
    match CudaContext::new(None) {
        Ok(context) => Some(context),
        Err(reason) if env::var_os("STEREO_REQUIRE_CUDA").is_none() => {
            skipped(test, format!("no CUDA device ({reason})"));
            None
        }
        Err(reason) => panic!("STEREO_REQUIRE_CUDA is set, but: {reason}"),
    }
}

/// Queues `sum = a + b`.
fn add(kernel: &Kernel, stream: &Stream, sum: &DeviceBuffer<u32>, a: &DeviceBuffer<u32>, b: &DeviceBuffer<u32>) {
    let count = sum.len() as u32;
    let (sum, a, b) = (sum.device_ptr(), a.device_ptr(), b.device_ptr());
    let params = [
        (&raw const sum).cast_mut().cast::<c_void>(),
        (&raw const a).cast_mut().cast(),
        (&raw const b).cast_mut().cast(),
        (&raw const count).cast_mut().cast(),
    ];
    let config = LaunchConfig { grid: [count.div_ceil(BLOCK), 1, 1], block: [BLOCK, 1, 1], shared: 0 };
    // SAFETY: `vector_add` takes three addresses and a count; the buffers have `count` elements and
    // outlive the synchronisation at the end of every test.
    unsafe { kernel.launch(stream, config, &params) }.unwrap();
}

fn buffers(context: CudaContext, len: usize) -> [DeviceBuffer<u32>; 4] {
    std::array::from_fn(|_| DeviceBuffer::new(context, len).unwrap())
}

/// One object of every kind, made, used and dropped.
pub fn use_everything_once() {
    let context = CudaContext::new(None).unwrap();
    let mut matcher = MatcherLike::new(context).unwrap();
    matcher.run(1);
    let [a, b, sum, _] = &matcher.buffers;
    let event = Event::with_timing(context).unwrap();
    let graph = matcher
        .stream
        .capture(|| {
            add(&matcher.kernel, &matcher.stream, sum, a, b);
            matcher.stream.record(&event)
        })
        .unwrap();
    // SAFETY: the buffers live until the synchronisation.
    unsafe { matcher.stream.launch(&graph) }.unwrap();
    matcher.stream.synchronize().unwrap();
    context.synchronize().unwrap();
}

#[test]
fn cuda_devices_are_described() {
    let Some(context) = context("cuda_devices_are_described") else { return };
    let driver = Driver::get().unwrap();
    println!("CUDA {} through {}", driver.version, driver::load().unwrap().name());
    println!("not in this driver: {:?}", driver::load().unwrap().missing());
    for device in &driver.devices {
        println!("{device:?}");
        assert!(!device.name.is_empty() && device.multiprocessors > 0);
        assert!(device.total_memory > 1 << 28 && device.shared_memory_per_block >= 48 << 10);
    }
    let memory = context.memory().unwrap();
    assert!(memory.free > 0 && memory.free <= memory.total, "{memory:?}");
    let none = driver.device(Some(1000)).unwrap_err().to_string();
    assert!(none.contains("device = 1000") && none.contains(&driver.devices[0].name), "{none}");
    assert!(driver::symbol(c"cuLaunchKernel").is_some());
    assert!(driver::symbol(c"cuThereIsNoSuchFunction").is_none());
}

#[test]
fn cuda_two_streams_ordered_by_events() {
    const LEN: usize = 1 << 20;
    let Some(context) = context("cuda_two_streams_ordered_by_events") else { return };
    let kernel = context.load(&smoke_ptx()).unwrap().kernel("vector_add").unwrap();
    let first = Stream::new(context, Priority::Low).unwrap();
    let second = Stream::new(context, Priority::High).unwrap();
    let [a, b, sum, twice] = buffers(context, LEN);
    let mut input = PinnedBuffer::<u32>::new(context, LEN).unwrap();
    let mut output = PinnedBuffer::<u32>::new(context, LEN).unwrap();
    for (i, value) in input.iter_mut().enumerate() {
        *value = (i as u32).wrapping_mul(2_654_435_761);
    }
    let (start, added, end) =
        (Event::with_timing(context).unwrap(), Event::new(context).unwrap(), Event::with_timing(context).unwrap());
    first.record(&start).unwrap();
    // SAFETY: the streams are synchronised before a buffer is looked at or dropped; `b` is filled and
    // copied in order on one stream.
    unsafe {
        first.upload(&input, &a).unwrap();
        first.fill_bytes(&b, 0xff).unwrap();
        first.copy(&a, &b).unwrap();
    }
    add(&kernel, &first, &sum, &a, &b);
    first.record(&added).unwrap();
    second.wait(&added).unwrap();
    add(&kernel, &second, &twice, &sum, &sum);
    // SAFETY: as above.
    unsafe { second.download(&twice, &mut output) }.unwrap();
    second.record(&end).unwrap();
    end.synchronize().unwrap();
    assert!(end.happened().unwrap());
    assert!(input.iter().zip(output.iter()).all(|(i, o)| i.wrapping_mul(4) == *o));
    let ms = end.ms_since(&start).unwrap();
    assert!((0.0..10_000.0).contains(&ms), "{ms} ms");
    let untimed = end.ms_since(&added).unwrap_err().to_string();
    assert!(untimed.contains("cuEventElapsedTime"), "{untimed}");
}

#[test]
fn cuda_rows_of_any_stride() {
    let Some(context) = context("cuda_rows_of_any_stride") else { return };
    let stream = Stream::new(context, Priority::Low).unwrap();
    for (width, height, source_stride, target_stride) in
        [(17, 13, 20, 32), (1, 1, 1, 1), (5, 1, 9, 9), (8, 4, 8, 8), (8, 4, 8, 11), (8, 4, 13, 8)]
    {
        let source: Vec<u8> = (0..source_stride * height).map(|i| (i % 251) as u8).collect();
        let target = DeviceBuffer::<u8>::new(context, target_stride * height).unwrap();
        let mut output = vec![0; target.len()];
        // SAFETY: synchronised before anything is read or dropped.
        unsafe {
            stream.fill_bytes(&target, 0xee).unwrap();
            stream.upload_rows(&source, source_stride, &target, target_stride, width, height).unwrap();
            stream.download(&target, &mut output).unwrap();
        }
        stream.synchronize().unwrap();
        for (i, value) in output.into_iter().enumerate() {
            let (x, y) = (i % target_stride, i / target_stride);
            let expected = if x < width { source[y * source_stride + x] } else { 0xee };
            assert_eq!(value, expected, "({x}, {y}) of {width}x{height}, strides {source_stride}, {target_stride}");
        }
        // SAFETY: refused before anything is queued.
        let short = unsafe { stream.upload_rows(&source, source_stride, &target, target_stride, width, height + 1) };
        assert!(matches!(short, Err(Error::Mismatch { .. })), "{short:?}");
    }
}

#[test]
fn cuda_rows_within_device_memory() {
    let Some(context) = context("cuda_rows_within_device_memory") else { return };
    let stream = Stream::new(context, Priority::Low).unwrap();
    for (width, height, source_pitch, target_pitch) in [(17, 13, 20, 32), (1, 1, 1, 1), (8, 4, 8, 8), (8, 4, 13, 8)] {
        let pixels: Vec<u8> = (0..source_pitch * height).map(|i| (i % 251) as u8).collect();
        let source = DeviceBuffer::<u8>::new(context, pixels.len()).unwrap();
        let target = DeviceBuffer::<u8>::new(context, target_pitch * height).unwrap();
        let from = DeviceImage { address: source.device_ptr(), pitch: source_pitch };
        let to = DeviceImage { address: target.device_ptr(), pitch: target_pitch };
        let mut output = vec![0; target.len()];
        // SAFETY: synchronised before anything is read or dropped.
        unsafe {
            stream.upload(&pixels, &source).unwrap();
            stream.fill_bytes(&target, 0xee).unwrap();
            stream.copy_rows(from, to, width, height).unwrap();
            stream.download(&target, &mut output).unwrap();
        }
        stream.synchronize().unwrap();
        for (i, value) in output.into_iter().enumerate() {
            let (x, y) = (i % target_pitch, i / target_pitch);
            let expected = if x < width { pixels[y * source_pitch + x] } else { 0xee };
            assert_eq!(value, expected, "({x}, {y}) of {width}x{height}, pitches {source_pitch}, {target_pitch}");
        }
        let narrow = DeviceImage { pitch: width - 1, ..to };
        // SAFETY: refused before anything is queued.
        let refused = unsafe { stream.copy_rows(from, narrow, width, height) };
        assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
    }
}

#[test]
fn cuda_graphs_replay() {
    const LEN: usize = 10_000;
    let Some(context) = context("cuda_graphs_replay") else { return };
    let kernel = context.load(&smoke_ptx()).unwrap().kernel("vector_add").unwrap();
    let [main, side] = std::array::from_fn(|_| Stream::new(context, Priority::Low).unwrap());
    let [a, b, sum, total] = buffers(context, LEN);
    let (fork, join) = (Event::new(context).unwrap(), Event::new(context).unwrap());
    let graph = main
        .capture(|| {
            main.record(&fork)?;
            side.wait(&fork)?;
            add(&kernel, &side, &sum, &a, &b);
            side.record(&join)?;
            main.wait(&join)?;
            add(&kernel, &main, &total, &sum, &a);
            Ok(())
        })
        .unwrap();
    let ones = vec![1u32; LEN];
    let mut output = vec![0u32; LEN];
    for round in 0..3 {
        let values: Vec<u32> = (0..LEN as u32).map(|i| i * 7 + round).collect();
        // SAFETY: synchronised before anything is read or dropped.
        unsafe {
            main.upload(&values, &a).unwrap();
            main.upload(&ones, &b).unwrap();
            main.launch(&graph).unwrap();
            main.download(&total, &mut output).unwrap();
        }
        main.synchronize().unwrap();
        assert!(values.iter().zip(&output).all(|(v, o)| 2 * v + 1 == *o), "round {round}");
    }
}

/// The driver loads a kernel's code when it is first asked for, which must not break a capture.
#[test]
fn cuda_kernels_are_found_during_a_capture() {
    let Some(context) = context("cuda_kernels_are_found_during_a_capture") else { return };
    // A text of its own, so that no other test has asked for the kernels of this module.
    let text = format!("// loaded during a capture\n{}", smoke_ptx().text());
    let kernels = context.load(&Ptx::parse(75, text.into(), "smoke.ptx").unwrap()).unwrap();
    let stream = Stream::new(context, Priority::Low).unwrap();
    let [a, b, sum, _] = buffers(context, 1000);
    let graph = stream
        .capture(|| {
            add(&kernels.kernel("vector_add")?, &stream, &sum, &a, &b);
            kernels.kernel("shared_reverse")?.blocks_per_multiprocessor(BLOCK, 60 << 10).map(drop)
        })
        .unwrap();
    let mut output = vec![0; sum.len()];
    // SAFETY: synchronised before anything is read or dropped.
    unsafe {
        stream.fill_bytes(&a, 1).unwrap();
        stream.fill_bytes(&b, 2).unwrap();
        stream.launch(&graph).unwrap();
        stream.download(&sum, &mut output).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(output.iter().all(|&value| value == 0x0303_0303));
}

#[test]
fn cuda_a_failed_capture_leaves_the_stream_usable() {
    let Some(context) = context("cuda_a_failed_capture_leaves_the_stream_usable") else { return };
    let kernel = context.load(&smoke_ptx()).unwrap().kernel("vector_add").unwrap();
    let stream = Stream::new(context, Priority::Low).unwrap();
    let [a, b, sum, _] = buffers(context, 16);
    let failed = stream.capture(|| {
        add(&kernel, &stream, &sum, &a, &b);
        Err(Error::Interrupted)
    });
    assert!(matches!(failed, Err(Error::Interrupted)));
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.capture(|| panic!("inside a capture"))));
    assert!(panicked.is_err());
    // Synchronising is not allowed during a capture, so this also shows that none is under way.
    stream.synchronize().unwrap();
    let forbidden =
        stream.capture(|| stream.synchronize()).err().expect("synchronising cannot be captured").to_string();
    assert!(forbidden.contains("cuStreamSynchronize") && forbidden.contains("CAPTURE"), "{forbidden}");
    stream.synchronize().unwrap();
    let empty = stream.capture(|| Ok(())).unwrap();
    // SAFETY: it holds no work.
    unsafe { stream.launch(&empty) }.unwrap();
    stream.synchronize().unwrap();
}

/// What a matcher is to the layer: everything of its own, on the thread that built it or another.
struct MatcherLike {
    kernel: Kernel,
    stream: Stream,
    buffers: [DeviceBuffer<u32>; 4],
    output: PinnedBuffer<u32>,
}

impl MatcherLike {
    const LEN: usize = 4099;

    fn new(context: CudaContext) -> Result<Self> {
        Ok(Self {
            kernel: context.load(&smoke_ptx())?.kernel("vector_add")?,
            stream: Stream::new(context, Priority::Low)?,
            buffers: buffers(context, Self::LEN),
            output: PinnedBuffer::new(context, Self::LEN)?,
        })
    }

    fn run(&mut self, seed: u32) {
        let input: Vec<u32> = (0..Self::LEN as u32).map(|i| i ^ seed).collect();
        let [a, _, sum, _] = &self.buffers;
        // SAFETY: synchronised before anything is read or dropped.
        unsafe { self.stream.upload(&input, a) }.unwrap();
        add(&self.kernel, &self.stream, sum, a, a);
        // SAFETY: as above.
        unsafe { self.stream.download(sum, &mut self.output) }.unwrap();
        self.stream.synchronize().unwrap();
        assert!(input.iter().zip(self.output.iter()).all(|(i, o)| i.wrapping_mul(2) == *o), "seed {seed}");
    }
}

#[test]
fn cuda_several_matchers_on_several_threads() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 50;
    let Some(context) = context("cuda_several_matchers_on_several_threads") else { return };
    let mut moved = MatcherLike::new(context).unwrap();
    thread::scope(|scope| {
        for id in 0..THREADS {
            scope.spawn(move || {
                let mut matcher = MatcherLike::new(context).unwrap();
                for round in 0..ROUNDS {
                    matcher.run(id * 1_000_003 + round);
                }
                // One that another thread built and this one drops.
                drop(matcher);
            });
        }
        scope.spawn(|| moved.run(99));
    });
    moved.run(100);
    thread::spawn(move || drop(moved)).join().unwrap();
}

#[test]
fn cuda_more_than_48_kib_of_shared_memory() {
    const WORDS: usize = 60 << 8; // 60 KiB; every GPU from compute capability 7.5 on has 64.
    let Some(context) = context("cuda_more_than_48_kib_of_shared_memory") else { return };
    let kernel = context.load(&smoke_ptx()).unwrap().kernel("shared_reverse").unwrap();
    println!("{:?}", kernel.info());
    assert_eq!((kernel.info().static_shared, kernel.info().local), (0, 0));
    let stream = Stream::new(context, Priority::Low).unwrap();
    let [source, target, _, _] = buffers(context, WORDS);
    let input: Vec<u32> = (0..WORDS as u32).collect();
    let mut output = vec![0; WORDS];
    let (to, from, count) = (target.device_ptr(), source.device_ptr(), WORDS as u32);
    let params = [
        (&raw const to).cast_mut().cast::<c_void>(),
        (&raw const from).cast_mut().cast(),
        (&raw const count).cast_mut().cast(),
    ];
    let config = LaunchConfig { grid: [1, 1, 1], block: [BLOCK, 1, 1], shared: 4 * count };
    // SAFETY: `shared_reverse` takes two addresses and a count; synchronised before anything is read
    // or dropped.
    unsafe {
        stream.upload(&input, &source).unwrap();
        kernel.launch(&stream, config, &params).unwrap();
        stream.download(&target, &mut output).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(output.iter().rev().eq(&input));
    assert!(kernel.blocks_per_multiprocessor(BLOCK, 4 * count).unwrap() >= 1);
    let limit = context.device().shared_memory_per_block;
    // SAFETY: refused before it starts.
    let refused = unsafe { kernel.launch(&stream, LaunchConfig { shared: limit + 1, ..config }, &params) };
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("shared_reverse") && text.contains(&limit.to_string()), "{text}");
    // SAFETY: as above; no GPU takes blocks of 4096 threads.
    let refused = unsafe { kernel.launch(&stream, LaunchConfig { block: [4096, 1, 1], ..config }, &params) };
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("cuLaunchKernel") && text.contains("shared_reverse") && text.contains("4096"), "{text}");
}

#[test]
fn cuda_refused_ptx_gives_the_compilers_log() {
    let Some(context) = context("cuda_refused_ptx_gives_the_compilers_log") else { return };
    let text = smoke_ptx().text().replace("add.u32 %x, %x, %y;", "bogus.u32 %x, %x, %y;");
    let ptx = Ptx::parse(75, text.into(), "bogus").unwrap();
    let error = context.load(&ptx).err().expect("bogus PTX must be refused").to_string();
    println!("{error}");
    for part in ["cuModuleLoadDataEx", "CUDA_ERROR_INVALID_PTX", "bogus", "sm_75"] {
        assert!(error.contains(part), "{part} in: {error}");
    }
    let kernels = context.load(&smoke_ptx()).unwrap();
    let missing = kernels.kernel("no_such_kernel").err().expect("it is not in the PTX").to_string();
    assert!(missing.contains("no_such_kernel") && missing.contains("CUDA_ERROR_NOT_FOUND"), "{missing}");
}

#[test]
fn cuda_absurd_sizes_are_memory_errors() {
    let Some(context) = context("cuda_absurd_sizes_are_memory_errors") else { return };
    let free = context.memory().unwrap().free;
    let sizes = [("path costs", free), ("census", 1 << 20), ("map", 1 << 22)];
    let error = context.check_memory(&sizes, |free| format!("{free} bytes hold 4 paths")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Memory { need, available, .. } if need > available), "{text}");
    assert!(text.contains("hold 4 paths") && text.contains("largest buffers: path costs"), "{text}");
    context.check_memory(&sizes[1..], |_| String::new()).unwrap();

    let memory = |result: Result<DeviceBuffer<u32>>| match result.err().expect("must not fit") {
        Error::Memory { need, .. } => need,
        other => panic!("{other}"),
    };
    assert_eq!(memory(DeviceBuffer::new(context, 1 << 44)), 1 << 46);
    assert_eq!(memory(DeviceBuffer::new(context, usize::MAX / 2)), u64::MAX);
    assert!(DeviceBuffer::<u32>::new(context, 0).unwrap().is_empty());
}

#[test]
fn cuda_embedded_ptx_loads() {
    let Some(context) = context("cuda_embedded_ptx_loads") else { return };
    let device = context.device();
    let images = PtxSource::Environment.images().unwrap();
    if images.is_empty() {
        skipped("cuda_embedded_ptx_loads", "this build embeds no PTX");
        return;
    }
    let (major, minor) = device.compute_capability;
    for ptx in images.iter().filter(|ptx| ptx.arch() <= major * 10 + minor) {
        if ptx.needed_driver() <= Driver::get().unwrap().version {
            context.load(ptx).unwrap();
        }
    }
}
