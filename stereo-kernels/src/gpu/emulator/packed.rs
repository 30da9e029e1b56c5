//! Host twins of the instructions on two 16-bit lanes; see [`crate::gpu::packed`].

const LOW: u32 = 0xffff;

/// Lane-wise unsigned minimum. Lanes hold less than 2^15 - 2^10 (see the device's `min`).
#[inline(always)]
pub fn min(a: u32, b: u32) -> u32 {
    (a & LOW).min(b & LOW) | (a & !LOW).min(b & !LOW)
}

/// Picks four bytes out of the eight of `b:a`, one per hexadecimal digit of `selector`; a digit's
/// highest bit replicates the byte's sign over all eight bits.
#[inline(always)]
pub fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32) | u64::from(a);
    let mut result = 0;
    let mut byte = 0;
    while byte < 4 {
        let digit = (selector >> (4 * byte)) & 0xf;
        let picked = (bytes >> (8 * (digit & 7))) as u8;
        let picked = if digit & 8 == 0 { picked } else { ((picked as i8) >> 7) as u8 };
        result |= u32::from(picked) << (8 * byte);
        byte += 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{min, permute};

    #[test]
    fn min_is_per_lane_and_unsigned() {
        assert_eq!(min(0x0001_7bff, 0x7bff_0001), 0x0001_0001);
        assert_eq!(min(0x1234_5678, 0x1233_5679), 0x1233_5678);
        assert_eq!(min(0xffff_0000, 0x8000_ffff), 0x8000_0000);
        assert_eq!(min(7, 7), 7);
    }

    #[test]
    fn permute_picks_each_of_the_eight_bytes() {
        let (a, b) = (0x3322_1100, 0x7766_5544);
        for byte in 0..8 {
            assert_eq!(permute(a, b, byte), 0x11 * byte, "byte {byte}");
            assert_eq!(permute(a, b, byte * 0x1111), 0x1111_1111 * byte, "byte {byte} four times");
        }
        assert_eq!(permute(a, b, 0x3210), a);
        assert_eq!(permute(a, b, 0x7654), b);
        assert_eq!(permute(a, b, 0x1032), 0x1100_3322);
        assert_eq!(permute(a, b, 0x5410), 0x5544_1100);
        assert_eq!(permute(a, b, 0x6543), 0x6655_4433);
    }

    #[test]
    fn permute_replicates_signs() {
        let (a, b) = (0x7f80_ff00, 0x017f_80fe);
        assert_eq!(permute(a, b, 0xba98), 0x00ff_ff00);
        assert_eq!(permute(a, b, 0xfedc), 0x0000_ffff);
        assert_eq!(permute(a, b, 0x3a10), 0x7fff_ff00);
    }

    #[test]
    fn selector_bits_above_the_fourth_digit_do_not_count() {
        assert_eq!(permute(0x3322_1100, 0x7766_5544, 0xabcd_3210), 0x3322_1100);
    }
}
