//! A set of a buffer's bytes that several threads may add to.

use core::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One bit per byte of a buffer.
pub(super) struct ByteSet {
    words: Box<[AtomicU64]>,
}

impl ByteSet {
    /// The empty set for a buffer of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { words: (0..bytes.div_ceil(u64::BITS as usize)).map(|_| AtomicU64::new(0)).collect() }
    }

    #[inline(always)]
    pub(super) fn insert(&self, range: Range<usize>) {
        for (word, mask) in masks(range) {
            let word = &self.words[word];
            // Mostly they are there already, and reading is the cheaper.
            if word.load(Relaxed) & mask != mask {
                word.fetch_or(mask, Relaxed);
            }
        }
    }

    /// The first byte of `range` in the set.
    #[inline(always)]
    pub(super) fn first_in(&self, range: Range<usize>) -> Option<usize> {
        masks(range).find_map(|(word, mask)| first(word, self.words[word].load(Relaxed) & mask))
    }

    /// The first byte of `range` not in the set.
    #[inline(always)]
    pub(super) fn first_not_in(&self, range: Range<usize>) -> Option<usize> {
        masks(range).find_map(|(word, mask)| first(word, !self.words[word].load(Relaxed) & mask))
    }
}

/// The words that hold the bits of `range`, and which of each they are.
#[inline(always)]
fn masks(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    const BITS: usize = u64::BITS as usize;
    let words = range.start / BITS..range.end.div_ceil(BITS);
    words.map(move |word| {
        let from = range.start.saturating_sub(word * BITS);
        let to = (range.end - word * BITS).min(BITS);
        // An empty range may still name a word.
        let mask = if from < to { (u64::MAX >> (BITS - (to - from))) << from } else { 0 };
        (word, mask)
    })
}

#[inline(always)]
fn first(word: usize, bits: u64) -> Option<usize> {
    (bits != 0).then(|| word * u64::BITS as usize + bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::ByteSet;

    #[test]
    fn agrees_with_a_list_of_flags() {
        let mut random = fastrand::Rng::with_seed(5);
        for bytes in [1, 63, 64, 65, 200] {
            let (set, mut flags) = (ByteSet::new(bytes), vec![false; bytes]);
            for _ in 0..60 {
                let start = random.usize(0..=bytes);
                let range = start..random.usize(start..=bytes);
                let expected = |flag| range.clone().find(|&i| flags[i] == flag);
                assert_eq!(set.first_in(range.clone()), expected(true), "{range:?}");
                assert_eq!(set.first_not_in(range.clone()), expected(false), "{range:?}");
                if random.u32(0..4) == 0 {
                    let range = start..(start + random.usize(0..20)).min(bytes);
                    set.insert(range.clone());
                    flags[range].fill(true);
                }
            }
        }
    }
}
