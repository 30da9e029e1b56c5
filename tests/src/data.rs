//! The shared stereo pairs: found beside the workspace, or the test says that it was skipped.

use std::path::PathBuf;

/// The folder of the stereo pairs, `None` (and a line on stderr) where it is not there.
pub fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data"));
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: the stereo pairs are not at {}", folder.display());
    None
}

/// A scene's colour pair as grey images, by sgm.md, section 0.
///
/// # Panics
/// When the scene's files are missing or unreadable.
pub fn gray_pair(scene: &str) -> (image::GrayImage, image::GrayImage) {
    let folder = folder().expect("the caller has found the folder").join("middlebury").join(scene);
    let two_views = folder.join("im2.png").is_file();
    let names = if two_views { ["im2.png", "im6.png"] } else { ["view1.png", "view5.png"] };
    let [left, right] = names.map(|name| gray(&image::open(folder.join(name)).expect("a readable picture").to_rgb8()));
    (left, right)
}

fn gray(colour: &image::RgbImage) -> image::GrayImage {
    image::GrayImage::from_fn(colour.width(), colour.height(), |x, y| {
        let [r, g, b] = colour.get_pixel(x, y).0.map(u32::from);
        image::Luma([((19595 * r + 38470 * g + 7471 * b + 32768) >> 16) as u8])
    })
}
