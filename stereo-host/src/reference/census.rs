//! Census descriptors (sgm.md, section 1; Zabih and Woodfill 1994, section 4).

use crate::{Census, GrayView};

/// Half the height of every window.
const HALF_HEIGHT: isize = 3;
/// Half the width of the 7x7 window.
const HALF_WIDTH_7: isize = 3;
/// Half the width of both 9x7 windows.
const HALF_WIDTH_9: isize = 4;

/// The descriptor of every pixel of `image`.
///
/// `out`: `[y][x]`, `width * height` descriptors, the last bit shifted in lowest.
///
/// # Panics
/// When `out` has another length.
pub fn census(image: &GrayView<'_>, kind: Census, out: &mut [u64]) {
    assert_eq!(out.len(), image.width() * image.height(), "census output");
    for y in 0..image.height() {
        for x in 0..image.width() {
            out[y * image.width() + x] = match kind {
                Census::Window7x7 => centre(image, x, y, HALF_WIDTH_7),
                Census::Window9x7 => centre(image, x, y, HALF_WIDTH_9),
                Census::Symmetric9x7 => symmetric(image, x, y),
            };
        }
    }
}

/// Every neighbour against the centre, row-major; neighbours outside are clamped to the image.
fn centre(image: &GrayView<'_>, x: usize, y: usize, half_width: isize) -> u64 {
    let centre = image.get(x, y);
    let mut f = 0;
    for dy in -HALF_HEIGHT..=HALF_HEIGHT {
        for dx in -half_width..=half_width {
            if (dx, dy) != (0, 0) {
                let nx = x.saturating_add_signed(dx).min(image.width() - 1);
                let ny = y.saturating_add_signed(dy).min(image.height() - 1);
                f = (f << 1) | u64::from(image.get(nx, ny) > centre);
            }
        }
    }
    f
}

/// Every pair mirrored at the centre, the upper (or left) one against the lower (or right) one;
/// 0 where the window leaves the image (Spangenberg et al. 2013, center-symmetric census).
fn symmetric(image: &GrayView<'_>, x: usize, y: usize) -> u64 {
    let fits = |at: usize, half: isize, size: usize| at >= half as usize && at + (half as usize) < size;
    if !fits(x, HALF_WIDTH_9, image.width()) || !fits(y, HALF_HEIGHT, image.height()) {
        return 0;
    }
    let at = |dx: isize, dy: isize| image.get(x.wrapping_add_signed(dx), y.wrapping_add_signed(dy));
    let mut f = 0;
    for dy in -HALF_HEIGHT..=0 {
        let last = if dy == 0 { -1 } else { HALF_WIDTH_9 };
        for dx in -HALF_WIDTH_9..=last {
            f = (f << 1) | u64::from(at(dx, dy) > at(-dx, -dy));
        }
    }
    f
}
