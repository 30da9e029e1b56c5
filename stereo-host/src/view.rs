//! Borrowed grey images.

use crate::{Error, Result, params::MAX_SIDE};

/// The pixels of a [`GrayView`], 8 or 16 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pixels<'a> {
    /// 8-bit intensities.
    U8(&'a [u8]),
    /// 16-bit intensities.
    U16(&'a [u16]),
}

impl Pixels<'_> {
    fn len(&self) -> usize {
        match self {
            Self::U8(data) => data.len(),
            Self::U16(data) => data.len(),
        }
    }

    /// Bits per pixel.
    pub fn bits(&self) -> u32 {
        match self {
            Self::U8(_) => 8,
            Self::U16(_) => 16,
        }
    }
}

/// A borrowed, strided, row-major grey image: pixel `(x, y)` is element `y * stride + x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrayView<'a> {
    pixels: Pixels<'a>,
    width: usize,
    height: usize,
    stride: usize,
}

impl<'a> GrayView<'a> {
    /// A view of `height` rows of `width` pixels that start `stride` elements apart.
    ///
    /// # Errors
    /// [`Error::Image`] for an empty or over-large size, a stride shorter than a row, or a buffer too short.
    pub fn new(pixels: Pixels<'a>, width: usize, height: usize, stride: usize) -> Result<Self> {
        check_size(width, height)?;
        if stride < width {
            return Err(Error::Image {
                what: "row stride",
                value: format!("{stride} elements"),
                limit: format!("a row has {width}"),
            });
        }
        let need = stride.checked_mul(height - 1).and_then(|n| n.checked_add(width));
        if need.is_none_or(|need| pixels.len() < need) {
            return Err(Error::Image {
                what: "pixel buffer",
                value: format!("{} elements", pixels.len()),
                limit: format!("{width}x{height} with stride {stride} needs more"),
            });
        }
        Ok(Self { pixels, width, height, stride })
    }

    /// An 8-bit view without padding between rows.
    ///
    /// # Errors
    /// As [`GrayView::new`].
    pub fn from_u8(data: &'a [u8], width: usize, height: usize) -> Result<Self> {
        Self::new(Pixels::U8(data), width, height, width)
    }

    /// A 16-bit view without padding between rows.
    ///
    /// # Errors
    /// As [`GrayView::new`].
    pub fn from_u16(data: &'a [u16], width: usize, height: usize) -> Result<Self> {
        Self::new(Pixels::U16(data), width, height, width)
    }

    /// The pixels, rows `stride` apart.
    pub fn pixels(&self) -> Pixels<'a> {
        self.pixels
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Elements from one row's start to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The intensity at `(x, y)`.
    ///
    /// # Panics
    /// Outside the image.
    pub fn get(&self, x: usize, y: usize) -> u16 {
        assert!(x < self.width && y < self.height, "pixel ({x}, {y}) of a {}x{} image", self.width, self.height);
        match self.pixels {
            Pixels::U8(data) => data[y * self.stride + x].into(),
            Pixels::U16(data) => data[y * self.stride + x],
        }
    }
}

impl<'a> TryFrom<&'a image::GrayImage> for GrayView<'a> {
    type Error = Error;

    /// Borrows the image's own buffer: no copy.
    fn try_from(image: &'a image::GrayImage) -> Result<Self> {
        Self::from_u8(image.as_raw(), image.width() as usize, image.height() as usize)
    }
}

impl<'a> TryFrom<&'a image::ImageBuffer<image::Luma<u16>, Vec<u16>>> for GrayView<'a> {
    type Error = Error;

    /// Borrows the image's own buffer: no copy.
    fn try_from(image: &'a image::ImageBuffer<image::Luma<u16>, Vec<u16>>) -> Result<Self> {
        Self::from_u16(image.as_raw(), image.width() as usize, image.height() as usize)
    }
}

/// Refuses sizes that no backend takes.
pub(crate) fn check_size(width: usize, height: usize) -> Result<()> {
    let limit = format!("each side must be 1 to {MAX_SIDE} pixels");
    if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
        return Err(Error::Image { what: "image size", value: format!("{width}x{height}"), limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_be_a_view() {
        let data = [0u8; 12];
        assert!(GrayView::from_u8(&data, 0, 3).is_err());
        assert!(GrayView::from_u8(&data, 4, 0).is_err());
        assert!(GrayView::from_u8(&data, 4, 4).unwrap_err().to_string().contains("12 elements"));
        let short = GrayView::new(Pixels::U8(&data), 4, 2, 3).unwrap_err().to_string();
        assert!(short.contains("3 elements") && short.contains('4'), "{short}");
        assert!(GrayView::new(Pixels::U8(&data), MAX_SIDE + 1, 1, MAX_SIDE + 1).is_err());
        assert!(GrayView::new(Pixels::U8(&data), 1, 2, usize::MAX).is_err());
    }

    #[test]
    fn strides_and_depths() {
        let data: Vec<u16> = (0..12).collect();
        let view = GrayView::new(Pixels::U16(&data), 3, 3, 4).unwrap();
        assert_eq!(view.get(2, 2), 10);
        let image = image::GrayImage::from_fn(3, 2, |x, y| image::Luma([(x + 10 * y) as u8]));
        let view = GrayView::try_from(&image).unwrap();
        assert_eq!((view.get(2, 1), view.pixels().bits()), (12, 8));
    }
}
