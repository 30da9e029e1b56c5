//! Pictures for people: disparities and errors in colour, with a legend.

use std::ops::RangeInclusive;

use font8x8::UnicodeFonts;
use image::{Rgb, RgbImage};

use crate::{DisparityMap, eval::non_occluded, io::FloatImage};

/// Pixels without a disparity.
const INVALID: Rgb<u8> = Rgb([0, 0, 0]);

/// Pixels that an error picture does not judge: occluded or without ground truth.
const NOT_JUDGED: Rgb<u8> = Rgb([96, 96, 96]);

/// Errors from this many pixels on have the last colour.
const LARGEST_ERROR: f64 = 4.0;

/// The map in colour, small disparities blue, large ones red, invalid pixels black; on the right a legend
/// with the disparities in pixels. `range` is what the colours span, usually the range that was searched.
pub fn preview(map: &DisparityMap, range: RangeInclusive<f64>) -> RgbImage {
    with_legend(map, range.clone(), |_, disparity| disparity.map_or(INVALID, |d| color_of(f64::from(d), &range)))
}

/// The error of every non-occluded pixel in colour, from 0 (blue) to 4 pixels and more (red); missing
/// estimates are black, pixels that do not count are grey. The three images have one size.
///
/// # Panics
/// When the sizes differ.
pub fn errors(map: &DisparityMap, truth_left: &FloatImage, truth_right: &FloatImage) -> RgbImage {
    let judged = non_occluded(truth_left, truth_right);
    assert_eq!(judged.len(), map.values().len(), "ground truth and map differ in size");
    let truth = truth_left.as_raw();
    let range = 0.0..=LARGEST_ERROR;
    with_legend(map, range.clone(), |i, disparity| match disparity {
        _ if !judged[i] => NOT_JUDGED,
        Some(disparity) => color_of(f64::from((disparity - truth[i]).abs()), &range),
        None => INVALID,
    })
}

/// Sides of the legend in pixels: a bar of colours with a label at each end and between.
mod legend {
    pub(super) const GLYPH: u32 = 8;
    pub(super) const GAP: u32 = 6;
    pub(super) const BAR: u32 = 14;
    /// "-1024" is the longest label that the range of a map allows in practice.
    pub(super) const LABEL_CHARS: u32 = 5;
    pub(super) const WIDTH: u32 = GAP + BAR + GAP + LABEL_CHARS * GLYPH + GAP;
    /// Two labels and a space between them.
    pub(super) const MIN_HEIGHT: u32 = 2 * GAP + 4 * GLYPH;
    /// Rows from one label to the next, at least.
    pub(super) const LABEL_PITCH: u32 = 48;
}

fn with_legend(
    map: &DisparityMap,
    range: RangeInclusive<f64>,
    color: impl Fn(usize, Option<f32>) -> Rgb<u8>,
) -> RgbImage {
    let (width, height) = (map.width() as u32, map.height() as u32);
    let background = Rgb([255, 255, 255]);
    let mut picture = RgbImage::from_pixel(width + legend::WIDTH, height.max(legend::MIN_HEIGHT), background);
    for (i, (x, y, disparity)) in map.iter().enumerate() {
        picture.put_pixel(x as u32, y as u32, color(i, disparity));
    }
    draw_legend(&mut picture, width, &range);
    picture
}

fn draw_legend(picture: &mut RgbImage, left: u32, range: &RangeInclusive<f64>) {
    // The labels at both ends are centred on the bar's ends.
    let (top, bottom) = (legend::GAP + legend::GLYPH / 2, picture.height() - 1 - legend::GAP - legend::GLYPH / 2);
    let value = |share: f64| range.end() - share * (range.end() - range.start());
    let bar = left + legend::GAP;
    for y in top..=bottom {
        let color = color_of(value(f64::from(y - top) / f64::from(bottom - top)), range);
        (bar..bar + legend::BAR).for_each(|x| picture.put_pixel(x, y, color));
    }
    let steps = ((bottom - top) / legend::LABEL_PITCH).max(1);
    for step in 0..=steps {
        let share = f64::from(step) / f64::from(steps);
        let y = top + (share * f64::from(bottom - top)).round() as u32;
        let label = label(value(share), range);
        draw_text(picture, bar + legend::BAR + legend::GAP, y - legend::GLYPH / 2, &label);
    }
}

/// A value with as many decimals as the range needs to tell labels apart.
fn label(value: f64, range: &RangeInclusive<f64>) -> String {
    const WHOLE_NUMBERS_FROM: f64 = 20.0;
    let (decimals, unit) = if range.end() - range.start() < WHOLE_NUMBERS_FROM { (1, 10.0) } else { (0, 1.0) };
    // Adding zero turns a rounded -0 into 0.
    let rounded = (value * unit).round() / unit + 0.0;
    format!("{rounded:.decimals$}")
}

fn draw_text(picture: &mut RgbImage, left: u32, top: u32, text: &str) {
    for (i, glyph) in text.chars().map(|c| font8x8::BASIC_FONTS.get(c).unwrap_or_default()).enumerate() {
        for (y, row) in (top..).zip(glyph) {
            for bit in (0..legend::GLYPH).filter(|bit| row >> bit & 1 == 1) {
                let x = left + i as u32 * legend::GLYPH + bit;
                if x < picture.width() && y < picture.height() {
                    picture.put_pixel(x, y, Rgb([0, 0, 0]));
                }
            }
        }
    }
}

fn color_of(value: f64, range: &RangeInclusive<f64>) -> Rgb<u8> {
    let span = range.end() - range.start();
    let share = if span > 0.0 { (value - range.start()) / span } else { 0.5 };
    Rgb(colorous::TURBO.eval_continuous(share.clamp(0.0, 1.0)).as_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_legend_and_smallest_image() {
        let map = DisparityMap::from_values(vec![0, 16, -16, 32], 2, 2, 16, -16).unwrap();
        let picture = preview(&map, 0.0..=2.0);
        assert_eq!(picture.dimensions(), (2 + legend::WIDTH, legend::MIN_HEIGHT));
        assert_eq!(picture.get_pixel(0, 1), &INVALID);
        let bar = 2 + legend::GAP;
        let (top, bottom) = (legend::GAP + legend::GLYPH / 2, picture.height() - 1 - legend::GAP - legend::GLYPH / 2);
        assert_eq!(picture.get_pixel(bar, bottom), picture.get_pixel(0, 0), "the smallest disparity is at the bottom");
        assert_eq!(picture.get_pixel(bar, top), picture.get_pixel(1, 1), "the largest at the top");
        let ink = |rows: std::ops::Range<u32>| {
            let columns = bar + legend::BAR..picture.width();
            rows.flat_map(|y| columns.clone().map(move |x| (x, y)))
                .filter(|&(x, y)| picture.get_pixel(x, y).0 == [0; 3])
                .count()
        };
        assert!(
            ink(0..legend::MIN_HEIGHT / 2) > 10 && ink(legend::MIN_HEIGHT / 2..legend::MIN_HEIGHT) > 10,
            "two labels"
        );
        // A range of one disparity has no span.
        preview(&map, 3.0..=3.0);
    }

    #[test]
    fn labels_tell_the_ends_apart() {
        assert_eq!(label(4.0, &(0.0..=4.0)), "4.0");
        assert_eq!(label(-64.0, &(-64.0..=63.0)), "-64");
        assert_eq!(label(-0.3, &(-64.0..=63.0)), "0");
    }

    #[test]
    fn errors_are_judged_where_the_truth_is_visible() {
        let image = |values: [f32; 4]| FloatImage::from_raw(4, 1, values.to_vec()).unwrap();
        let map = DisparityMap::from_values(vec![0, 0, -16, 16 * 9], 4, 1, 16, -16).unwrap();
        let picture = errors(&map, &image([f32::NAN, 0.0, 0.0, 0.0]), &image([0.0; 4]));
        let worst = color_of(LARGEST_ERROR, &(0.0..=LARGEST_ERROR));
        let none = color_of(0.0, &(0.0..=LARGEST_ERROR));
        let seen: Vec<_> = (0..4).map(|x| *picture.get_pixel(x, 0)).collect();
        assert_eq!(seen, [NOT_JUDGED, none, INVALID, worst]);
    }
}
