//! A slot that holds the latest value only.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// A place for one value that a newer one replaces; the last word ([`Latest::finish`]) is never replaced.
#[derive(Debug)]
pub(super) struct Latest<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    replaced: AtomicU64,
}

#[derive(Debug)]
struct State<T> {
    waiting: Option<T>,
    last: Option<T>,
    /// No sender or no receiver any more.
    closed: bool,
}

impl<T> Latest<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State { waiting: None, last: None, closed: false }),
            changed: Condvar::new(),
            replaced: AtomicU64::new(0),
        }
    }

    /// Puts `value` in the slot; `false` when nobody will take it.
    pub(super) fn put(&self, value: T) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        if state.waiting.replace(value).is_some() {
            self.replaced.fetch_add(1, Ordering::Relaxed);
        }
        self.changed.notify_one();
        true
    }

    /// Puts a value that comes after the one that waits, if any, and ends the slot.
    pub(super) fn finish(&self, value: T) {
        let mut state = self.lock();
        if !state.closed {
            state.last = Some(value);
            state.closed = true;
            self.changed.notify_one();
        }
    }

    /// Ends the slot after the value that waits, if any.
    pub(super) fn end(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Closes the slot and throws away what waits.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        *state = State { waiting: None, last: None, closed: true };
        self.changed.notify_one();
    }

    /// Waits for a value; `None` when there will be no more.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(value) = state.waiting.take() {
                return Some(value);
            }
            if state.closed {
                return state.last.take();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many values were replaced before anyone took them.
    pub(super) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_value_replaces_a_waiting_one_but_the_last_word_stays() {
        let slot = Latest::new();
        assert!(slot.put(1) && slot.put(2));
        assert_eq!((slot.take(), slot.replaced()), (Some(2), 1));
        assert!(slot.put(3));
        slot.finish(9);
        slot.end();
        assert!(!slot.put(4));
        assert_eq!([slot.take(), slot.take(), slot.take()], [Some(3), Some(9), None]);
    }

    #[test]
    fn closing_wakes_the_receiver() {
        let slot = Latest::<u8>::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slot.take());
            slot.close();
            assert_eq!(waiting.join().unwrap(), None);
        });
        assert!(!slot.put(1));
    }
}
