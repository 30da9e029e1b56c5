//! Scores against ground truth, as the data folder's README defines them.

use image::GrayImage;
use stereo_host::DisparityMap;

/// A scene of the data folder.
pub struct Scene {
    /// The folder's name.
    pub name: &'static str,
    /// The search range D.
    pub disparities: u32,
    /// Ground-truth value per pixel of disparity.
    pub scale: f64,
    /// The files of the left and the right ground truth.
    pub truth: [&'static str; 2],
}

/// The eight scenes.
pub const SCENES: [Scene; 8] = [
    scene_2003("Teddy"),
    scene_2003("Cones"),
    scene_2005("Art"),
    scene_2005("Books"),
    scene_2005("Dolls"),
    scene_2005("Moebius"),
    scene_2005("Laundry"),
    scene_2005("Reindeer"),
];

const fn scene_2003(name: &'static str) -> Scene {
    Scene { name, disparities: 60, scale: 4.0, truth: ["disp2.png", "disp6.png"] }
}

const fn scene_2005(name: &'static str) -> Scene {
    Scene { name, disparities: 80, scale: 3.0, truth: ["disp1.png", "disp5.png"] }
}

/// The share of non-occluded pixels, 0 to 1, with no estimate or one off by more than `threshold` pixels.
pub fn dense_bad(map: &DisparityMap, left: &GrayImage, right: &GrayImage, scale: f64, threshold: f64) -> f64 {
    let known = |truth: &GrayImage, x: u32, y: u32| match truth.get_pixel(x, y).0[0] {
        0 => None,
        value => Some(f64::from(value) / scale),
    };
    let (mut total, mut bad) = (0u32, 0u32);
    for (x, y, estimate) in map.iter() {
        let (x, y) = (x as u32, y as u32);
        let Some(d) = known(left, x, y) else { continue };
        let Some(column) = x.checked_sub(d.round() as u32) else { continue };
        if known(right, column, y).is_none_or(|other| (d - other).abs() > 1.0) {
            continue;
        }
        total += 1;
        bad += u32::from(estimate.is_none_or(|estimate| (f64::from(estimate) - d).abs() > threshold));
    }
    f64::from(bad) / f64::from(total)
}
