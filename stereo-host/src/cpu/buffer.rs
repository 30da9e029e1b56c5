//! Working memory at cache-line alignment, so that whole vectors do not straddle lines.

const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// A fixed block of bytes.
pub(super) struct Buffer {
    lines: Vec<Line>,
    bytes: usize,
}

impl Buffer {
    /// `bytes` bytes of `fill`.
    pub(super) fn new(bytes: usize, fill: u8) -> Self {
        Self { lines: vec![Line([fill; LINE]); bytes.div_ceil(LINE)], bytes }
    }

    /// Entries of 16 bits, `entries` of `fill`.
    pub(super) fn new16(entries: usize, fill: u16) -> Self {
        let mut buffer = Self::new(2 * entries, 0);
        buffer.as_mut16().fill(fill);
        buffer
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: the lines are initialised bytes without padding, at least `bytes` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.bytes) }
    }

    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `as_slice`, and borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.bytes) }
    }

    pub(super) fn as_mut16(&mut self) -> &mut [u16] {
        // SAFETY: as `as_mut`; lines are aligned for 16-bit entries, and any bits are one.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.bytes / 2) }
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}
