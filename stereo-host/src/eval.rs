//! Scores of disparity maps against ground truth, and the Middlebury scenes that they are taken on.
//!
//! A left pixel counts as non-occluded when the ground truth of both views is known there and agrees within a
//! pixel. Over these pixels: **dense bad-T** is the share with no estimate or one that is off by more than
//! `T`; **given bad-T** the same among the pixels that have an estimate; **density** the share that has one.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::{
    DisparityMap, Error, Result,
    io::{Encoding, FloatImage, load_disparity, load_gray},
    scene::Scene,
};

/// The thresholds `T` of bad-T in pixels.
pub const THRESHOLDS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// The two views' disparities agree within this many pixels where a pixel is not occluded.
const OCCLUSION_LIMIT: f32 = 1.0;

/// Less than half of the finest step that ground truth has here (KITTI's 1/256 pixel): differences of exactly
/// one pixel, which thirds cannot hold exactly, count as agreement.
const ROUNDING: f32 = 1.0 / 1024.0;

/// How good a map is. Shares are 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Score {
    /// Dense bad-T for each of [`THRESHOLDS`].
    #[serde(serialize_with = "by_threshold")]
    pub dense_bad: [f64; THRESHOLDS.len()],
    /// Given bad-T for each of [`THRESHOLDS`]; 0 where nothing is given.
    #[serde(serialize_with = "by_threshold")]
    pub given_bad: [f64; THRESHOLDS.len()],
    /// The share of non-occluded pixels that have an estimate.
    pub density: f64,
    /// The mean of `|d - truth|` in pixels among those.
    pub average_error: f64,
}

impl Score {
    /// The mean of per-scene scores, each scene with the same weight; `None` for no scene.
    pub fn mean(scores: &[Self]) -> Option<Self> {
        let count = scores.len() as f64;
        let mean = |of: &dyn Fn(&Self) -> f64| scores.iter().map(of).sum::<f64>() / count;
        (!scores.is_empty()).then(|| Self {
            dense_bad: std::array::from_fn(|t| mean(&|s| s.dense_bad[t])),
            given_bad: std::array::from_fn(|t| mean(&|s| s.given_bad[t])),
            density: mean(&|s| s.density),
            average_error: mean(&|s| s.average_error),
        })
    }
}

/// As a map from the threshold to its share.
fn by_threshold<S: Serializer>(shares: &[f64; THRESHOLDS.len()], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(THRESHOLDS.iter().map(f64::to_string).zip(shares))
}

/// Scores a map of the left view against the ground truth of both views.
///
/// # Errors
/// [`Error::Mismatch`] when the sizes differ, [`Error::Image`] when no pixel is non-occluded.
pub fn score(map: &DisparityMap, truth_left: &FloatImage, truth_right: &FloatImage) -> Result<Score> {
    let size = |w: usize, h: usize| format!("{w}x{h}");
    let expected = size(map.width(), map.height());
    for (what, truth) in [("left ground truth's size", truth_left), ("right ground truth's size", truth_right)] {
        let got = size(truth.width() as usize, truth.height() as usize);
        if got != expected {
            return Err(Error::Mismatch { what, got, expected: format!("the map's {expected}") });
        }
    }
    let (mut counted, mut given, mut error_sum) = (0u64, 0u64, 0.0);
    let mut bad = [0u64; THRESHOLDS.len()];
    for (((_, _, estimate), truth), visible) in
        map.iter().zip(truth_left.iter()).zip(non_occluded(truth_left, truth_right))
    {
        if !visible {
            continue;
        }
        counted += 1;
        if let Some(estimate) = estimate {
            given += 1;
            let error = (f64::from(estimate) - f64::from(*truth)).abs();
            error_sum += error;
            for (bad, limit) in bad.iter_mut().zip(THRESHOLDS) {
                *bad += u64::from(error > limit);
            }
        }
    }
    if counted == 0 {
        return Err(Error::Image {
            what: "non-occluded pixels of the ground truth",
            value: "0".to_owned(),
            limit: "a score needs at least 1".to_owned(),
        });
    }
    let missing = counted - given;
    let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
    Ok(Score {
        dense_bad: bad.map(|bad| share(bad + missing, counted)),
        given_bad: bad.map(|bad| share(bad, given)),
        density: share(given, counted),
        average_error: if given == 0 { 0.0 } else { error_sum / given as f64 },
    })
}

/// For every left pixel, row-major: whether both views' ground truth is known there and agrees,
/// `|d_left(x) - d_right(x - round(d_left(x)))| <= 1`.
pub fn non_occluded(truth_left: &FloatImage, truth_right: &FloatImage) -> Vec<bool> {
    truth_left
        .enumerate_pixels()
        .map(|(x, y, left)| {
            let left = left.0[0];
            if !left.is_finite() {
                return false;
            }
            let column = i64::from(x) - left.round() as i64;
            let right = u32::try_from(column).ok().and_then(|c| truth_right.get_pixel_checked(c, y));
            // A comparison with NaN, an unknown right disparity, is false.
            right.is_some_and(|right| (left - right.0[0]).abs() <= OCCLUSION_LIMIT + ROUNDING)
        })
        .collect()
}

/// Where a scene's four files are and how to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneFiles {
    /// The scene's name: its folder's.
    pub name: String,
    /// The left image.
    pub left: PathBuf,
    /// The right image.
    pub right: PathBuf,
    /// The left view's ground truth.
    pub truth_left: PathBuf,
    /// The right view's ground truth.
    pub truth_right: PathBuf,
    /// How the ground truth is stored.
    pub encoding: Encoding,
    /// The number of disparities to search, from 0.
    pub disparities: u32,
}

/// The names that one Middlebury set gives a scene's files, without the extension.
struct Naming {
    left: &'static str,
    right: &'static str,
    truth_left: &'static str,
    truth_right: &'static str,
    scale: u8,
    disparities: u32,
}

/// The 2003 set (Teddy, Cones; quarter size) and the 2005 set (third size).
const NAMINGS: [Naming; 2] = [
    Naming { left: "im2", right: "im6", truth_left: "disp2", truth_right: "disp6", scale: 4, disparities: 60 },
    Naming { left: "view1", right: "view5", truth_left: "disp1", truth_right: "disp5", scale: 3, disparities: 80 },
];

/// The extensions that the sets were published with.
const EXTENSIONS: [&str; 3] = ["png", "ppm", "pgm"];

impl SceneFiles {
    /// The scene in `folder`: `im2`, `im6`, `disp2` and `disp6` (ground truth times 4, 60 disparities), or
    /// `view1`, `view5`, `disp1` and `disp5` (times 3, 80 disparities). `None` when neither set is complete.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let file = |stem: &str| {
            EXTENSIONS.iter().map(|extension| folder.join(stem).with_extension(extension)).find(|path| path.is_file())
        };
        NAMINGS.iter().find_map(|naming| {
            Some(Self {
                name: name_of(folder),
                left: file(naming.left)?,
                right: file(naming.right)?,
                truth_left: file(naming.truth_left)?,
                truth_right: file(naming.truth_right)?,
                encoding: Encoding::Middlebury { scale: naming.scale },
                disparities: naming.disparities,
            })
        })
    }

    /// The scene in `data`, or else all scenes in the folders right below it, by name.
    ///
    /// # Errors
    /// [`Error::File`] when `data` cannot be read, [`Error::Format`] when there is no scene.
    pub fn find(data: &Path) -> Result<Vec<Self>> {
        if let Some(scene) = Self::in_folder(data) {
            return Ok(vec![scene]);
        }
        let unreadable = |source| Error::File { path: data.to_owned(), action: "cannot read", source };
        let mut scenes = Vec::new();
        for entry in std::fs::read_dir(data).map_err(unreadable)? {
            scenes.extend(Self::in_folder(&entry.map_err(unreadable)?.path()));
        }
        if scenes.is_empty() {
            let reason = "no scene here: a scene is a folder with im2, im6, disp2 and disp6, or view1, view5, disp1 \
                          and disp5, as .png, .ppm or .pgm";
            return Err(Error::Format { path: data.to_owned(), reason: reason.to_owned() });
        }
        scenes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(scenes)
    }

    /// Reads the four files.
    ///
    /// # Errors
    /// The first file that cannot be read; [`Error::Mismatch`] when the images' sizes differ.
    pub fn load(&self) -> Result<Scene> {
        Ok(Scene {
            name: self.name.clone(),
            left: load_gray(&self.left)?,
            right: load_gray(&self.right)?,
            truth_left: load_disparity(&self.truth_left, self.encoding)?,
            truth_right: load_disparity(&self.truth_right, self.encoding)?,
            min_disparity: 0,
            disparities: self.disparities,
        })
    }
}

fn name_of(folder: &Path) -> String {
    let named = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    named.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    fn image(values: &[f32]) -> FloatImage {
        FloatImage::from_raw(values.len() as u32, 1, values.to_vec()).unwrap()
    }

    #[test]
    fn a_score_by_hand() {
        let n = f32::NAN;
        // Column:              0    1    2    3    4    5    6    7
        let left = image(&[0.0, 1.0, 1.0, 1.0, 4.0, 1.0, n, 3.0]);
        let right = image(&[0.0, 1.0, 1.0, n, 2.0, 3.0, 9.0, 9.0]);
        // 0: column 0, 0; 1: column 0, differs by exactly 1; 2 and 3: agree; 4: column 0, differs by 4;
        // 5: column 4, differs by exactly 1; 6: unknown; 7: column 4, differs by exactly 1.
        let visible = non_occluded(&left, &right);
        assert_eq!(visible, [true, true, true, true, false, true, false, true]);
        let values = [0, 16 + 8, 16 + 9, 16 + 33, 0, -16, 0, 48 + 80];
        let map = DisparityMap::from_values(values.to_vec(), 8, 1, 16, -16).unwrap();
        // Errors of the six: 0, 0.5, 0.5625, 2.0625, none, 5.
        let score = score(&map, &left, &right).unwrap();
        assert_relative_eq!(score.density, 5.0 / 6.0);
        assert_eq!(score.dense_bad.map(|b| (b * 6.0).round()), [4.0, 3.0, 3.0, 2.0]);
        assert_eq!(score.given_bad.map(|b| (b * 5.0).round()), [3.0, 2.0, 2.0, 1.0]);
        assert_relative_eq!(score.average_error, (0.5 + 0.5625 + 2.0625 + 5.0) / 5.0);
        let mean = Score::mean(&[score, Score::default()]).unwrap();
        assert_relative_eq!(mean.density, score.density / 2.0);
        assert!(Score::mean(&[]).is_none());
    }

    #[test]
    fn thirds_that_differ_by_one_pixel_agree() {
        for k in 3..240u8 {
            let (a, b) = (f32::from(k) / 3.0, f32::from(k - 3) / 3.0);
            let mut right = vec![f32::NAN; 100];
            right[99 - a.round() as usize] = b;
            let mut left = vec![f32::NAN; 100];
            left[99] = a;
            assert!(non_occluded(&image(&left), &image(&right))[99], "{k}");
            right[99 - a.round() as usize] = f32::from(k - 3) / 3.0 - 1.0 / 256.0;
            assert!(!non_occluded(&image(&left), &image(&right))[99], "{k}");
        }
    }

    #[test]
    fn sizes_must_agree_and_something_must_count() {
        let map = DisparityMap::from_values(vec![0; 2], 2, 1, 16, -16).unwrap();
        let text = score(&map, &image(&[0.0]), &image(&[0.0, 0.0])).unwrap_err().to_string();
        assert!(text.contains("left ground truth") && text.contains("1x1") && text.contains("2x1"), "{text}");
        assert!(score(&map, &image(&[f32::NAN; 2]), &image(&[0.0; 2])).is_err());
    }

    #[test]
    fn scenes_are_found_by_either_naming() {
        let dir = tempfile::tempdir().unwrap();
        assert!(SceneFiles::find(dir.path()).unwrap_err().to_string().contains("no scene"));
        assert!(SceneFiles::find(&dir.path().join("none")).unwrap_err().to_string().contains("cannot read"));
        for (scene, stems, extension) in
            [("B", ["im2", "im6", "disp2", "disp6"], "ppm"), ("A", ["view1", "view5", "disp1", "disp5"], "png")]
        {
            std::fs::create_dir(dir.path().join(scene)).unwrap();
            for stem in stems {
                let pixels = image::GrayImage::from_pixel(4, 3, image::Luma([12]));
                pixels.save(dir.path().join(scene).join(stem).with_extension(extension)).unwrap();
            }
        }
        let found = SceneFiles::find(dir.path()).unwrap();
        let seen: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.disparities)).collect();
        assert_eq!(seen, [("A", 80), ("B", 60)]);
        let a = found[0].load().unwrap();
        assert_eq!((a.truth_left.get_pixel(0, 0).0[0], a.left.size()), (4.0, (4, 3)));
        assert_eq!(SceneFiles::find(&dir.path().join("B")).unwrap()[0].name, "B");
    }
}
