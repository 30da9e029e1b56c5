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

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptors(pixels: &[u8], width: usize, kind: Census) -> Vec<u64> {
        let image = GrayView::from_u8(pixels, width, pixels.len() / width).unwrap();
        let mut out = vec![u64::MAX; pixels.len()];
        census(&image, kind, &mut out);
        out
    }

    /// A descriptor written as the rows of its window.
    fn bits(rows: &str) -> u64 {
        u64::from_str_radix(&rows.replace(' ', ""), 2).unwrap()
    }

    #[test]
    fn a_single_pixel_has_no_brighter_neighbour() {
        for kind in [Census::Window7x7, Census::Window9x7, Census::Symmetric9x7] {
            assert_eq!(descriptors(&[200], 1, kind), [0], "{kind:?}");
        }
    }

    #[test]
    fn rows_are_shifted_in_from_the_top_and_clamped_to_the_sides() {
        // Each row of the window reads 1 1 1 [1] 2 3 3 around the 1 and 1 1 1 [2] 3 3 3 around the 2.
        let same = bits("0000111 0000111 0000111 000111 0000111 0000111 0000111");
        assert_eq!(descriptors(&[1, 2, 3], 3, Census::Window7x7), [same, same, 0]);
        // A column: below the 1 all is brighter, below the 2 as well, above them nothing is.
        let below = (1 << 21) - 1;
        assert_eq!(descriptors(&[1, 2, 3], 1, Census::Window7x7), [below, below, 0]);
        let below = (1 << 27) - 1;
        assert_eq!(descriptors(&[1, 2, 3], 1, Census::Window9x7), [below, below, 0]);
        // Above the last of 3 2 1 all is brighter: three whole rows and the four that follow in order.
        assert_eq!(descriptors(&[3, 2, 1], 1, Census::Window7x7)[2], below_first_rows(7, 24));
        assert_eq!(descriptors(&[3, 2, 1], 1, Census::Window9x7)[2], below_first_rows(9, 31));
    }

    /// Three full rows of `width` ones, and zeros for the half centre rows and everything below.
    fn below_first_rows(width: u32, half_bits: u32) -> u64 {
        ((1 << (3 * width)) - 1) << (2 * half_bits - 3 * width)
    }

    #[test]
    fn symmetric_pairs_in_their_order() {
        let with_bright = |x: usize, y: usize| {
            let mut pixels = [0; 9 * 7];
            pixels[y * 9 + x] = 9;
            descriptors(&pixels, 9, Census::Symmetric9x7)
        };
        let centre = 3 * 9 + 4;
        assert_eq!(with_bright(0, 0)[centre], 1 << 30, "first pair");
        assert_eq!(with_bright(8, 2)[centre], 1 << 4, "last pair of the rows above");
        assert_eq!(with_bright(3, 3)[centre], 1, "last pair");
        assert_eq!(with_bright(8, 6)[centre], 0, "the second of a pair");
        assert_eq!(with_bright(4, 3)[centre], 0, "the centre takes no part");
        let outside = with_bright(0, 0).into_iter().enumerate().filter(|&(i, f)| i != centre && f != 0).count();
        assert_eq!(outside, 0, "windows that leave the image");
    }

    #[test]
    fn sixteen_bits_are_compared_whole() {
        let pixels = [0x0100u16, 0x00ff];
        let image = GrayView::from_u16(&pixels, 2, 1).unwrap();
        let mut out = [0; 2];
        census(&image, Census::Window7x7, &mut out);
        assert_eq!(out, [0, bits("1110000 1110000 1110000 111000 1110000 1110000 1110000")]);
    }
}
