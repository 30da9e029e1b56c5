//! The GPU kernels in the emulator, end to end, against the reference.

use stereo_host::{Backend, GrayView, Matcher, Options, Params};

#[test]
fn first() {
    let (w, h) = (48, 31);
    let mut s = 12345u64;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 20) as u8
    };
    let left: Vec<u8> = (0..w * h).map(|_| next()).collect();
    let mut right = left.clone();
    for y in 0..h {
        for x in 0..w {
            right[y * w + x] = left[y * w + (x + 5).min(w - 1)];
        }
    }
    for p in right.iter_mut() {
        if next() < 30 {
            *p = next();
        }
    }
    let (l, r) = (GrayView::from_u8(&left, w, h).unwrap(), GrayView::from_u8(&right, w, h).unwrap());
    for d in [1, 16, 17, 33, 64, 100, 129, 300, 600] {
        let params = Params { disparities: d, ..Params::default() };
        let run = |backend| {
            let mut m = Matcher::new(w, h, &params, &Options { backend, ..Options::default() }).unwrap();
            m.compute(&l, &r).unwrap()
        };
        let a = run(Backend::Reference);
        let b = run(Backend::Emulator);
        let differ = a.values().iter().zip(b.values()).filter(|(a, b)| a != b).count();
        println!("D {d}: {differ} differ, density {}", a.density());
        assert_eq!(differ, 0);
    }
}
