//! Portable float maps, as the Middlebury tools read and write them: grey 32-bit floats, bottom row first.

use std::{io::Write, path::Path};

use super::{FloatImage, atomic, format_error, gray::read_file, write_error};
use crate::{Result, view::check_size};

/// Reads a grey PFM of either byte order; infinity and NaN, both "no disparity", become NaN.
///
/// # Errors
/// [`crate::Error::File`] when it cannot be read, [`crate::Error::Format`] when it is not a whole grey PFM.
pub fn load_pfm(path: &Path) -> Result<FloatImage> {
    let bytes = read_file(path)?;
    let (header, data) =
        split_header(&bytes).ok_or_else(|| format_error(path, "not a PFM: the header is not whole"))?;
    let [magic, width, height, scale] = header;
    if magic != "Pf" {
        return Err(format_error(path, format!("not a grey PFM: it starts with {magic:?}, expected \"Pf\"")));
    }
    let side = |text: &str| text.parse::<usize>().ok();
    let (Some(width), Some(height)) = (side(width), side(height)) else {
        return Err(format_error(path, format!("the PFM header's size \"{width} {height}\" is not two numbers")));
    };
    check_size(width, height).map_err(|e| format_error(path, e.to_string()))?;
    let scale = scale.parse::<f32>().ok().filter(|s| s.is_finite() && *s != 0.0).ok_or_else(|| {
        format_error(path, format!("the PFM header's scale {scale:?} is not a finite number other than 0"))
    })?;
    let need = width * height * size_of::<f32>();
    if data.len() < need {
        let reason = format!("{width}x{height} floats need {need} bytes, the file holds {}", data.len());
        return Err(format_error(path, reason));
    }
    // The sign of the scale gives the byte order: negative is little-endian.
    let to_f32 = if scale < 0.0 { f32::from_le_bytes } else { f32::from_be_bytes };
    let value = |i: usize| to_f32([data[i], data[i + 1], data[i + 2], data[i + 3]]);
    Ok(FloatImage::from_fn(width as u32, height as u32, |x, y| {
        let v = value(((height - 1 - y as usize) * width + x as usize) * size_of::<f32>());
        image::Luma([if v.is_finite() { v } else { f32::NAN }])
    }))
}

/// Writes a grey little-endian PFM; NaN becomes infinity.
///
/// # Errors
/// [`crate::Error::File`] when writing fails.
pub fn save_pfm(path: &Path, image: &FloatImage) -> Result<()> {
    atomic::write(path, |file| {
        let mut write = || -> std::io::Result<()> {
            write!(file, "Pf\n{} {}\n-1.0\n", image.width(), image.height())?;
            for row in image.rows().rev() {
                for pixel in row {
                    let v = if pixel.0[0].is_nan() { f32::INFINITY } else { pixel.0[0] };
                    file.write_all(&v.to_le_bytes())?;
                }
            }
            Ok(())
        };
        write().map_err(|e| write_error(path, e))
    })
}

/// Magic, width, height and scale, and the bytes after the one white space that ends the header.
fn split_header(bytes: &[u8]) -> Option<([&str; 4], &[u8])> {
    let mut rest = bytes;
    let mut fields = [""; 4];
    for field in &mut fields {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace)?;
        *field = std::str::from_utf8(&rest[..end]).ok()?;
        rest = &rest[end..];
    }
    Some((fields, &rest[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_byte_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pfm");
        let image =
            FloatImage::from_fn(3, 2, |x, y| image::Luma([if x == 1 { f32::NAN } else { x as f32 - y as f32 / 16.0 }]));
        save_pfm(&path, &image).unwrap();
        let same = |a: &FloatImage, b: &FloatImage| {
            a.dimensions() == b.dimensions() && a.iter().zip(b.iter()).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        };
        assert!(same(&load_pfm(&path).unwrap(), &image));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..14], b"Pf\n3 2\n-1.0\n\x00\x00");
        // The first float in the file is the bottom left one, the second is invalid.
        assert_eq!(f32::from_le_bytes(bytes[12..16].try_into().unwrap()), -1.0 / 16.0);
        assert_eq!(f32::from_le_bytes(bytes[16..20].try_into().unwrap()), f32::INFINITY);

        let mut big = b"Pf 1 1 1.0\n".to_vec();
        big.extend(2.5f32.to_be_bytes());
        std::fs::write(&path, big).unwrap();
        assert_eq!(load_pfm(&path).unwrap().as_raw(), &[2.5]);
    }

    #[test]
    fn what_is_not_a_whole_grey_pfm_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bad.pfm");
        for (bytes, word) in [
            (&b"Pf 2 2 -1.0\n0000"[..], "need 16 bytes, the file holds 4"),
            (b"Pf 2 2", "not whole"),
            (b"PF 1 1 -1.0\n000000000000", "\"PF\""),
            (b"Pf x 1 -1.0\n0000", "\"x 1\""),
            (b"Pf 0 1 -1.0\n", "0x1"),
            (b"Pf 99999999 99999999 -1.0\n", "99999999x99999999"),
            (b"Pf 1 1 nan\n0000", "\"nan\""),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let text = load_pfm(&path).unwrap_err().to_string();
            assert!(text.contains("bad.pfm") && text.contains(word), "{text}");
        }
    }
}
