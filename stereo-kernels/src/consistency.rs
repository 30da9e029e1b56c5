//! Left-right check and output range (sgm.md, sections 5.2 and 5.3), one thread per pixel.

use crate::{
    gpu::{
        global::{Element, Global, GlobalMut},
        thread,
    },
    winner::INVALID,
};

/// Threads per block.
pub const BLOCK: u32 = 256;

crate::kernels! {
    /// Launch with `grid = (ceil(width / BLOCK), height)`, `block = BLOCK`.
    pub struct Consistency<T> {
        /// Left grey image, `[y][x]`: read only with `mask_zero`.
        image: Global<T>,
        /// Left disparities after the median, `[y][x]`.
        left: Global<u16>,
        /// Right disparities after the median, `[y][x]`.
        right: Global<u16>,
        /// The result, `[y][x]`.
        disparities: GlobalMut<i16>,
        /// Pixels in a row.
        width: u32,
        /// Fractional bits of `left`.
        fraction_bits: u32,
        /// The largest difference that passes; negative switches the check off.
        max_diff: i32,
        /// Left column `x` and disparity `d` meet right column `x - d - right_shift`.
        right_shift: i32,
        /// 1 to let a pixel pass whose right column is outside the row.
        outside_passes: u32,
        /// 1 to refuse pixels of left intensity 0.
        mask_zero: u32,
        /// Added to every valid value.
        offset: i32,
        /// What an invalid pixel becomes.
        invalid: i32,
    }
    /// For 8-bit images.
    entry consistency_u8<u8> = consistency::<u8>;
    /// For 16-bit images.
    entry consistency_u16<u16> = consistency::<u16>;
}

#[inline(always)]
fn consistency<T: Element + Into<u32>>(args: Consistency<T>) {
    let x = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    if x >= args.width {
        return;
    }
    let row = thread::block_idx_y() as usize * args.width as usize;
    let pixel = row + x as usize;
    let value = args.left.get(pixel);
    let mut valid = value != INVALID;
    if args.max_diff >= 0 {
        let d = i32::from(value >> args.fraction_bits);
        let column = x as i32 - d - args.right_shift;
        if column < 0 || column >= args.width as i32 {
            valid &= args.outside_passes != 0;
        } else {
            let other = args.right.get(row + column as usize);
            valid &= other != INVALID && (i32::from(other) - d).abs() <= args.max_diff;
        }
    }
    if args.mask_zero != 0 {
        let intensity: u32 = args.image.get(pixel).into();
        valid &= intensity != 0;
    }
    let result = if valid { i32::from(value) + args.offset } else { args.invalid };
    args.disparities.set(pixel, result as i16);
}
