//! The frames of `stereo stream`: image sequences and raw frames on standard input.

use std::{
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use image::{GrayImage, ImageBuffer};
use stereo_host::{
    Error, MAX_SIDE, Result,
    io::{Gray, load_gray},
};

use crate::{
    args::{Size, StreamCommand},
    stream::Pair,
};

/// The name that stands for standard input.
const STDIN: &str = "-";

/// Names that data sets give the folders of the left and the right view.
const FOLDERS: [(&str, &str); 4] =
    [("left", "right"), ("image_0", "image_1"), ("image_2", "image_3"), ("cam0", "cam1")];

/// Extensions of the image files that a folder is searched for.
const EXTENSIONS: [&str; 9] = ["png", "pgm", "ppm", "pnm", "jpg", "jpeg", "tif", "tiff", "bmp"];

/// How raw frames store a pixel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PixelFormat {
    /// 8 bits
    #[default]
    Gray,
    /// 16 bits, the low byte first
    Gray16le,
}

/// How a raw frame holds its two views.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FrameLayout {
    /// The left view in the left half, as ffmpeg's hstack makes it
    #[default]
    SideBySide,
    /// The left view in the upper half, as ffmpeg's vstack makes it
    TopBottom,
}

/// A source of pairs, and how many it has where that is known.
pub struct Frames {
    pub pairs: Box<dyn Iterator<Item = Result<Pair>> + Send>,
    pub count: Option<u64>,
}

/// Refuses what says nothing about the source that is named.
fn check_flags(args: &StreamCommand) -> Result<()> {
    let raw = args.source == STDIN;
    let given = [
        ("size", args.size.is_some(), true),
        ("pixel-format", args.pixel_format.is_some(), true),
        ("layout", args.layout.is_some(), true),
        ("right", args.right.is_some(), false),
        ("repeat", args.repeat != 1, false),
    ];
    match given.iter().find(|(_, given, of_raw)| *given && *of_raw != raw) {
        Some((name, _, true)) => Err(parameter(name, "given", "for raw frames only, which come from -")),
        Some((name, _, _)) => Err(parameter(name, "given", "for image files only, - is raw frames")),
        None => Ok(()),
    }
}

/// Opens what the command line names.
pub fn open(args: &StreamCommand) -> Result<Frames> {
    check_flags(args)?;
    if args.source == STDIN {
        let size = args.size.ok_or_else(|| {
            parameter("size", "nothing", "WxH of one view is needed for raw frames on standard input")
        })?;
        check_size(size.width, size.height)?;
        let raw = Raw { size, format: args.pixel_format.unwrap_or_default(), layout: args.layout.unwrap_or_default() };
        return Ok(Frames { pairs: Box::new(raw.pairs(std::io::stdin())), count: None });
    }
    let files = match &args.right {
        Some(right) => numbered(&args.source, right, args.start)?,
        None => in_folder(Path::new(&args.source))?,
    };
    let count = files.len() as u64 * u64::from(args.repeat);
    let mut first = None;
    let load = move |(left, right): (PathBuf, PathBuf)| {
        let pair = (load_gray(&left)?, load_gray(&right)?);
        for (path, image) in [(left, &pair.0), (right, &pair.1)] {
            let (width, height) = image.size();
            let first = *first.get_or_insert(Size { width, height });
            if (first.width, first.height) != (width, height) {
                let reason = format!("{width}x{height} pixels, but the sequence began with {first}");
                return Err(Error::Format { path, reason });
            }
        }
        Ok(pair)
    };
    let pairs = (0..args.repeat).flat_map(move |_| files.clone()).map(load);
    Ok(Frames { pairs: Box::new(pairs), count: Some(count) })
}

/// The pairs of two subfolders, by name.
fn in_folder(folder: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let refused = |reason: String| Error::Format { path: folder.to_owned(), reason };
    let known = FOLDERS.map(|(left, right)| format!("{left} and {right}")).join(", or ");
    let (left, right) = FOLDERS
        .iter()
        .map(|(left, right)| (folder.join(left), folder.join(right)))
        .find(|(left, right)| left.is_dir() && right.is_dir())
        .ok_or_else(|| refused(format!("needs two folders of images, {known}; or give a pattern and --right")))?;
    let (left, right) = (images(&left)?, images(&right)?);
    if left.len() != right.len() {
        return Err(refused(format!("{} left images, but {} right ones", left.len(), right.len())));
    }
    if let Some((left, right)) = left.iter().zip(&right).find(|(left, right)| !belong_together(left, right)) {
        let reason = format!("{} has no partner, its place has {}", left.display(), right.display());
        return Err(refused(reason));
    }
    Ok(left.into_iter().zip(right).collect())
}

/// Whether two files are one pair's: the same name, or the same digits in names that tell the views apart. A missing
/// file on either side would otherwise pair every later frame with a wrong one.
fn belong_together(left: &Path, right: &Path) -> bool {
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (left, right) = (name(left), name(right));
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    left == right || !digits(&left).is_empty() && digits(&left) == digits(&right)
}

/// The image files of a folder, by name.
fn images(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |source| Error::File { path: folder.to_owned(), action: "cannot read", source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if EXTENSIONS.contains(&extension.as_str()) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The pairs of two patterns from number `start` on, until one of the files is missing.
fn numbered(left: &str, right: &str, start: u64) -> Result<Vec<(PathBuf, PathBuf)>> {
    let (left, right) = (Pattern::new(left)?, Pattern::new(right)?);
    let files: Vec<_> = (start..)
        .map(|number| (left.path(number), right.path(number)))
        .take_while(|(left, right)| left.is_file() && right.is_file())
        .collect();
    if files.is_empty() {
        let reason = format!("not there, or {} is not", right.path(start).display());
        return Err(Error::Format { path: left.path(start), reason });
    }
    Ok(files)
}

/// The most digits of a number in a pattern: no file system takes a longer name.
const MAX_DIGITS: usize = 255;

/// A file name with one number in it, `%d` or `%04d`.
#[derive(Debug)]
struct Pattern<'a> {
    before: &'a str,
    digits: usize,
    after: &'a str,
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let parts = text.split_once('%').and_then(|(before, rest)| {
            let (digits, after) = rest.split_once('d')?;
            let digits = if digits.is_empty() {
                0
            } else {
                digits.strip_prefix('0')?.parse().ok().filter(|&n| n <= MAX_DIGITS)?
            };
            (!after.contains('%')).then_some(Self { before, digits, after })
        });
        parts.ok_or_else(|| parameter("pattern", text, "a file name with one number in it, like left_%04d.png"))
    }

    fn path(&self, number: u64) -> PathBuf {
        format!("{}{number:0width$}{}", self.before, self.after, width = self.digits).into()
    }
}

/// Refuses a size before the memory of a frame is taken.
fn check_size(width: usize, height: usize) -> Result<()> {
    if (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height) {
        return Ok(());
    }
    Err(parameter("size", &Size { width, height }.to_string(), &format!("each side must be 1 to {MAX_SIDE} pixels")))
}

fn parameter(name: &'static str, value: &str, limit: &str) -> Error {
    Error::Parameter { name, value: value.to_owned(), limit: limit.to_owned() }
}

/// What raw frames look like.
struct Raw {
    /// One view's.
    size: Size,
    format: PixelFormat,
    layout: FrameLayout,
}

impl Raw {
    /// The pairs of a stream of frames, which must end between two of them.
    fn pairs(self, mut stream: impl Read) -> impl Iterator<Item = Result<Pair>> {
        let bytes_per_pixel = match self.format {
            PixelFormat::Gray => 1,
            PixelFormat::Gray16le => 2,
        };
        let mut frame = vec![0; 2 * self.size.width * self.size.height * bytes_per_pixel];
        let mut number = 0u64;
        std::iter::from_fn(move || {
            let failed = |reason: String| Error::Format { path: "standard input".into(), reason };
            match read_frame(&mut stream, &mut frame) {
                Ok(0) => return None,
                Ok(got) if got < frame.len() => {
                    let reason = format!("frame {number} ends after {got} of {} bytes", frame.len());
                    return Some(Err(failed(reason)));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(failed(format!("cannot read frame {number}: {error}")))),
            }
            number += 1;
            Some(self.split(&frame))
        })
    }

    fn split(&self, frame: &[u8]) -> Result<Pair> {
        let (left, right): (Vec<u8>, Vec<u8>) = match self.layout {
            FrameLayout::TopBottom => {
                let (left, right) = frame.split_at(frame.len() / 2);
                (left.to_vec(), right.to_vec())
            }
            FrameLayout::SideBySide => {
                let view = frame.len() / 2 / self.size.height;
                let (mut left, mut right) = (Vec::new(), Vec::new());
                for row in frame.chunks_exact(2 * view) {
                    left.extend_from_slice(&row[..view]);
                    right.extend_from_slice(&row[view..]);
                }
                (left, right)
            }
        };
        Ok((self.image(left)?, self.image(right)?))
    }

    fn image(&self, bytes: Vec<u8>) -> Result<Gray> {
        let (width, height) = (self.size.width as u32, self.size.height as u32);
        let image = match self.format {
            PixelFormat::Gray => GrayImage::from_raw(width, height, bytes).map(Gray::U8),
            PixelFormat::Gray16le => {
                let pixels = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
                ImageBuffer::from_raw(width, height, pixels).map(Gray::U16)
            }
        };
        image.ok_or_else(|| parameter("size", &self.size.to_string(), "as large as the frame's halves"))
    }
}

/// Reads until `frame` is full or the stream ends; how many bytes it got.
fn read_frame(stream: &mut impl Read, frame: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < frame.len() {
        match stream.read(&mut frame[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (text, expected) in [("a_%04d.png", "a_0007.png"), ("%d/b.pgm", "7/b.pgm"), ("x%012d", "x000000000007")] {
            assert_eq!(Pattern::new(text).unwrap().path(7), PathBuf::from(expected));
        }
        for text in ["left.png", "%4d.png", "%s.png", "%d_%d.png", "%", "%0256d.png", "%070000d.png"] {
            assert!(Pattern::new(text).unwrap_err().to_string().contains("left_%04d.png"), "{text}");
        }
    }

    #[test]
    fn raw_frames_are_split() {
        let size = Size { width: 2, height: 2 };
        let raw = |format, layout| Raw { size, format, layout };
        let bytes: Vec<u8> = (0..16).collect();
        let values = |pair: Pair| {
            [pair.0, pair.1].map(|view| match view {
                Gray::U8(image) => image.into_raw().into_iter().map(u16::from).collect(),
                Gray::U16(image) => image.into_raw(),
            })
        };
        let pairs: Vec<_> =
            raw(PixelFormat::Gray, FrameLayout::SideBySide).pairs(&bytes[..]).map(|p| values(p.unwrap())).collect();
        assert_eq!(pairs, [[vec![0, 1, 4, 5], vec![2, 3, 6, 7]], [vec![8, 9, 12, 13], vec![10, 11, 14, 15]]]);
        let pairs: Vec<_> =
            raw(PixelFormat::Gray16le, FrameLayout::TopBottom).pairs(&bytes[..]).map(|p| values(p.unwrap())).collect();
        assert_eq!(pairs, [[vec![0x100, 0x302, 0x504, 0x706], vec![0x908, 0xb0a, 0xd0c, 0xf0e]]]);
        let mut cut = raw(PixelFormat::Gray, FrameLayout::SideBySide).pairs(&bytes[..11]);
        assert!(cut.next().unwrap().is_ok());
        let error = cut.next().unwrap().unwrap_err().to_string();
        assert_eq!(error, "standard input: frame 1 ends after 3 of 8 bytes");
    }
}
