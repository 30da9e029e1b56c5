//! Images in the memory of a GPU that someone else owns.

use crate::{Error, Result};

/// Rows in device memory: row `y` begins `y * pitch` bytes after `address`.
///
/// The address is the driver's (`CUdeviceptr`), in the primary context of the matcher's GPU or in
/// memory that it can read and write, such as another library's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceImage {
    /// Where the first row begins.
    pub address: u64,
    /// Bytes from one row's start to the next, at least a row's own.
    pub pitch: usize,
}

/// A rectified pair in device memory, grey, row-major, of the matcher's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePair {
    /// The left image.
    pub left: DeviceImage,
    /// The right image.
    pub right: DeviceImage,
    /// Bits per pixel of both: 8 or 16, the latter in the machine's byte order.
    pub bits: u32,
}

impl DeviceImage {
    /// Rows of `row_bytes` without padding.
    pub fn dense(address: u64, row_bytes: usize) -> Self {
        Self { address, pitch: row_bytes }
    }

    fn check(self, what: &'static str, row_bytes: usize) -> Result<()> {
        let refuse = |value: String, limit: String| Err(Error::Image { what, value, limit });
        if self.address == 0 {
            return refuse("address 0".to_owned(), "it must be in device memory".to_owned());
        }
        if self.pitch < row_bytes {
            return refuse(format!("pitch {} bytes", self.pitch), format!("a row has {row_bytes}"));
        }
        Ok(())
    }
}

/// Bytes of a disparity.
const DISPARITY_BYTES: usize = size_of::<i16>();

/// Refuses what cannot be a pair and a map of `width` columns.
pub(crate) fn check(pair: &DevicePair, map: DeviceImage, width: usize) -> Result<()> {
    if pair.bits != 8 && pair.bits != 16 {
        let value = format!("{} bits", pair.bits);
        return Err(Error::Image { what: "device pair's depth", value, limit: "8 and 16 are possible".to_owned() });
    }
    let row = width * pair.bits as usize / 8;
    pair.left.check("left device image", row)?;
    pair.right.check("right device image", row)?;
    map.check("device map", width * DISPARITY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_be_a_pair() {
        let image = |pitch| DeviceImage { address: 256, pitch };
        let pair = |pitch, bits| DevicePair { left: image(512), right: image(pitch), bits };
        check(&pair(100, 8), image(200), 100).unwrap();
        check(&pair(200, 16), image(200), 100).unwrap();
        let text = |pair, map| check(&pair, map, 100).unwrap_err().to_string();
        assert!(text(pair(100, 16), image(200)).contains("right device image: pitch 100 bytes, but a row has 200"));
        assert!(text(pair(99, 8), image(200)).contains("99"));
        assert!(text(pair(100, 8), image(199)).contains("device map"));
        assert!(text(pair(100, 12), image(200)).contains("12 bits"));
        let nowhere = DeviceImage { address: 0, pitch: 512 };
        assert!(text(DevicePair { left: nowhere, ..pair(100, 8) }, image(200)).contains("address 0"));
    }
}
