//! How a pipeline ends: slow and vanished consumers, errors and panics in every stage, latest-only.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use stereo_host::{
    Backend, DisparityMap, Error, GrayView, Params, Report, Result, Scene, SceneSpec,
    masda::{Candidates, GraphSolver, ImagePlane, graph_solver, image_plane},
    pipeline::{Pipeline, PipelineOptions, StereoPair},
};
use stereo_tests::gpu::on;

const WIDTH: usize = 64;
const HEIGHT: usize = 48;

fn params(masda: bool) -> Params {
    Params { disparities: 16, ..if masda { Params::masda() } else { Params::default() } }
}

fn scene() -> Arc<Scene> {
    let spec = SceneSpec { width: WIDTH, height: HEIGHT, disparities: 16, ..SceneSpec::default() };
    Arc::new(spec.render().unwrap())
}

fn pipeline(masda: bool, options: &PipelineOptions) -> Pipeline {
    Pipeline::new(WIDTH, HEIGHT, &params(masda), &on(Backend::Auto), options).unwrap()
}

/// Calls the given hook, then the real half.
struct Hooked<T: ?Sized, F> {
    inner: Box<T>,
    hook: F,
}

impl<F: FnMut() -> Result<()> + Send> ImagePlane for Hooked<dyn ImagePlane, F> {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        candidates: &mut Candidates,
        report: &mut Report,
    ) -> Result<()> {
        (self.hook)()?;
        self.inner.compute(left, right, candidates, report)
    }

    fn device(&self) -> String {
        self.inner.device()
    }
}

impl<F: FnMut() -> Result<()> + Send> GraphSolver for Hooked<dyn GraphSolver, F> {
    fn solve(
        &mut self,
        candidates: &Candidates,
        left: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        (self.hook)()?;
        self.inner.solve(candidates, left, map, report)
    }
}

fn hooked(
    plane_hook: impl FnMut() -> Result<()> + Send + 'static,
    solver_hook: impl FnMut() -> Result<()> + Send + 'static,
    options: &PipelineOptions,
) -> Pipeline {
    let params = params(true);
    let plane = Hooked { inner: image_plane(&params, &on(Backend::Auto)).unwrap(), hook: plane_hook };
    let solver = Hooked { inner: graph_solver(&params, &on(Backend::Auto)).unwrap(), hook: solver_hook };
    Pipeline::with_halves(WIDTH, HEIGHT, &params, Box::new(plane), Box::new(solver), options).unwrap()
}

/// Fails at the call number `at`, counted from 0.
fn fail_at(at: u64) -> impl FnMut() -> Result<()> + Send + 'static {
    let mut calls = 0;
    move || {
        calls += 1;
        if calls > at { Err(Error::Emulator("made to fail".to_owned())) } else { Ok(()) }
    }
}

fn fine() -> Result<()> {
    Ok(())
}

/// How many frames a stream gives, and its error.
fn drain<P: StereoPair>(
    stream: impl Iterator<Item = Result<stereo_host::pipeline::Frame<P>>>,
) -> (u64, Option<String>) {
    let (mut frames, mut error) = (0, None);
    for item in stream {
        assert!(error.is_none(), "an error is the last item");
        match item {
            Ok(frame) => {
                assert_eq!(frame.index, frames);
                frames += 1;
            }
            Err(e) => error = Some(e.to_string()),
        }
    }
    (frames, error)
}

#[test]
fn a_slow_consumer_loses_nothing_and_slows_the_source() {
    for masda in [false, true] {
        let given = Arc::new(AtomicU64::new(0));
        let counter = given.clone();
        let pair = scene();
        let source = (0..30).map(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(pair.clone())
        });
        let options = PipelineOptions { depth: 1, ..PipelineOptions::default() };
        let mut taken = 0;
        let summary = pipeline(masda, &options)
            .run(source, |frame| {
                std::thread::sleep(Duration::from_millis(3));
                assert_eq!(frame.index, taken);
                taken += 1;
                // What the queues and stages can hold at depth 1: three queues of one, three stages with one each, one here.
                let ahead = given.load(Ordering::SeqCst) - taken;
                assert!(ahead <= 7, "{ahead} frames ahead of the consumer");
                Ok(())
            })
            .unwrap();
        assert_eq!((taken, summary.frames, summary.dropped), (30, 30, 0));
    }
}

#[test]
fn a_vanished_consumer_stops_an_endless_source() {
    for masda in [false, true] {
        for latest_only in [false, true] {
            for taken in [0, 1, 4] {
                let (alive, ended) = mpsc::channel::<()>();
                let pair = scene();
                let source = std::iter::repeat_with(move || {
                    let _ = &alive;
                    Ok(pair.clone())
                });
                let options = PipelineOptions { latest_only, ..PipelineOptions::default() };
                let mut stream = pipeline(masda, &options).start(source).unwrap();
                assert_eq!(stream.by_ref().take(taken).filter(Result::is_ok).count(), taken);
                drop(stream);
                // The source is gone as well: its end of the channel is.
                assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Disconnected));
            }
        }
    }
}

#[test]
fn errors_of_every_stage_end_the_stream() {
    for latest_only in [false, true] {
        let options = PipelineOptions { latest_only, ..PipelineOptions::default() };
        let pair = scene();
        let endless = move || {
            let pair = pair.clone();
            std::iter::repeat_with(move || Ok(pair.clone()))
        };
        for at in [0, 3] {
            let expect = |(frames, error): (u64, Option<String>)| {
                assert!(frames <= at, "{frames} frames");
                assert_eq!(error.as_deref(), Some("emulator: made to fail"));
                frames
            };
            // The source; all frames before it are given when none may be replaced.
            for masda in [false, true] {
                let pair = scene();
                let mut fail = fail_at(at);
                let source = std::iter::repeat_with(move || fail().map(|()| pair.clone()));
                let stream = pipeline(masda, &options).start(source).unwrap();
                if latest_only {
                    let (mut frames, mut error) = (0, None);
                    for item in stream {
                        match item {
                            Ok(_) => frames += 1,
                            Err(e) => error = Some(e.to_string()),
                        }
                    }
                    expect((frames, error));
                } else {
                    assert_eq!(expect(drain(stream)), at);
                }
            }
            // Both matching stages.
            if !latest_only {
                assert_eq!(expect(drain(hooked(fail_at(at), fine, &options).start(endless()).unwrap())), at);
                assert_eq!(expect(drain(hooked(fine, fail_at(at), &options).start(endless()).unwrap())), at);
            }
            // The sink.
            let mut fail = fail_at(at);
            let error = hooked(fine, fine, &options).run(endless(), |_| fail()).unwrap_err();
            assert_eq!(error.to_string(), "emulator: made to fail");
        }
    }
}

#[test]
fn a_pair_of_another_size_is_an_error_that_names_both() {
    for masda in [false, true] {
        let other = Arc::new(SceneSpec { width: 65, height: HEIGHT, ..SceneSpec::default() }.render().unwrap());
        let source = [scene(), scene(), other, scene()].into_iter().map(Ok);
        let (frames, error) = drain(pipeline(masda, &PipelineOptions::default()).start(source).unwrap());
        let error = error.unwrap();
        assert_eq!(frames, 2);
        assert!(error.contains("65x48") && error.contains("64x48"), "{error}");
    }
}

#[test]
fn a_panic_in_a_stage_reaches_the_consumer() {
    let pair = scene();
    let source = move || {
        let pair = pair.clone();
        std::iter::repeat_with(move || Ok(pair.clone()))
    };
    let caught = |pipeline: Pipeline| {
        let mut stream = pipeline.start(source()).unwrap();
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.by_ref().count())).unwrap_err();
        assert!(stream.next().is_none(), "the stream has ended");
        *payload.downcast::<&str>().unwrap()
    };
    let options = PipelineOptions::default();
    assert_eq!(caught(hooked(|| panic!("in the plane"), fine, &options)), "in the plane");
    assert_eq!(caught(hooked(fine, || panic!("in the solver"), &options)), "in the solver");

    let panicking = std::iter::repeat_with(|| -> Result<Arc<Scene>> { panic!("in the source") });
    let mut stream = pipeline(true, &options).start(panicking).unwrap();
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.next().is_some())).unwrap_err();
    assert_eq!(*payload.downcast::<&str>().unwrap(), "in the source");
}

#[test]
fn latest_only_drops_waiting_frames_and_gives_the_last_one() {
    // The source gives all its frames while the first one is held in the image plane.
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let mut first = true;
    let hook = move || {
        if std::mem::take(&mut first) {
            held.lock().unwrap().recv().unwrap();
        }
        Ok(())
    };
    let total = 40;
    let pair = scene();
    let (entered, in_plane) = mpsc::channel::<()>();
    let plane_hook = {
        let mut hook = hook;
        move || {
            let _ = entered.send(());
            hook()
        }
    };
    let in_plane = Mutex::new(in_plane);
    let source = (0..total).map(move |i| {
        if i == 1 {
            // Frame 0 has been taken: from now on frames wait.
            in_plane.lock().unwrap().recv().unwrap();
        }
        if i + 1 == total {
            release.send(()).unwrap();
        }
        Ok(pair.clone())
    });
    let options = PipelineOptions { latest_only: true, ..PipelineOptions::default() };
    let mut stream = hooked(plane_hook, fine, &options).start(source).unwrap();
    let indices: Vec<u64> = stream.by_ref().map(|frame| frame.unwrap().index).collect();
    let summary = stream.summary();
    assert_eq!(indices.first(), Some(&0));
    assert_eq!(indices.last(), Some(&(total - 1)), "the latest frame is never dropped");
    assert!(indices.len() <= 3, "{indices:?}");
    assert!(indices.is_sorted());
    assert_eq!(summary.frames + summary.dropped, total);
}

#[test]
fn refused_depths() {
    for depth in [0, 1025] {
        let options = PipelineOptions { depth, ..PipelineOptions::default() };
        let error = Pipeline::new(WIDTH, HEIGHT, &params(true), &on(Backend::Auto), &options).err().unwrap();
        assert_eq!(error.to_string(), format!("depth = {depth} is not allowed: 1 to 1024"));
    }
}
