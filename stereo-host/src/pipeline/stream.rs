//! The consumer's end of a pipeline.

use std::{
    sync::mpsc::Receiver,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::summary::{Meter, Summary};
use crate::{DisparityMap, Report, Result};

/// A finished frame.
#[derive(Debug)]
pub struct Frame<P> {
    /// Its place in the source, from 0. Numbers are missing where frames were dropped.
    pub index: u64,
    /// The pair it was computed from.
    pub pair: P,
    /// The result.
    pub map: DisparityMap,
    /// What was done: the stages with [`crate::Options::timing`]; `total_ms` is work without waiting.
    pub report: Report,
    /// When the source gave the pair.
    pub arrived: Instant,
    /// From there to the finished map.
    pub latency: Duration,
}

/// The finished frames of a running pipeline, in the source's order. Dropping it stops the stages and waits for
/// them; a source that is just waiting for its next pair is waited for as well.
pub struct Stream<P> {
    /// `None` once the stream has ended.
    pub(super) frames: Option<Receiver<Result<Frame<P>>>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) meter: Meter,
    pub(super) dropped: Box<dyn Fn() -> u64 + Send>,
}

impl<P> Stream<P> {
    /// What was done so far.
    pub fn summary(&self) -> Summary {
        self.meter.summary((self.dropped)())
    }

    /// Stops every stage and gives a panic of theirs, if any.
    fn stop(&mut self) -> Option<Box<dyn std::any::Any + Send>> {
        // Each stage ends when its receiver is gone, from the last one to the source.
        self.frames = None;
        self.threads.drain(..).filter_map(|thread| thread.join().err()).next()
    }
}

impl<P> Iterator for Stream<P> {
    type Item = Result<Frame<P>>;

    /// The next finished frame, or the error that ended the stream.
    ///
    /// # Panics
    /// When a stage has panicked, or the source.
    fn next(&mut self) -> Option<Self::Item> {
        match self.frames.as_ref()?.recv() {
            Ok(Ok(frame)) => {
                self.meter.frame(frame.latency);
                Some(Ok(frame))
            }
            end => {
                if let Some(panic) = self.stop() {
                    std::panic::resume_unwind(panic);
                }
                end.ok()
            }
        }
    }
}

impl<P> Drop for Stream<P> {
    fn drop(&mut self) {
        // A panic has been reported by its own thread; here nobody is left to handle it.
        self.stop();
    }
}
