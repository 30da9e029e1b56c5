//! Input images.

use std::{fs, io::Read, path::Path};

use image::{DynamicImage, GrayImage, ImageBuffer, ImageDecoder, ImageReader, Limits, Luma, Pixel};

use super::{format_error, one_line, read_error};
use crate::{GrayView, Result, view::check_size};

/// BT.601 weights of R, G and B in 1/65536; their sum is 65536 (sgm.md, section 0).
const LUMA: [u64; 3] = [19_595, 38_470, 7_471];

/// No format here unpacks one byte of file to more pixel bytes than this: deflate reaches 1032, a JPEG of
/// one-bit blocks about 1024. A header that promises more lies, and is refused before its memory is taken.
const MAX_EXPANSION: u64 = 2048;

/// Pixel bytes that any file may promise, however short it is.
const EXPANSION_SLACK: u64 = 1 << 20;

/// Bytes that are read from a pipe or a device, which may never end: enough for a colour image of 16384x16384.
const MAX_STREAMED: u64 = 1 << 30;

/// Decoders may hold the pixels, one more copy and their tables.
const DECODER_COPIES: u64 = 4;

/// An owned grey image of either depth; [`Gray::view`] borrows it for a matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gray {
    /// 8 bits a pixel.
    U8(GrayImage),
    /// 16 bits a pixel.
    U16(ImageBuffer<Luma<u16>, Vec<u16>>),
}

impl Gray {
    /// Converts a decoded image: colour becomes grey by BT.601 in integers (sgm.md, section 0), alpha is
    /// ignored, grey is moved, not copied. `None` for floating-point pixels.
    pub fn from_image(image: DynamicImage) -> Option<Self> {
        Some(match image {
            DynamicImage::ImageLuma8(image) => Self::U8(image),
            DynamicImage::ImageLumaA8(image) => Self::U8(convert(&image, |p| p.0[0])),
            DynamicImage::ImageRgb8(image) => Self::U8(convert(&image, |p| luma8(p.0))),
            DynamicImage::ImageRgba8(image) => Self::U8(convert(&image, |p| luma8([p.0[0], p.0[1], p.0[2]]))),
            DynamicImage::ImageLuma16(image) => Self::U16(image),
            DynamicImage::ImageLumaA16(image) => Self::U16(convert(&image, |p| p.0[0])),
            DynamicImage::ImageRgb16(image) => Self::U16(convert(&image, |p| luma16(p.0))),
            DynamicImage::ImageRgba16(image) => Self::U16(convert(&image, |p| luma16([p.0[0], p.0[1], p.0[2]]))),
            _ => return None,
        })
    }

    /// Borrows the pixels.
    ///
    /// # Errors
    /// [`crate::Error::Image`] for a size that no backend takes.
    pub fn view(&self) -> Result<GrayView<'_>> {
        match self {
            Self::U8(image) => image.try_into(),
            Self::U16(image) => image.try_into(),
        }
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (usize, usize) {
        let (width, height) = match self {
            Self::U8(image) => image.dimensions(),
            Self::U16(image) => image.dimensions(),
        };
        (width as usize, height as usize)
    }
}

/// Reads an image of any supported format and depth as grey. The content decides the format, the
/// extension only where the content does not tell.
///
/// # Errors
/// [`crate::Error::File`] when it cannot be read, [`crate::Error::Format`] when it is not a whole image of a
/// known format with sides up to [`crate::MAX_SIDE`].
pub fn load_gray(path: &Path) -> Result<Gray> {
    Gray::from_image(decode(path)?)
        .ok_or_else(|| format_error(path, "floating-point pixels; 8- or 16-bit integers are needed"))
}

/// Decodes a whole file, refusing sizes before they are allocated.
pub(super) fn decode(path: &Path) -> Result<DynamicImage> {
    let bytes = read_file(path)?;
    let mut reader =
        ImageReader::new(std::io::Cursor::new(&bytes)).with_guessed_format().map_err(|e| read_error(path, e))?;
    if reader.format().is_none() {
        match image::ImageFormat::from_path(path) {
            Ok(format) => reader.set_format(format),
            Err(_) => return Err(format_error(path, "not an image: known are PNG, PGM/PPM, JPEG, TIFF and BMP")),
        }
    }
    let jpeg = reader.format() == Some(image::ImageFormat::Jpeg);
    let believable = bytes.len() as u64 * MAX_EXPANSION + EXPANSION_SLACK;
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(DECODER_COPIES * believable);
    reader.limits(limits);
    let undecodable = |e: image::ImageError| format_error(path, format!("cannot decode: {}", one_line(&e)));
    let decoder = reader.into_decoder().map_err(undecodable)?;
    let (width, height) = decoder.dimensions();
    check_size(width as usize, height as usize).map_err(|e| format_error(path, e.to_string()))?;
    if decoder.total_bytes() > believable {
        let reason = format!("the header promises {width}x{height} pixels, the file has only {} bytes", bytes.len());
        return Err(format_error(path, reason));
    }
    if jpeg && !jpeg_is_whole(&bytes) {
        return Err(format_error(path, "cannot decode: the JPEG data ends before the image does"));
    }
    DynamicImage::from_decoder(decoder).map_err(undecodable)
}

/// The file's bytes; a folder or an empty file is refused by name.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let file = fs::File::open(path).map_err(|e| read_error(path, e))?;
    let meta = file.metadata().map_err(|e| read_error(path, e))?;
    if meta.is_dir() {
        return Err(format_error(path, "cannot read: it is a folder"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    let limit = if meta.is_file() { u64::MAX } else { MAX_STREAMED };
    file.take(limit).read_to_end(&mut bytes).map_err(|e| read_error(path, e))?;
    if bytes.len() as u64 == limit {
        return Err(format_error(path, format!("no regular file, and it does not end within {limit} bytes")));
    }
    if bytes.is_empty() {
        return Err(format_error(path, "the file is empty"));
    }
    Ok(bytes)
}

/// Whether an end-of-image marker follows the last start of a scan. The decoder fills a truncated image with
/// grey without a word; entropy-coded data holds neither marker, since a 0xFF in it is followed by 0.
fn jpeg_is_whole(bytes: &[u8]) -> bool {
    let last = |marker: u8| bytes.windows(2).rposition(|pair| pair == [0xFF, marker]);
    last(0xD9) > last(0xDA)
}

fn convert<P: Pixel, T: image::Primitive>(
    image: &ImageBuffer<P, Vec<P::Subpixel>>,
    to_gray: impl Fn(&P) -> T,
) -> ImageBuffer<Luma<T>, Vec<T>>
where
    Luma<T>: Pixel<Subpixel = T>,
{
    ImageBuffer::from_fn(image.width(), image.height(), |x, y| Luma([to_gray(image.get_pixel(x, y))]))
}

fn weighted(rgb: [u64; 3]) -> u64 {
    (LUMA[0] * rgb[0] + LUMA[1] * rgb[1] + LUMA[2] * rgb[2] + (1 << 15)) >> 16
}

/// The weights sum to one, so the result fits the channel's depth.
fn luma8(rgb: [u8; 3]) -> u8 {
    weighted(rgb.map(u64::from)) as u8
}

fn luma16(rgb: [u16; 3]) -> u16 {
    weighted(rgb.map(u64::from)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageFormat};
    use proptest::prelude::RngExt as _;

    #[test]
    fn grey_is_bt601_in_integers() {
        assert_eq!(LUMA.iter().sum::<u64>(), 1 << 16);
        assert_eq!([luma8([255, 0, 0]), luma8([0, 255, 0]), luma8([0, 0, 255])], [76, 150, 29]);
        assert_eq!(luma8([255; 3]), 255);
        assert_eq!(luma16([65_535; 3]), 65_535);
        // 19595 * 40000 + 38470 * 500 + 7471 * 60000 = 1251295000, which is 19093.25 * 65536.
        assert_eq!(luma16([40_000, 500, 60_000]), 19_093);
    }

    #[test]
    fn every_format_and_depth_reads_as_grey() {
        let dir = tempfile::tempdir().unwrap();
        let rgb = image::RgbImage::from_fn(5, 4, |x, y| image::Rgb([x as u8 * 50, y as u8 * 60, 7]));
        let expected = Gray::from_image(rgb.clone().into()).unwrap();
        for name in ["a.png", "a.ppm", "a.tif", "a.bmp"] {
            let path = dir.path().join(name);
            rgb.save(&path).unwrap();
            assert_eq!(load_gray(&path).unwrap(), expected, "{name}");
        }
        let mut rgba = DynamicImage::from(rgb.clone()).to_rgba8();
        rgba.pixels_mut().for_each(|p| p.0[3] = 0);
        let path = dir.path().join("alpha.png");
        rgba.save(&path).unwrap();
        assert_eq!(load_gray(&path).unwrap(), expected, "alpha is ignored");
        let path = dir.path().join("a.jpg");
        rgb.save(&path).unwrap();
        assert_eq!(load_gray(&path).unwrap().size(), (5, 4));
        let deep: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_fn(3, 2, |x, y| Luma([(x * 20_000 + y) as u16]));
        for name in ["b.png", "b.tif", "b.pgm"] {
            let path = dir.path().join(name);
            deep.save(&path).unwrap();
            assert_eq!(load_gray(&path).unwrap(), Gray::U16(deep.clone()), "{name}");
        }
    }

    #[test]
    fn every_truncation_of_every_format_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let noisy = image::GrayImage::from_fn(23, 17, |x, y| Luma([(x * 89 + y * 41 + x * y * 7) as u8]));
        for (name, format) in [
            ("t.png", ImageFormat::Png),
            ("t.pgm", ImageFormat::Pnm),
            ("t.jpg", ImageFormat::Jpeg),
            ("t.tif", ImageFormat::Tiff),
            ("t.bmp", ImageFormat::Bmp),
        ] {
            let mut bytes = std::io::Cursor::new(Vec::new());
            noisy.write_to(&mut bytes, format).unwrap();
            let bytes = bytes.into_inner();
            let path = dir.path().join(name);
            fs::write(&path, &bytes).unwrap();
            load_gray(&path).unwrap();
            // A whole PNG ends with a checksum and an empty IEND that carry no pixel.
            let last = if name == "t.png" { bytes.len() - 16 } else { bytes.len() };
            for cut in (0..last).step_by(7).chain([last - 1]) {
                fs::write(&path, &bytes[..cut]).unwrap();
                let result = load_gray(&path);
                assert!(result.is_err(), "{name} cut to {cut} of {} bytes", bytes.len());
                let text = result.unwrap_err().to_string();
                assert!(text.contains(name) && !text.contains('\n'), "{text}");
            }
        }
    }

    /// Damaged files may decode to other pixels or be refused; they must not panic.
    #[test]
    fn damaged_files_never_panic() {
        const DAMAGES: usize = 200;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("damaged");
        let image =
            image::RgbImage::from_fn(19, 13, |x, y| image::Rgb([(x * 13) as u8, (y * 19) as u8, (x * y) as u8]));
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for format in [ImageFormat::Png, ImageFormat::Pnm, ImageFormat::Jpeg, ImageFormat::Tiff, ImageFormat::Bmp] {
            let mut bytes = std::io::Cursor::new(Vec::new());
            image.write_to(&mut bytes, format).unwrap();
            let whole = bytes.into_inner();
            let rng = runner.rng();
            for _ in 0..DAMAGES {
                let mut bytes = whole.clone();
                for _ in 0..=rng.random_range(0..4) {
                    // Headers are where damage tells; they lie at the start, and at the end of a TIFF.
                    let (len, near) = (bytes.len(), rng.random_range(1..=bytes.len()));
                    let at = if rng.random() { rng.random_range(0..near.min(64)) } else { len - near };
                    bytes[at] = rng.random();
                }
                fs::write(&path, &bytes).unwrap();
                let _ = load_gray(&path);
            }
        }
    }

    #[test]
    fn lying_headers_are_refused_before_their_memory_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, bytes: &[u8], word: &str| {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            let text = load_gray(&path).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(word), "{text}");
        };
        check("huge.pgm", b"P5 32768 32768 255\nabc", "the header promises 32768x32768");
        check("wide.pgm", b"P5 32769 1 255\nabc", "32769x1");
        check("zero.pgm", b"P5 0 4 255\nabc", "0");
        check("text.png", b"this is not an image", "cannot decode");
        check("text.txt", b"this is not an image", "known are");
        check("empty.png", b"", "empty");
        let mut png = Vec::new();
        let encoder = image::codecs::png::PngEncoder::new(&mut png);
        image::ImageEncoder::write_image(encoder, &[0; 4], 2, 2, ExtendedColorType::L8).unwrap();
        // IHDR's width follows the 8-byte signature, the chunk's length and its name.
        png[16..20].copy_from_slice(&30_000u32.to_be_bytes());
        check("liar.png", &png, "cannot decode");
        let path = dir.path().join("float.tif");
        image::Rgb32FImage::new(2, 2).save(&path).unwrap();
        assert!(load_gray(&path).unwrap_err().to_string().contains("floating-point"));
    }
}
