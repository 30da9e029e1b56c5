//! Reading images and writing maps.
//!
//! Reading: PNG, PGM/PPM, JPEG, TIFF and BMP, 8 or 16 bits, grey or colour ([`load_gray`]); ground truth
//! and disparity maps in the encodings of [`Encoding`] ([`load_disparity`], [`load_raw16`]).
//!
//! Writing: every file is written to a temporary name in its own folder and renamed when it is complete,
//! so an interrupted or failed run leaves the old file or none, never half of one.

mod atomic;
mod gray;
mod map;
mod pfm;

use std::{io::Write, path::Path};

use image::{
    ColorType,
    codecs::pnm::{PnmEncoder, PnmSubtype, SampleEncoding},
};

pub use gray::{Gray, load_gray};
pub use map::{Encoding, load_disparity, load_raw16};
pub use pfm::{load_pfm, save_pfm};

use crate::{Error, Result};

/// Disparities in pixels, NaN where there is none.
pub type FloatImage = image::ImageBuffer<image::Luma<f32>, Vec<f32>>;

/// Writes a picture in the format of the file's extension: PNG, PGM/PPM, JPEG, TIFF or BMP.
///
/// # Errors
/// [`Error::Parameter`] for an extension that names no known format, [`Error::File`] when writing fails.
pub fn save_image(path: &Path, image: &image::DynamicImage) -> Result<()> {
    let format = picture_format(path)?;
    atomic::write(path, |file| {
        let written = match format {
            // The encoder's own choice is PAM, which most readers of .ppm and .pgm do not know.
            image::ImageFormat::Pnm => image.write_with_encoder(netpbm(PnmEncoder::new(file), image.color())),
            _ => image.write_to(file, format),
        };
        written.map_err(|e| image_error(path, e))
    })
}

/// The classic binary format, P5 or P6, where there is one for the pixels.
fn netpbm<W: Write>(encoder: PnmEncoder<W>, color: ColorType) -> PnmEncoder<W> {
    match color {
        ColorType::L8 => encoder.with_subtype(PnmSubtype::Graymap(SampleEncoding::Binary)),
        ColorType::Rgb8 => encoder.with_subtype(PnmSubtype::Pixmap(SampleEncoding::Binary)),
        _ => encoder,
    }
}

/// Writes a text file.
///
/// # Errors
/// [`Error::File`] or [`Error::Format`] when that is not possible there.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    atomic::write(path, |file| file.write_all(text.as_bytes()).map_err(|e| write_error(path, e)))
}

/// Refuses a picture's name whose extension names no format that [`save_image`] writes.
///
/// # Errors
/// [`Error::Parameter`] names the known ones.
pub fn check_picture(path: &Path) -> Result<()> {
    picture_format(path).map(|_| ())
}

fn picture_format(path: &Path) -> Result<image::ImageFormat> {
    let known = "a picture's name ends in .png, .ppm, .jpg, .tif or .bmp";
    image::ImageFormat::from_path(path)
        .ok()
        .filter(image::ImageFormat::writing_enabled)
        .ok_or_else(|| Error::parameter("output", path.display(), known))
}

/// Whether a file of this name could be written, as far as that shows before the work is done: the folder
/// exists, and the name is free or a regular file's.
///
/// # Errors
/// [`Error::Format`] says what is in the way.
pub fn check_target(path: &Path) -> Result<()> {
    atomic::target(path).map(|_| ())
}

fn format_error(path: &Path, reason: impl Into<String>) -> Error {
    Error::Format { path: path.to_owned(), reason: reason.into() }
}

fn read_error(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.to_owned(), action: "cannot read", source }
}

fn write_error(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.to_owned(), action: "cannot write", source }
}

/// The image library's error while writing, as ours and on one line.
fn image_error(path: &Path, error: image::ImageError) -> Error {
    match error {
        image::ImageError::IoError(source) => write_error(path, source),
        other => format_error(path, one_line(&other)),
    }
}

fn one_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
