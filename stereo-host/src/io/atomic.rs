//! Files that appear complete or not at all.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{format_error, write_error};
use crate::Result;

/// Runs `fill` on a temporary file beside `path`, then renames it to `path`.
///
/// The temporary file is removed when anything fails. An existing file keeps its content until the rename;
/// a symbolic link is followed, so that the link stays a link.
pub(super) fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let (target, folder) = target(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".stereo-").suffix(".tmp");
    #[cfg(unix)]
    {
        // The usual mode of a new file, less the umask; a temporary file's own default is private.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let (file, name) = builder.tempfile_in(&folder).map_err(|e| write_error(path, plain(e)))?.into_parts();
    complete(path, file, fill)?;
    name.persist(&target).map_err(|e| write_error(path, e.error))
}

/// Fills `file` and makes sure that all of it reached the disk: a full disk may show only here.
fn complete(path: &Path, file: File, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let mut writer = BufWriter::new(file);
    let filled = fill(&mut writer);
    let flushed = filled.and_then(|()| {
        let flushed = writer.flush().and_then(|()| writer.get_ref().sync_all());
        flushed.map_err(|e| write_error(path, e))
    });
    // Bytes that could not be written are of no use: dropping the writer would try once more.
    drop(writer.into_parts());
    flushed
}

/// The file to replace, `path` or what it links to, and its folder.
pub(super) fn target(path: &Path) -> Result<(PathBuf, PathBuf)> {
    let target = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(format_error(path, "cannot write: it is a folder")),
        // Renaming over a device or a pipe would replace it.
        Ok(meta) if !meta.is_file() => return Err(format_error(path, "cannot write: it is not a regular file")),
        Ok(_) => fs::canonicalize(path).map_err(|e| write_error(path, e))?,
        Err(_) if fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink()) => {
            return Err(format_error(path, "cannot write: it is a link to a file that is not there"));
        }
        Err(_) if path.file_name().is_none() => return Err(format_error(path, "cannot write: it names no file")),
        Err(_) => path.to_owned(),
    };
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    if !folder.is_dir() {
        return Err(format_error(path, format!("cannot write: there is no folder {}", folder.display())));
    }
    Ok((target, folder))
}

/// The system's error without the temporary file's name, which says nothing to a user.
fn plain(error: std::io::Error) -> std::io::Error {
    let kind = error.kind();
    error
        .into_inner()
        .and_then(|inner| {
            inner.source().and_then(|s| s.downcast_ref::<std::io::Error>()).and_then(|e| e.raw_os_error())
        })
        .map_or_else(|| kind.into(), std::io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map.bin");
        write(&path, |w| w.write_all(b"old").map_err(|e| write_error(&path, e))).unwrap();
        let failed = write(&path, |w| {
            w.write_all(b"half").map_err(|e| write_error(&path, e))?;
            Err(format_error(&path, "stopped"))
        });
        assert_eq!(failed.unwrap_err().to_string(), format!("{}: stopped", path.display()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["map.bin"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_whatever_the_writer_says() {
        let path = Path::new("map.bin");
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let image = image::DynamicImage::new_luma16(400, 300);
        for format in [image::ImageFormat::Png, image::ImageFormat::Tiff, image::ImageFormat::Pnm] {
            // The encoder seeks and buffers in its own way; the system's words must come through.
            let error =
                complete(path, full(), |w| image.write_to(w, format).map_err(|e| crate::io::image_error(path, e)));
            let text = error.unwrap_err().to_string();
            assert!(text.starts_with("map.bin: cannot write: No space left"), "{format:?}: {text}");
        }
        for size in [1, 1 << 20] {
            let bytes = vec![0u8; size];
            let error = complete(path, full(), |w| w.write_all(&bytes).map_err(|e| write_error(path, e))).unwrap_err();
            assert!(error.to_string().starts_with("map.bin: cannot write: No space left"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, |w| w.write_all(b"new").map_err(|e| write_error(&link, e))).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        fs::remove_file(&file).unwrap();
        let text = write(&link, |_| Ok(())).unwrap_err().to_string();
        assert!(text.contains("link to a file that is not there"), "{text}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let text = write(Path::new("/dev/null"), |_| Ok(())).unwrap_err().to_string();
        assert!(text.contains("not a regular file"), "{text}");
    }
}
