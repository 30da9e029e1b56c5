//! From raw maps to the finished one (sgm.md, section 5), row by row; speckles are in [`super::speckle`].

use rayon::prelude::*;

use super::{aggregate::RawMaps, arch::Kernels, finish::INVALID, median::MedianRow};
use crate::{Compat, DisparityMap, GrayView, Params, Pixels, SUBPIXEL_BITS, reference::fill_row};

/// The 3x3 median of both maps.
pub(super) fn medians(kernels: &Kernels, width: usize, compat: Compat, raw: &RawMaps, out: &mut RawMaps) {
    rayon::join(
        || median(kernels, width, compat, &raw.left, &mut out.left),
        || median(kernels, width, compat, &raw.right, &mut out.right),
    );
}

fn median(kernels: &Kernels, width: usize, compat: Compat, raw: &[u16], out: &mut [u16]) {
    let rows = raw.len() / width;
    out.par_chunks_exact_mut(width).enumerate().with_min_len(ROWS_PER_TASK).for_each(|(y, out)| {
        let row = |y: usize| &raw[y * width..][..width];
        if compat == Compat::LibSgm {
            out.fill(0);
        } else if y == 0 || y + 1 == rows {
            out.copy_from_slice(row(y));
        } else {
            (out[0], out[width - 1]) = (row(y)[0], row(y)[width - 1]);
        }
        if y > 0 && y + 1 < rows {
            let mut rows = MedianRow { above: row(y - 1), row: row(y), below: row(y + 1), out };
            // SAFETY: the kernel table is this machine's.
            unsafe { (kernels.median)(&mut rows) };
        }
    });
}

/// Rows that are worth a task of their own.
const ROWS_PER_TASK: usize = 16;

/// The consistency check and the range, into the finished values.
pub(super) fn check(params: &Params, left: &GrayView<'_>, maps: &RawMaps, map: &mut DisparityMap) {
    let width = left.width();
    let scale_bits = if params.subpixel { SUBPIXEL_BITS } else { 0 };
    let offset = params.min_disparity * params.scale();
    let invalid = map.invalid();
    // A column of the right map is where the left one was shifted to: see sgm.md, section 4.
    let compat = params.compat == Compat::LibSgm;
    let shift = if compat { 0 } else { params.min_disparity };
    let masked = params.masks_zero();
    let zero = |x: usize, y: usize| match left.pixels() {
        Pixels::U8(pixels) => pixels[y * left.stride() + x] == 0,
        Pixels::U16(pixels) => pixels[y * left.stride() + x] == 0,
    };
    let rows = map.values_mut().par_chunks_exact_mut(width);
    let rows = rows.zip(maps.left.par_chunks_exact(width)).zip(maps.right.par_chunks_exact(width));
    rows.enumerate().with_min_len(ROWS_PER_TASK).for_each(|(y, ((out, left), right))| {
        for (x, (out, &value)) in out.iter_mut().zip(left).enumerate() {
            let d = i32::from(value >> scale_bits);
            let consistent = || {
                if params.lr_max_diff < 0 {
                    return true;
                }
                match usize::try_from(x as i32 - d - shift).ok().and_then(|column| right.get(column)) {
                    None => compat,
                    Some(&INVALID) => false,
                    Some(&other) => (i32::from(other) - d).abs() <= params.lr_max_diff,
                }
            };
            let valid = value != INVALID && consistent() && !(masked && zero(x, y));
            // `Params::validate` has checked that the range fits.
            *out = if valid { (i32::from(value) + offset) as i16 } else { invalid };
        }
    });
}

/// Filling (sgm.md, section 5.4) and its median; `keys` and `filtered` are memory of the map's size.
pub(super) fn fill(kernels: &Kernels, map: &mut DisparityMap, keys: &mut [u16], filtered: &mut [u16]) {
    let (width, invalid) = (map.width(), map.invalid());
    // As the reference: counted from one above the invalid value, so that this sorts last.
    let lowest = (invalid as u16).wrapping_add(1);
    let rows = map.values_mut().par_chunks_exact_mut(width).zip(keys.par_chunks_exact_mut(width));
    rows.with_min_len(ROWS_PER_TASK).for_each(|(row, keys)| {
        fill_row(row, invalid);
        keys.iter_mut().zip(row).for_each(|(key, value)| *key = (*value as u16).wrapping_sub(lowest));
    });
    median(kernels, width, Compat::None, keys, filtered);
    let rows = map.values_mut().par_chunks_exact_mut(width).zip(filtered.par_chunks_exact(width));
    rows.with_min_len(ROWS_PER_TASK).for_each(|(row, filtered)| {
        row.iter_mut().zip(filtered).for_each(|(value, key)| *value = key.wrapping_add(lowest) as i16);
    });
}
