use super::*;
use crate::masda::{image_plane, reference};
use crate::{Backend, Options};

/// A pseudo-random image with flat parts, so that scores tie.
fn image(width: usize, height: usize, seed: usize) -> Vec<u16> {
    (0..width * height)
        .map(|i| {
            let hash = (i + seed * 7919).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            if hash & 0x300 == 0 { 0x8000 } else { (hash & 0xFFFF) as u16 }
        })
        .collect()
}

#[test]
fn every_instruction_set_equals_the_reference() {
    for (width, height, disparities, m) in [
        (1, 1, 1, 0),
        (17, 13, 16, 0),
        (40, 7, 33, -5),
        (37, 11, 64, 3),
        (50, 6, 65, -60),
        (90, 5, 100, 0),
        (33, 4, 128, 40),
        (21, 3, 255, -128),
        (64, 3, 256, 0),
    ] {
        let (left, right) = (image(width, height, 1), image(width, height, 2));
        let bytes = [&left, &right].map(|i| i.iter().map(|&p| (p >> 8) as u8).collect::<Vec<u8>>());
        let words = [&left, &right].map(|pixels| GrayView::from_u16(pixels, width, height).unwrap());
        let bytes = [0, 1].map(|i: usize| GrayView::from_u8(&bytes[i], width, height).unwrap());
        for [left, right] in [words, bytes] {
            for subpixel in [false, true] {
                let params = Params { disparities, min_disparity: m, subpixel, ..Params::masda() };
                let mut expected = Candidates::new(width, height).unwrap();
                let options = Options { backend: Backend::Reference, ..Options::default() };
                let mut twin = image_plane(&params, &options).unwrap();
                twin.compute(&left, &right, &mut expected, &mut Report::default()).unwrap();
                for isa in Isa::available() {
                    for threads in [1, 3] {
                        let options = Options { threads: Some(threads), ..Options::default() };
                        let mut plane = CpuPlane::with_isa(&params, &MasdaParams::default(), &options, isa).unwrap();
                        let mut got = Candidates::new(width, height).unwrap();
                        plane.compute(&left, &right, &mut got, &mut Report::default()).unwrap();
                        assert_eq!(got, expected, "{isa:?} {width}x{height} D {disparities} m {m}");
                    }
                }
            }
        }
    }
}

#[test]
fn layout_covers_every_pixel_once() {
    for (width, height, disparities) in [(1, 1, 1), (848, 480, 60), (10, 700, 256), (100, 3, 33)] {
        let layout = Layout::new(width, height, disparities);
        let mut starts: Vec<usize> = (0..height).flat_map(|y| (0..width).map(move |x| layout.at(x, y))).collect();
        starts.sort_unstable();
        assert!(starts.iter().enumerate().all(|(i, &at)| at == i * layout.padded));
        assert_eq!(layout.len(), starts.len() * layout.padded);
    }
}

#[test]
fn ties_go_to_the_smaller_disparity() {
    use super::columns::best_two;
    let mut state = 1u64;
    for _ in 0..20_000 {
        let scores: Vec<i16> = (0..64)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((state >> 40) % 3) as i16
            })
            .collect();
        let mut order: Vec<usize> = (0..64).collect();
        order.sort_by_key(|&k| (std::cmp::Reverse(scores[k]), k));
        let expected = [order[0], order[1]].map(|k| (scores[k], k));
        assert_eq!(best_two(&scores), (expected[0], expected[1]));
    }
    let _ = reference::top_two::subpixel_offset;
}
