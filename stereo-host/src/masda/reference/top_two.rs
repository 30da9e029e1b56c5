//! The best two candidates per pixel (masda.md, image plane, point 4), with their sub-pixel offsets.

use super::score::{Volume, right_column};
use crate::{
    Params,
    masda::{Candidate, Candidates},
};

/// Picks the best two of every pixel: ordered by (score descending, `d` ascending), those whose right column
/// `x - d - m` lies outside the image dropped; a pixel whose best one is dropped has none.
pub fn top_two(volume: &Volume, params: &Params, candidates: &mut Candidates) {
    for y in 0..volume.height {
        for x in 0..volume.width {
            let scores = &volume.data[volume.at(x, y)..][..volume.disparities];
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|&a, &b| scores[b].cmp(&scores[a]).then(a.cmp(&b)));
            let inside = |d: usize| (0..volume.width as i64).contains(&right_column(x, d, params.min_disparity));
            let candidate = |d: usize| Candidate {
                score: scores[d],
                d: d as u8,
                offset: if params.subpixel { subpixel_offset(scores, d) } else { 0 },
            };
            let mut pair = [Candidate::NONE; 2];
            if inside(order[0]) {
                pair[0] = candidate(order[0]);
                if let Some(&second) = order.get(1).filter(|&&d| inside(d)) {
                    pair[1] = candidate(second);
                }
            }
            candidates.pairs_mut()[y * volume.width + x] = pair;
        }
    }
}

/// Sub-pixel correction of disparity `d` in 1/16 pixel: the vertex of the parabola through the filtered scores of
/// `d - 1`, `d`, `d + 1`, in the integers of sgm.md, section 4, with a score as the negated sum there.
///
/// With `a = s(d-1)`, `c = s(d)`, `b = s(d+1)`, `n = b - a` and `q = 2c - a - b` it is `((n << 4) + q) / (2q)`, division
/// truncating toward zero. It is 0 at both ends of the range and where `q <= 0`. A second candidate need not
/// be a peak: its vertex may be far away, so the result is kept within half a pixel, `-8..=8`.
pub fn subpixel_offset(scores: &[i16], d: usize) -> i8 {
    if d == 0 || d + 1 >= scores.len() {
        return 0;
    }
    let (a, c, b) = (i32::from(scores[d - 1]), i32::from(scores[d]), i32::from(scores[d + 1]));
    let (n, q) = (b - a, 2 * c - a - b);
    if q <= 0 { 0 } else { (((n << 4) + q) / (2 * q)).clamp(-8, 8) as i8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(scores: &[i16], params: &Params, width: usize, x: usize) -> [Candidate; 2] {
        let mut data = vec![0; width * scores.len()];
        data[x * scores.len()..][..scores.len()].copy_from_slice(scores);
        let volume = Volume { data, width, height: 1, disparities: scores.len() };
        let mut candidates = Candidates::new(width, 1).unwrap();
        top_two(&volume, params, &mut candidates);
        candidates.row(0)[x]
    }

    #[test]
    fn order_ties_and_columns_outside() {
        let params = Params { subpixel: false, ..Params::masda() };
        let of = |score, d| Candidate { score, d, offset: 0 };
        assert_eq!(pick(&[5, 9, 9, 9], &params, 8, 7), [of(9, 1), of(9, 2)]);
        assert_eq!(pick(&[9, 5, 7, 9], &params, 8, 7), [of(9, 0), of(9, 3)]);
        // Column -1 for d = 3 at x = 2: the second is dropped, not replaced.
        assert_eq!(pick(&[9, 5, 7, 8], &params, 8, 2), [of(9, 0), Candidate::NONE]);
        // The best one is outside: nothing is left, though the second is inside.
        assert_eq!(pick(&[8, 5, 7, 9], &params, 8, 2), [Candidate::NONE; 2]);
        // One disparity: no second.
        assert_eq!(pick(&[8], &params, 8, 2), [of(8, 0), Candidate::NONE]);
        // A negative minimum reaches past the right side.
        let negative = Params { min_disparity: -2, ..params };
        assert_eq!(pick(&[8, 9], &negative, 8, 6), [of(9, 1), Candidate::NONE]);
        assert_eq!(pick(&[9, 8], &negative, 8, 6), [Candidate::NONE; 2]);
    }

    #[test]
    fn offsets_by_hand() {
        assert_eq!(subpixel_offset(&[10, 20, 10], 1), 0);
        // n = 5, q = 15: (80 + 15) / 30 = 3.2.
        assert_eq!(subpixel_offset(&[10, 20, 15], 1), 3);
        // n = -5, q = 15: (-80 + 15) / 30 = -2.2.
        assert_eq!(subpixel_offset(&[15, 20, 10], 1), -2);
        assert_eq!(subpixel_offset(&[10, 20, 20], 1), 8);
        assert_eq!(subpixel_offset(&[20, 20, 10], 1), -7);
        assert_eq!(subpixel_offset(&[5, 5, 5], 1), 0);
        // No peak: a slope whose vertex is beyond half a pixel, and a valley.
        assert_eq!(subpixel_offset(&[0, 20, 39], 1), 8);
        assert_eq!(subpixel_offset(&[39, 20, 0], 1), -8);
        assert_eq!(subpixel_offset(&[9, 5, 9], 1), 0);
        assert_eq!(subpixel_offset(&[9, 5, 1], 0), 0);
        assert_eq!(subpixel_offset(&[1, 5, 9], 2), 0);
        assert_eq!(subpixel_offset(&[9], 0), 0);
    }
}
