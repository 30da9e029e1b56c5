//! The queue between the source and the first matching stage: bounded, or the latest frame only.

use std::sync::{
    Arc,
    mpsc::{Receiver, SyncSender, sync_channel},
};

use super::latest::Latest;

/// The source's end. Dropping it ends the queue after what waits.
pub(super) enum Sender<T> {
    Bounded(SyncSender<T>),
    Latest(Arc<Latest<T>>),
}

/// The matching stage's end. Dropping it tells the source to stop.
pub(super) enum Inbox<T> {
    Bounded(Receiver<T>),
    Latest(Arc<Latest<T>>),
}

/// A queue of `depth`, or of the latest value only.
pub(super) fn queue<T>(depth: usize, latest_only: bool) -> (Sender<T>, Inbox<T>) {
    if latest_only {
        let slot = Arc::new(Latest::new());
        (Sender::Latest(slot.clone()), Inbox::Latest(slot))
    } else {
        let (sender, receiver) = sync_channel(depth);
        (Sender::Bounded(sender), Inbox::Bounded(receiver))
    }
}

impl<T> Sender<T> {
    /// `false` when nobody listens any more.
    pub(super) fn send(&self, value: T) -> bool {
        match self {
            Self::Bounded(sender) => sender.send(value).is_ok(),
            Self::Latest(slot) => slot.put(value),
        }
    }

    /// Sends a value that must not be replaced and ends the queue.
    pub(super) fn finish(self, value: T) {
        match &self {
            Self::Bounded(sender) => drop(sender.send(value)),
            Self::Latest(slot) => slot.finish(value),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Self::Latest(slot) = self {
            slot.end();
        }
    }
}

impl<T> Inbox<T> {
    /// Waits for a value; `None` when there will be no more.
    pub(super) fn receive(&self) -> Option<T> {
        match self {
            Self::Bounded(receiver) => receiver.recv().ok(),
            Self::Latest(slot) => slot.take(),
        }
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        if let Self::Latest(slot) = self {
            slot.close();
        }
    }
}
