//! Every kernel of SGM alone, in the emulator, against the reference's function for its stage, byte for
//! byte. (MASDA's are held against its plain image plane in `masda_planes.rs`.)
//!
//! One test per kernel, under the kernel's name. Parameters, sizes and the order of threads come from
//! proptest; pixels and costs from a seed, so that a failing case is printed whole and short.

use fastrand::Rng;
use stereo_host::{Census as CensusKind, Compat, Direction, GrayView, Params, Paths, SUBPIXEL_BITS, reference};
use stereo_kernels::{
    aggregate::{
        self, Aggregate,
        bulk::{self, AggregateBulk, AggregateTiles},
    },
    census::{self, Census},
    consistency::{self, Consistency},
    cost::{self, Cost},
    gpu::{bulk::Tiles, emulator::Buffer, global::Element, packed, warp},
    kernel::Entry,
    layout,
    median::{self, Median},
    penalty::{self, Penalty},
    winner::{self, Winner},
};
mod case;
use case::*;

/// Writes a test for every kernel that is named, and the list of them.
macro_rules! tests {
    ($($check:ident of $family:path { $($kernel:ident)* })*) => {
        const TESTED: &[&str] = &[$($(stringify!($kernel),)*)*];
        $($(
            #[test]
            fn $kernel() {
                use $family as family;
                $check(family::$kernel);
            }
        )*)*
    };
}

tests! {
    check_census of census {
        census_7x7_u8 census_7x7_u16 census_9x7_u8 census_9x7_u16 census_symmetric_u8 census_symmetric_u16
    }
    check_cost of cost { cost_centre cost_symmetric }
    check_penalty of penalty { penalty_u8 penalty_u16 }
    check_plain of aggregate {
        aggregate_right_d64 aggregate_right_d128 aggregate_right_d256 aggregate_right_any aggregate_right_d1024
        aggregate_left_d64 aggregate_left_d128 aggregate_left_d256 aggregate_left_any aggregate_left_d1024
        aggregate_down_d64 aggregate_down_d128 aggregate_down_d256 aggregate_down_any aggregate_down_d1024
        aggregate_up_d64 aggregate_up_d128 aggregate_up_d256 aggregate_up_any aggregate_up_d1024
        aggregate_down_right_d64 aggregate_down_right_d128 aggregate_down_right_d256 aggregate_down_right_any
        aggregate_down_right_d1024
        aggregate_down_left_d64 aggregate_down_left_d128 aggregate_down_left_d256 aggregate_down_left_any
        aggregate_down_left_d1024
        aggregate_up_right_d64 aggregate_up_right_d128 aggregate_up_right_d256 aggregate_up_right_any
        aggregate_up_right_d1024
        aggregate_up_left_d64 aggregate_up_left_d128 aggregate_up_left_d256 aggregate_up_left_any
        aggregate_up_left_d1024
    }
    check_bulk of aggregate::bulk {
        aggregate_right_d64_tma aggregate_right_d128_tma aggregate_right_d256_tma aggregate_right_any_tma
        aggregate_right_d1024_tma
        aggregate_left_d64_tma aggregate_left_d128_tma aggregate_left_d256_tma aggregate_left_any_tma
        aggregate_left_d1024_tma
        aggregate_down_d64_tma aggregate_down_d128_tma aggregate_down_d256_tma aggregate_down_any_tma
        aggregate_down_d1024_tma
        aggregate_up_d64_tma aggregate_up_d128_tma aggregate_up_d256_tma aggregate_up_any_tma aggregate_up_d1024_tma
        aggregate_down_right_d64_tma aggregate_down_right_d128_tma aggregate_down_right_d256_tma
        aggregate_down_right_any_tma aggregate_down_right_d1024_tma
        aggregate_down_left_d64_tma aggregate_down_left_d128_tma aggregate_down_left_d256_tma
        aggregate_down_left_any_tma aggregate_down_left_d1024_tma
        aggregate_up_right_d64_tma aggregate_up_right_d128_tma aggregate_up_right_d256_tma
        aggregate_up_right_any_tma aggregate_up_right_d1024_tma
        aggregate_up_left_d64_tma aggregate_up_left_d128_tma aggregate_up_left_d256_tma aggregate_up_left_any_tma
        aggregate_up_left_d1024_tma
    }
    check_tiles of aggregate::bulk {
        aggregate_right_d64_tiles_tma aggregate_right_d128_tiles_tma aggregate_right_d256_tiles_tma
        aggregate_left_d64_tiles_tma aggregate_left_d128_tiles_tma aggregate_left_d256_tiles_tma
    }
    check_winner of winner {
        winner_4_d64 winner_4_d128 winner_4_d256 winner_4_any winner_4_d1024
        winner_8_d64 winner_8_d128 winner_8_d256 winner_8_any winner_8_d1024
    }
    check_median of median { median_u16 median_u32 }
    check_consistency of consistency { consistency_u8 consistency_u16 }
}

#[test]
fn no_kernel_is_left_out() {
    let families = [
        Census::<u8>::NAMES,
        Cost::NAMES,
        Penalty::<u8>::NAMES,
        Aggregate::NAMES,
        AggregateBulk::NAMES,
        AggregateTiles::NAMES,
        Winner::NAMES,
        Median::<u16>::NAMES,
        Consistency::<u8>::NAMES,
    ];
    assert_eq!(TESTED, families.concat(), "the kernels tested here, and those there are");

    // A family that is missing above is in the device code all the same.
    let ptx = concat!(env!("CARGO_MANIFEST_DIR"), "/../stereo-host/ptx/stereo_sm90.ptx");
    let ptx = std::fs::read_to_string(ptx).unwrap();
    let entries = ptx.lines().filter_map(|line| line.split_once(".entry ")?.1.strip_suffix('('));
    let untested: Vec<_> = entries.filter(|name| !name.starts_with("masda_") && !TESTED.contains(name)).collect();
    assert!(untested.is_empty(), "kernels without a test: {untested:?}");
}

fn check_census<T: Pixel>(entry: Entry<Census<T>>) {
    let kind = match entry.name {
        name if name.contains("7x7") => CensusKind::Window7x7,
        name if name.contains("9x7") => CensusKind::Window9x7,
        _ => CensusKind::Symmetric9x7,
    };
    check(PADDED[0], (census::BLOCK as usize + 3, 2 * census::ROWS as usize + 1), |case| {
        let image: Vec<T> = case.image(&mut case.rng());
        let mut expected = vec![0; case.pixels()];
        reference::census(&T::view(&image, case.width, case.height), kind, &mut expected);

        let (width, height) = case.size();
        let image = Buffer::from_slice(&image);
        let mut descriptors = Buffer::new(case.pixels());
        let args = Census { image: image.global(), descriptors: descriptors.global_mut(), width, height };
        let grid = (width.div_ceil(census::BLOCK), height.div_ceil(census::ROWS));
        case.launch(entry, grid, census::BLOCK, 0, args);
        assert_same(&written(&descriptors), &expected, "descriptors");
    });
}

fn check_cost(entry: Entry<Cost>) {
    let centre = entry.name == cost::cost_centre.name;
    for padded in PADDED {
        check(padded, (cost::tile(padded) as usize + 3, 2), |case| {
            let mut rng = case.rng();
            let wide = rng.bool();
            let (census, bits) = match (centre, wide) {
                (true, false) => (CensusKind::Window7x7, 48),
                (true, true) => (CensusKind::Window9x7, 62),
                (false, _) => (CensusKind::Symmetric9x7, 31),
            };
            let params = Params { census, p1: 1, p2: 1, ..case.params.clone() };
            let mut descriptors = || -> Vec<u64> { (0..case.pixels()).map(|_| rng.u64(0..1 << bits)).collect() };
            let (left, right) = (descriptors(), descriptors());
            let mut expected = vec![0; case.volume()];
            reference::matching_cost(&left, &right, case.width, &params, &mut expected);
            let expected = to_layout(&expected, params.disparities, || layout::PADDING_COST as u8);

            let (width, height) = case.size();
            let [left, right] = [&left, &right].map(|side| Buffer::from_slice(side));
            let mut costs = Buffer::new(case.pixels() * padded as usize);
            let args = Cost {
                left: left.global(),
                right: right.global(),
                costs: costs.global_mut(),
                width,
                disparities: params.disparities,
                padded,
                min_disparity: params.min_disparity,
            };
            let grid = (width.div_ceil(cost::tile(padded)), height);
            case.launch(entry, grid, cost::BLOCK, cost::shared_bytes(padded), args);
            assert_same(&written(&costs), &expected, "costs");
        });
    }
}

/// The images of `P2` as penalty.rs lays them out, from the reference's penalties.
fn penalty_images(case: &Case, image: &GrayView<'_>, axes: usize) -> Vec<u8> {
    let mut images = Vec::new();
    for &(dx, dy) in &penalty::AXES[..axes] {
        for (y, x) in (0..case.height).flat_map(|y| (0..case.width).map(move |x| (y, x))) {
            let before_x = x.checked_add_signed(-dx as isize).filter(|&x| x < case.width);
            let before = before_x.zip(y.checked_add_signed(-dy as isize));
            images.push(before.map_or(0, |(before_x, before_y)| {
                reference::step_penalty(&case.params, image.get(x, y), image.get(before_x, before_y)) as u8
            }));
        }
        images.resize(images.len() + penalty::tail(case.width), 0);
    }
    images
}

fn check_penalty<T: Pixel>(entry: Entry<Penalty<T>>) {
    check(PADDED[0], (penalty::BLOCK as usize + 3, 2), |case| {
        let image: Vec<T> = case.image(&mut case.rng());
        let axes = case.params.paths.count() / 2;
        let expected = penalty_images(case, &T::view(&image, case.width, case.height), axes);

        let (width, height) = case.size();
        let image = Buffer::from_slice(&image);
        let mut penalties = Buffer::new(expected.len());
        let args = Penalty {
            image: image.global(),
            penalties: penalties.global_mut(),
            width,
            height,
            axes: axes as u32,
            p1: case.params.p1.into(),
            p2: case.params.p2.into(),
            adaptive: case.params.adaptive_p2.into(),
        };
        let threads = (expected.len() / axes) as u32;
        case.launch(entry, (threads.div_ceil(penalty::BLOCK), 1), penalty::BLOCK, 0, args);
        assert_same(&written(&penalties), &expected, "penalties");
    });
}

/// The direction of a kernel, and the sizes of volumes that it is chosen for.
fn uses<A>(entry: Entry<A>, choose: fn((i32, i32), u32) -> Entry<A>) -> (Direction, Vec<u32>) {
    for direction in Direction::ALL {
        let chosen = |&padded: &u32| choose(step(direction), padded).name == entry.name;
        let sizes: Vec<u32> = PADDED.into_iter().filter(chosen).collect();
        if !sizes.is_empty() {
            return (direction, sizes);
        }
    }
    panic!("{} is never chosen", entry.name);
}

fn step(direction: Direction) -> (i32, i32) {
    let (dx, dy) = direction.offset();
    (dx as i32, dy as i32)
}

/// What a kernel of the path aggregation works on, and what the reference makes of it.
struct PathCase {
    matching: Buffer<u8>,
    penalties: Buffer<u8>,
    path_costs: Buffer<u8>,
    /// Where in the penalties the direction's image starts.
    first_penalty: usize,
    /// Paths side by side, and the lanes of each.
    paths: u32,
    lanes: u32,
    expected: Vec<u8>,
}

impl PathCase {
    fn new(case: &Case, direction: Direction) -> Self {
        let mut rng = case.rng();
        let image: Vec<u16> = case.image(&mut rng);
        let image = u16::view(&image, case.width, case.height);
        let matching = case.costs(&mut rng, u32::from(u8::MAX) - u32::from(case.params.p2));
        let mut expected = vec![0; case.volume()];
        reference::path_costs(&matching, &image, &case.params, direction, &mut expected);

        let matching = to_layout(&matching, case.params.disparities, || layout::PADDING_COST as u8);
        let penalties = penalty_images(case, &image, penalty::AXES.len());
        let (dx, dy) = step(direction);
        let forward = penalty::AXES.iter().position(|&axis| axis == (dx, dy));
        let per_image = penalties.len() / penalty::AXES.len();
        let first_penalty = match forward {
            Some(axis) => axis * per_image,
            None => {
                let axis = penalty::AXES.iter().position(|&axis| axis == (-dx, -dy)).unwrap();
                let ahead = -dy as isize * case.width as isize - dx as isize;
                axis * per_image + ahead as usize
            }
        };
        Self {
            path_costs: Buffer::new(matching.len()),
            matching: Buffer::from_slice(&matching),
            penalties: Buffer::from_slice(&penalties),
            first_penalty,
            paths: if dy == 0 { case.height } else { case.width } as u32,
            lanes: aggregate::lanes(dy == 0, layout::padded(case.params.disparities)),
            expected,
        }
    }

    fn compare(&self, case: &Case) {
        let path_costs = from_layout(&written(&self.path_costs), case.params.disparities);
        assert_same(&path_costs, &self.expected, "path costs");
    }
}

/// More paths than a block has, in both directions.
const MANY_PATHS: (usize, usize) = (67, 3);

fn check_plain(entry: Entry<Aggregate>) {
    let (direction, sizes) = uses(entry, aggregate::plain);
    for padded in sizes {
        check(padded, MANY_PATHS, |case| {
            let mut of = PathCase::new(case, direction);
            let (width, height) = case.size();
            let lanes = of.lanes;
            let args = Aggregate {
                matching: of.matching.global(),
                penalties: of.penalties.global_at(of.first_penalty..of.penalties.len()),
                path_costs: of.path_costs.global_mut(),
                width,
                height,
                p1: packed::splat(case.params.p1.into()),
                lanes,
            };
            let block = warp::SIZE << (case.seed % 3);
            case.launch(entry, ((of.paths * lanes).div_ceil(block), 1), block, 0, args);
            of.compare(case);
        });
    }
}

fn check_bulk(entry: Entry<AggregateBulk>) {
    let (direction, sizes) = uses(entry, bulk::entry);
    for padded in sizes {
        check(padded, MANY_PATHS, |case| {
            let mut of = PathCase::new(case, direction);
            let (width, height) = case.size();
            let lanes = of.lanes;
            let (step_bits, stages) = (case.step_bits.min(bulk::max_step_bits(lanes)), case.stages);
            let args = AggregateBulk {
                matching: of.matching.global(),
                penalties: of.penalties.global_at(of.first_penalty..of.penalties.len()),
                path_costs: of.path_costs.global_mut(),
                width,
                height,
                p1: packed::splat(case.params.p1.into()),
                step_bits,
                stages,
                lanes,
            };
            let shared = bulk::shared_bytes(lanes, padded, step_bits, stages);
            case.launch(entry, ((of.paths * lanes).div_ceil(warp::SIZE), 1), warp::SIZE, shared, args);
            of.compare(case);
        });
    }
}

fn check_tiles(entry: Entry<AggregateTiles>) {
    let direction = if entry.name.contains("_right_") { Direction::LeftToRight } else { Direction::RightToLeft };
    for padded in PADDED.into_iter().filter(|&padded| bulk::has_tiles(padded, 0)) {
        if bulk::tiles_entry(step(direction), padded).name != entry.name {
            continue;
        }
        check(padded, MANY_PATHS, |case| {
            let mut of = PathCase::new(case, direction);
            let (width, height) = case.size();
            let &Case { stages, .. } = case;
            let has_tiles = |&step_bits: &u32| bulk::has_tiles(padded, step_bits);
            let step_bits = (0..=case.step_bits.min(bulk::max_step_bits(of.lanes))).rfind(has_tiles).unwrap();
            let tiles = Tiles {
                source: of.matching.global(),
                row_bytes: case.width * padded as usize,
                rows: case.height,
                tile_bytes: padded << step_bits,
                tile_rows: warp::SIZE / of.lanes,
            };
            let map = Buffer::from_slice(&tiles.encode());
            let args = AggregateTiles {
                map: map.global(),
                penalties: of.penalties.global_at(of.first_penalty..of.penalties.len()),
                path_costs: of.path_costs.global_mut(),
                width,
                height,
                p1: packed::splat(case.params.p1.into()),
                step_bits,
                stages,
            };
            let shared = bulk::shared_bytes(of.lanes, padded, step_bits, stages);
            case.launch(entry, ((of.paths * of.lanes).div_ceil(warp::SIZE), 1), warp::SIZE, shared, args);
            of.compare(case);
        });
    }
}

/// For every sum, the smallest sum that is not too close to it.
fn thresholds(uniqueness: f32) -> Vec<u16> {
    let sums: Vec<u16> = (0..=winner::MAX_SUM as u16).collect();
    let too_close = |best: u16| move |&sum: &u16| f32::from(sum) * uniqueness < f32::from(best);
    sums.iter().map(|&best| sums.partition_point(too_close(best)) as u16).collect()
}

/// The column of the right map that left column 0 and disparity 0 meet, negated.
fn right_shift(params: &Params) -> i32 {
    if params.compat == Compat::LibSgm { 0 } else { params.min_disparity }
}

fn check_winner(entry: Entry<Winner>) {
    let paths = if entry.name.contains("_4_") { Paths::Four } else { Paths::Eight };
    let sizes = PADDED.into_iter().filter(|&padded| winner::entry(paths.count(), padded).name == entry.name);
    for padded in sizes {
        let lanes = layout::lanes(padded);
        check(padded, (winner::tile(lanes) as usize + 3, 2), |case| {
            let mut rng = case.rng();
            let params = Params { paths, ..case.params.clone() };
            let mut sums = vec![0; case.volume()];
            let mut volumes = Vec::new();
            let favoured: Vec<u32> = (0..case.pixels()).map(|_| favoured(&mut rng, params.disparities)).collect();
            for _ in 0..paths.count() {
                let mut costs = case.costs(&mut rng, u8::MAX.into());
                for (costs, &favoured) in costs.chunks_mut(params.disparities as usize).zip(&favoured) {
                    favour(costs, favoured as usize);
                }
                reference::add_to_sums(&costs, &mut sums);
                // What the aggregation leaves in the padding must not matter.
                volumes.extend(to_layout(&costs, params.disparities, || rng.u8(..)));
            }
            let (mut left, mut right) = (vec![0; case.pixels()], vec![0; case.pixels()]);
            reference::left_map(&sums, &params, &mut left);
            reference::right_map(&sums, case.width, &params, &mut right);
            let candidates = candidates(case, &params, &sums, &right);

            let (width, height) = case.size();
            let path_costs = Buffer::from_slice(&volumes);
            let table = Buffer::from_slice(&thresholds(params.uniqueness));
            let (mut left_map, mut right_map) = (Buffer::new(case.pixels()), Buffer::new(case.pixels()));
            right_map.fill(u32::MAX);
            let args = Winner {
                path_costs: path_costs.global(),
                volume: volumes.len() / paths.count(),
                thresholds: table.global(),
                left: left_map.global_mut(),
                right: right_map.global_mut(),
                width,
                disparities: params.disparities,
                right_shift: right_shift(&params),
                subpixel: params.subpixel.into(),
                pixels: winner::PIXELS,
                lanes,
            };
            let grid = (width.div_ceil(winner::tile(lanes)), height);
            case.launch(entry, grid, winner::BLOCK, winner::shared_bytes(lanes, padded), args);
            assert_same(&written(&left_map), &left, "left map");
            assert_same(&written(&right_map), &candidates, "right candidates");
        });
    }
}

/// A disparity that shall win: often one of the ends, where neighbours are missing.
fn favoured(rng: &mut Rng, disparities: u32) -> u32 {
    let last = disparities - 1;
    match rng.u8(0..8) {
        0 => 0,
        1 => last.min(1),
        2 => last,
        3 => last.saturating_sub(1),
        _ => rng.u32(0..disparities),
    }
}

/// Makes a disparity cheap and its neighbours cheaper than before, so that winners can be unique.
fn favour(costs: &mut [u8], favoured: usize) {
    for d in favoured.saturating_sub(1)..(favoured + 2).min(costs.len()) {
        costs[d] /= if d == favoured { 4 } else { 2 };
    }
}

/// The right map with the winners' sums: `sum << 16 | d`, all ones where there is none.
fn candidates(case: &Case, params: &Params, sums: &[u16], right: &[u16]) -> Vec<u32> {
    let candidate = |(i, &d): (usize, &u16)| {
        if d == reference::INVALID {
            return u32::MAX;
        }
        let left = (i as isize + isize::from(d as i16) + right_shift(params) as isize) as usize;
        u32::from(sums[left * params.disparities as usize + d as usize]) << 16 | u32::from(d)
    };
    debug_assert_eq!(right.len(), case.pixels());
    right.iter().enumerate().map(candidate).collect()
}

/// A map of relative disparities as the winner stage leaves it, some of it invalid.
fn map(case: &Case, rng: &mut Rng, scale: u32) -> Vec<u16> {
    let range = (case.params.disparities * scale).min(case.levels);
    let value = |rng: &mut Rng| if rng.u8(0..5) == 0 { reference::INVALID } else { rng.u32(0..range) as u16 };
    (0..case.pixels()).map(|_| value(rng)).collect()
}

fn check_median<T: MapElement>(entry: Entry<Median<T>>) {
    check(PADDED[3], (median::BLOCK as usize + 3, 4), |case| {
        let mut rng = case.rng();
        let source = map(case, &mut rng, 1);
        let mut expected = vec![0; source.len()];
        reference::median3x3(&source, case.width, case.params.compat, &mut expected);

        let (width, height) = case.size();
        let source: Vec<T> = source.iter().map(|&value| T::holding(value, &mut rng)).collect();
        let source = Buffer::from_slice(&source);
        let mut target = Buffer::new(case.pixels());
        let zero_border = (case.params.compat == Compat::LibSgm).into();
        let args = Median { source: source.global(), target: target.global_mut(), width, height, zero_border };
        case.launch(entry, (width.div_ceil(median::BLOCK), height), median::BLOCK, 0, args);
        assert_same(&written(&target), &expected, "filtered map");
    });
}

/// What the median reads.
trait MapElement: Element {
    /// An element whose low half is `value`.
    fn holding(value: u16, rng: &mut Rng) -> Self;
}

impl MapElement for u16 {
    fn holding(value: u16, _: &mut Rng) -> Self {
        value
    }
}

impl MapElement for u32 {
    fn holding(value: u16, rng: &mut Rng) -> Self {
        u32::from(rng.u16(..)) << 16 | u32::from(value)
    }
}

fn check_consistency<T: Pixel>(entry: Entry<Consistency<T>>) {
    for padded in PADDED {
        check(padded, (consistency::BLOCK as usize + 3, 2), |case| {
            let mut rng = case.rng();
            let params = &case.params;
            let image: Vec<T> = case.image(&mut rng);
            let left = map(case, &mut rng, params.scale() as u32);
            let right = map(case, &mut rng, 1);
            let mut checked = left.clone();
            reference::check_consistency(&mut checked, &right, &T::view(&image, case.width, case.height), params);
            let mut expected = vec![0; case.pixels()];
            reference::to_true_range(&checked, params, &mut expected);

            let (width, height) = case.size();
            let image = Buffer::from_slice(&image);
            let [left, right] = [&left, &right].map(|map| Buffer::from_slice(map));
            let mut disparities = Buffer::new(case.pixels());
            let args = Consistency {
                image: image.global(),
                left: left.global(),
                right: right.global(),
                disparities: disparities.global_mut(),
                width,
                fraction_bits: if params.subpixel { SUBPIXEL_BITS } else { 0 },
                max_diff: params.lr_max_diff,
                right_shift: right_shift(params),
                outside_passes: (params.compat == Compat::LibSgm).into(),
                mask_zero: params.masks_zero().into(),
                offset: params.min_disparity * params.scale(),
                invalid: params.invalid_value(),
            };
            case.launch(entry, (width.div_ceil(consistency::BLOCK), height), consistency::BLOCK, 0, args);
            assert_same(&written(&disparities), &expected, "disparities");
        });
    }
}
