//! The stages' threads.

use std::{
    sync::mpsc::{Receiver, Sender as Unbounded, SyncSender, channel, sync_channel},
    thread::{self, JoinHandle},
    time::Instant,
};

use super::{
    Frame, Halves, Pipeline, StereoPair, Stream, Work,
    queue::{Inbox, Sender, queue},
    summary::Meter,
};
use crate::{
    DisparityMap, Error, GrayView, Matcher, Params, Report, Result,
    masda::{Candidates, GraphSolver, ImagePlane},
};

/// A pair on its way to the matching stage.
struct Loaded<P> {
    index: u64,
    pair: P,
    arrived: Instant,
}

/// A pair on its way to the solver.
struct Reduced<P> {
    loaded: Loaded<P>,
    candidates: Candidates,
    report: Report,
}

/// Where the finished frames go.
type Outbox<P> = SyncSender<Result<Frame<P>>>;

pub(super) fn no_thread(error: std::io::Error) -> Error {
    Error::Unavailable { backend: "pipeline", reason: format!("cannot start a thread: {error}") }
}

/// Starts a named thread.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(no_thread)
}

/// Starts all stages. When one cannot be started, those that were end by themselves, as their neighbours are gone.
pub(super) fn start<P, S>(pipeline: Pipeline, source: S) -> Result<Stream<P>>
where
    P: StereoPair,
    S: IntoIterator<Item = Result<P>> + Send + 'static,
{
    let Pipeline { work, options } = pipeline;
    let inner = options.inner_depth();
    let (loaded, inbox) = queue(options.depth, options.latest_only);
    let (outbox, frames) = sync_channel(inner);
    let dropped: Box<dyn Fn() -> u64 + Send> = match &inbox {
        Inbox::Latest(slot) => {
            let slot = slot.clone();
            Box::new(move || slot.replaced())
        }
        Inbox::Bounded(_) => Box::new(|| 0),
    };
    let meter = Meter::start();
    let mut threads = Vec::new();
    match work {
        Work::Whole(matcher) => threads.push(spawn("stereo-match", move || match_pairs(*matcher, &inbox, &outbox))?),
        Work::Halves(halves) => {
            let Halves { plane, solver, params, width, height, backend } = *halves;
            let (reduced, to_solve) = sync_channel(inner);
            let (used, pool) = channel();
            // One in the works at each side and those that wait between.
            for _ in 0..inner + 2 {
                let candidates = Candidates::new(width, height)?;
                // The receiver is right here.
                let _ = used.send(candidates);
            }
            let (device, device_code) = (plane.device(), plane.device_code());
            let names = Report { backend, device, device_code, ..Report::default() };
            threads.push(spawn("stereo-match", move || reduce_pairs(plane, &names, &inbox, &pool, &reduced))?);
            threads.push(spawn("stereo-solve", move || {
                solve_pairs(solver, &params, &to_solve, &used, &outbox);
            })?);
        }
    }
    threads.push(spawn("stereo-load", move || load_pairs(source, loaded))?);
    Ok(Stream { frames: Some(frames), threads, meter, dropped })
}

/// Takes pairs from the source until it ends, fails, or nobody wants more.
fn load_pairs<P>(source: impl IntoIterator<Item = Result<P>>, loaded: Sender<Result<Loaded<P>>>) {
    for (index, item) in (0..).zip(source) {
        match item {
            Ok(pair) => {
                if !loaded.send(Ok(Loaded { index, pair, arrived: Instant::now() })) {
                    return;
                }
            }
            Err(error) => return loaded.finish(Err(error)),
        }
    }
}

/// The single matching stage.
fn match_pairs<P: StereoPair>(mut matcher: Matcher, inbox: &Inbox<Result<Loaded<P>>>, outbox: &Outbox<P>) {
    while let Some(item) = inbox.receive() {
        let result = item.and_then(|loaded| {
            let (left, right) = loaded.pair.views()?;
            let map = matcher.compute(&left, &right)?;
            Ok(finished(loaded, map, matcher.report().clone()))
        });
        let failed = result.is_err();
        if outbox.send(result).is_err() || failed {
            return;
        }
    }
}

/// The first of two matching stages.
fn reduce_pairs<P: StereoPair>(
    mut plane: Box<dyn ImagePlane>,
    names: &Report,
    inbox: &Inbox<Result<Loaded<P>>>,
    pool: &Receiver<Candidates>,
    reduced: &SyncSender<Result<Reduced<P>>>,
) {
    while let Some(item) = inbox.receive() {
        // The solver has gone when nothing comes back.
        let Ok(mut candidates) = pool.recv() else { return };
        let result = item.and_then(|loaded| {
            let mut report = names.clone();
            let start = Instant::now();
            let (left, right) = loaded.pair.views()?;
            plane.compute(&left, &right, &mut candidates, &mut report)?;
            report.total_ms = start.elapsed().as_secs_f64() * 1e3;
            Ok(Reduced { loaded, candidates, report })
        });
        let failed = result.is_err();
        if reduced.send(result).is_err() || failed {
            return;
        }
    }
}

/// The second of two matching stages.
fn solve_pairs<P: StereoPair>(
    mut solver: Box<dyn GraphSolver>,
    params: &Params,
    to_solve: &Receiver<Result<Reduced<P>>>,
    used: &Unbounded<Candidates>,
    outbox: &Outbox<P>,
) {
    while let Ok(item) = to_solve.recv() {
        let result = item.and_then(|Reduced { loaded, candidates, mut report }| {
            let start = Instant::now();
            let left: GrayView<'_> = loaded.pair.views()?.0;
            let mut map = DisparityMap::new(candidates.width(), candidates.height(), params)?;
            solver.solve(&candidates, &left, &mut map, &mut report)?;
            report.total_ms += start.elapsed().as_secs_f64() * 1e3;
            // The first stage may have ended already.
            let _ = used.send(candidates);
            Ok(finished(loaded, map, report))
        });
        let failed = result.is_err();
        if outbox.send(result).is_err() || failed {
            return;
        }
    }
}

fn finished<P>(loaded: Loaded<P>, map: DisparityMap, report: Report) -> Frame<P> {
    let Loaded { index, pair, arrived } = loaded;
    Frame { index, pair, map, report, arrived, latency: arrived.elapsed() }
}
