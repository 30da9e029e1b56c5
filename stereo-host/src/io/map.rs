//! Disparity maps and ground truth in files.

use std::{fmt, path::Path, str::FromStr};

use image::{DynamicImage, GrayImage, ImageBuffer, Luma};

use super::{FloatImage, format_error, gray, load_pfm, save_image, save_pfm};
use crate::{DisparityMap, Error, Result};

/// KITTI's 16-bit values are disparities times this; 0 is invalid.
const KITTI_SCALE: f32 = 256.0;

/// How a file holds disparities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Portable float map (`.pfm`): pixels of disparity, infinity for invalid, as Middlebury does.
    Pfm,
    /// 16-bit PNG or TIFF as KITTI does: disparity times 256, 0 for invalid; 0 to 255.99 pixels.
    Kitti,
    /// 8-bit PNG or TIFF as the early Middlebury sets: disparity times the scale, 0 for invalid.
    Middlebury {
        /// Grey values per pixel of disparity.
        scale: u8,
    },
    /// 16-bit PNG or TIFF of the map's own fixed-point values, two's complement.
    Raw16,
}

impl Encoding {
    /// The encoding that a file's extension stands for: [`Encoding::Pfm`] or, for PNG and TIFF, [`Encoding::Kitti`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for any other extension.
    pub fn for_path(path: &Path) -> Result<Self> {
        match extension(path).as_str() {
            "pfm" => Ok(Self::Pfm),
            "png" | "tif" | "tiff" => Ok(Self::Kitti),
            _ => Err(Error::parameter(
                "output",
                path.display(),
                "a disparity map's name ends in .pfm, .png, .tif or .tiff",
            )),
        }
    }

    /// Refuses a file whose extension cannot hold this encoding.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the extensions that can.
    pub fn check_path(self, path: &Path) -> Result<()> {
        let by_extension = Self::for_path(path)?;
        if (self == Self::Pfm) != (by_extension == Self::Pfm) {
            let needed = if self == Self::Pfm { ".pfm" } else { ".png, .tif or .tiff" };
            return Err(Error::parameter(
                "output",
                path.display(),
                format!("encoding {self} needs a name that ends in {needed}"),
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pfm => f.write_str("pfm"),
            Self::Kitti => f.write_str("kitti"),
            Self::Middlebury { scale } => write!(f, "middlebury={scale}"),
            Self::Raw16 => f.write_str("raw16"),
        }
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused =
            || Error::parameter("encoding", text, "pfm, kitti, raw16, or middlebury=SCALE with a scale of 1 to 255");
        match text {
            "pfm" => Ok(Self::Pfm),
            "kitti" => Ok(Self::Kitti),
            "raw16" => Ok(Self::Raw16),
            _ => {
                let scale = text.strip_prefix("middlebury=").and_then(|s| s.parse().ok()).filter(|&s| s > 0);
                scale.map(|scale| Self::Middlebury { scale }).ok_or_else(refused)
            }
        }
    }
}

impl DisparityMap {
    /// Writes the map in the encoding that the file's extension stands for ([`Encoding::for_path`]).
    ///
    /// # Errors
    /// As [`DisparityMap::save_as`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.save_as(path, Encoding::for_path(path)?)
    }

    /// Writes the map; the file appears complete or not at all.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the extension does not fit the encoding, [`Error::Format`] when a value does not,
    /// [`Error::File`] when writing fails.
    pub fn save_as(&self, path: impl AsRef<Path>, encoding: Encoding) -> Result<()> {
        let path = path.as_ref();
        encoding.check_path(path)?;
        let (width, height) = (self.width() as u32, self.height() as u32);
        match encoding {
            Encoding::Pfm => save_pfm(path, &self.to_image()),
            Encoding::Kitti => {
                let values = self.encode(path, encoding, KITTI_SCALE, u16::MAX)?;
                save_gray16(path, width, height, values)
            }
            Encoding::Middlebury { scale } => {
                let values = self.encode(path, encoding, f32::from(scale), u8::MAX.into())?;
                let pixels = values.into_iter().map(|v| v as u8).collect();
                // The buffer has one byte for each pixel of the map.
                let image = GrayImage::from_raw(width, height, pixels).expect("a value for every pixel");
                save_image(path, &DynamicImage::ImageLuma8(image))
            }
            Encoding::Raw16 => {
                let values = self.values().iter().map(|&v| v.cast_unsigned()).collect();
                save_gray16(path, width, height, values)
            }
        }
    }

    /// The disparities in pixels as an image, NaN where invalid.
    pub fn to_image(&self) -> FloatImage {
        let (width, height) = (self.width() as u32, self.height() as u32);
        FloatImage::from_raw(width, height, self.to_f32()).expect("a value for every pixel")
    }

    /// Disparities times `scale`, rounded, invalid as 0. A valid disparity of zero becomes 1, the smallest
    /// value that is not "invalid", as KITTI's own tools do.
    fn encode(&self, path: &Path, encoding: Encoding, scale: f32, max: u16) -> Result<Vec<u16>> {
        self.iter()
            .map(|(x, y, disparity)| {
                let Some(disparity) = disparity else { return Ok(0) };
                let value = (disparity * scale).round();
                if disparity < 0.0 || value > f32::from(max) {
                    let limit = f32::from(max) / scale;
                    return Err(format_error(
                        path,
                        format!("encoding {encoding} holds disparities from 0 to {limit:.2}; pixel ({x}, {y}) has {disparity}; .pfm and raw16 hold any"),
                    ));
                }
                Ok((value as u16).max(1))
            })
            .collect()
    }
}

/// Reads disparities in pixels, NaN where there is none.
///
/// # Errors
/// [`Error::File`] and [`Error::Format`] as for images; [`Encoding::Raw16`] is refused, since such a file does
/// not say what its units are: see [`load_raw16`].
pub fn load_disparity(path: &Path, encoding: Encoding) -> Result<FloatImage> {
    let decode = |scale: f32, bits: u32| -> Result<FloatImage> {
        let refused =
            |got: &str| format_error(path, format!("encoding {encoding} needs {bits}-bit grey pixels, got {got}"));
        let (width, height, values): (_, _, Vec<f32>) = match (gray::decode(path)?, bits) {
            (DynamicImage::ImageLuma8(i), 8) => (i.width(), i.height(), i.iter().map(|&v| f32::from(v)).collect()),
            (DynamicImage::ImageLuma16(i), 16) => (i.width(), i.height(), i.iter().map(|&v| f32::from(v)).collect()),
            (other, _) => return Err(refused(&format!("{:?}", other.color()))),
        };
        let pixels = values.into_iter().map(|v| if v == 0.0 { f32::NAN } else { v / scale }).collect();
        Ok(FloatImage::from_raw(width, height, pixels).expect("a value for every pixel"))
    };
    match encoding {
        Encoding::Pfm => load_pfm(path),
        Encoding::Kitti => decode(KITTI_SCALE, 16),
        Encoding::Middlebury { scale } => decode(scale.into(), 8),
        Encoding::Raw16 => Err(format_error(path, "a raw16 file does not say its units")),
    }
}

/// Reads a map of 16-bit two's complement values in the given units.
///
/// # Errors
/// [`Error::File`] and [`Error::Format`] as for images; also when it is not 16-bit grey.
pub fn load_raw16(path: &Path, scale: i16, invalid: i16) -> Result<DisparityMap> {
    match gray::decode(path)? {
        DynamicImage::ImageLuma16(image) => {
            let (width, height) = (image.width() as usize, image.height() as usize);
            let values = image.into_raw().into_iter().map(u16::cast_signed).collect();
            DisparityMap::from_values(values, width, height, scale, invalid)
        }
        other => Err(format_error(path, format!("raw16 needs 16-bit grey pixels, got {:?}", other.color()))),
    }
}

fn save_gray16(path: &Path, width: u32, height: u32, values: Vec<u16>) -> Result<()> {
    let image: ImageBuffer<Luma<u16>, _> =
        ImageBuffer::from_raw(width, height, values).expect("a value for every pixel");
    save_image(path, &DynamicImage::ImageLuma16(image))
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> DisparityMap {
        DisparityMap::from_values(vec![0, 8, -16, 1000, 2047, 16], 3, 2, 16, -16).unwrap()
    }

    #[test]
    fn every_encoding_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let expected = [1.0 / 256.0, 0.5, f32::NAN, 62.5, 2047.0 / 16.0, 1.0];
        for name in ["a.png", "a.tif"] {
            let path = dir.path().join(name);
            map().save(&path).unwrap();
            let read = load_disparity(&path, Encoding::Kitti).unwrap();
            assert!(read.iter().zip(expected).all(|(a, b)| *a == b || a.is_nan() && b.is_nan()), "{read:?}");
            map().save_as(&path, Encoding::Raw16).unwrap();
            assert_eq!(load_raw16(&path, 16, -16).unwrap(), map());
            map().save_as(&path, Encoding::Middlebury { scale: 1 }).unwrap();
            let read = load_disparity(&path, Encoding::Middlebury { scale: 1 }).unwrap();
            assert_eq!((read.get_pixel(0, 1).0[0], read.get_pixel(2, 1).0[0]), (63.0, 1.0));
            assert!(read.get_pixel(2, 0).0[0].is_nan());
        }
        let path = dir.path().join("a.pfm");
        map().save(&path).unwrap();
        let read = load_pfm(&path).unwrap();
        assert!(read.iter().zip(map().to_f32()).all(|(a, b)| *a == b || a.is_nan() && b.is_nan()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file stays");
    }

    #[test]
    fn what_an_encoding_cannot_hold_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        let text = map().save_as(&path, Encoding::Middlebury { scale: 4 }).unwrap_err().to_string();
        assert!(text.contains("0 to 63.75; pixel (1, 1) has 127.9375"), "{text}");
        let negative = DisparityMap::from_values(vec![-8], 1, 1, 16, -32).unwrap();
        let text = negative.save(&path).unwrap_err().to_string();
        assert!(text.contains("kitti") && text.contains("has -0.5"), "{text}");
        assert!(!path.exists());
        assert!(map().save("a.jpg").unwrap_err().to_string().contains(".jpg"));
        assert!(map().save("a").unwrap_err().to_string().contains("output = a "));
        assert!(map().save_as("a.pfm", Encoding::Kitti).unwrap_err().to_string().contains(".png"));
        assert!(map().save_as("a.png", Encoding::Pfm).unwrap_err().to_string().contains(".pfm"));
        map().save_as(&path, Encoding::Middlebury { scale: 1 }).unwrap();
        assert!(load_raw16(&path, 16, 0).unwrap_err().to_string().contains("16-bit"));
        assert!(load_disparity(&path, Encoding::Kitti).unwrap_err().to_string().contains("L8"));
    }

    #[test]
    fn names_of_encodings() {
        for encoding in [Encoding::Pfm, Encoding::Kitti, Encoding::Raw16, Encoding::Middlebury { scale: 4 }] {
            assert_eq!(encoding.to_string().parse::<Encoding>().unwrap(), encoding);
        }
        for text in ["", "jpg", "middlebury", "middlebury=0", "middlebury=256", "middlebury=-1"] {
            assert!(text.parse::<Encoding>().unwrap_err().to_string().contains("middlebury=SCALE"));
        }
    }
}
