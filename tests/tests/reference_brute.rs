//! The reference against the brute force of this crate: whole matches, and every stage alone on
//! inputs that no match would give it.

use proptest::{collection::vec, option, prelude::*};
use stereo_host::{Compat, Direction, GrayView, Params, Speckle, reference};
use stereo_tests::{
    brute::{self, Grid, Map, Volume},
    cases,
};

fn config(cases: u32) -> ProptestConfig {
    // Failures print their input; a file beside an integration test would not be found again.
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn bits(comparisons: &Grid<Vec<bool>>) -> Vec<u64> {
    comparisons.iter().flatten().map(|bits| bits.iter().fold(0, |f, &bit| (f << 1) | u64::from(bit))).collect()
}

fn flat(volume: &Volume) -> Vec<i64> {
    volume.iter().flatten().flatten().copied().collect()
}

/// A map's values with `invalid` in the holes.
fn values(map: &Map, invalid: i64) -> Vec<i64> {
    map.iter().flatten().map(|value| value.unwrap_or(invalid)).collect()
}

fn wide<T: Copy + Into<i64>>(values: &[T]) -> Vec<i64> {
    values.iter().map(|&value| value.into()).collect()
}

fn rows<T: Clone>(values: &[T], width: usize) -> Grid<T> {
    values.chunks(width).map(<[T]>::to_vec).collect()
}

const INVALID: i64 = reference::INVALID as i64;

/// Every stage of one match against the brute force.
fn compare(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> Result<(), TestCaseError> {
    let expected = brute::run(left, right, params);
    let got = reference::Stages::compute(left, right, params);
    prop_assert_eq!(&got.census_left, &bits(&expected.census_left), "left census");
    prop_assert_eq!(&got.census_right, &bits(&expected.census_right), "right census");
    prop_assert_eq!(wide(&got.cost), flat(&expected.cost), "matching cost");
    let mut path = vec![0; got.cost.len()];
    for (direction, expected) in params.paths.directions().iter().zip(&expected.paths) {
        reference::path_costs(&got.cost, left, params, *direction, &mut path);
        prop_assert_eq!(wide(&path), flat(expected), "path costs {}", direction);
    }
    prop_assert_eq!(wide(&got.sums), flat(&expected.sums), "sums");
    prop_assert_eq!(wide(&got.left), values(&expected.left, INVALID), "left winners");
    prop_assert_eq!(wide(&got.right), values(&expected.right, INVALID), "right winners");
    prop_assert_eq!(wide(&got.left_median), values(&expected.left_median, INVALID), "left median");
    prop_assert_eq!(wide(&got.right_median), values(&expected.right_median, INVALID), "right median");
    prop_assert_eq!(wide(&got.checked), values(&expected.checked, INVALID), "consistency");
    let invalid = i64::from(params.min_disparity - 1) * i64::from(params.scale());
    prop_assert_eq!(wide(&got.map), values(&expected.map, invalid), "final map");
    Ok(())
}

/// A map of relative values with a third of its pixels invalid, and its width.
fn relative_map() -> impl Strategy<Value = (Vec<Option<i64>>, usize)> {
    (1usize..=9, 1usize..=9).prop_flat_map(|(width, height)| {
        let value = prop_oneof![0i64..6, 0i64..200];
        (vec(option::weighted(0.65, value), width * height), Just(width))
    })
}

fn relative(map: &[Option<i64>]) -> Vec<u16> {
    map.iter().map(|value| value.map_or(reference::INVALID, |value| value as u16)).collect()
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn whole_matches(case in cases::case()) {
        case.with_views(|left, right| compare(left, right, &case.params))?;
    }

    #[test]
    fn path_costs_of_any_volume(case in cases::case(), noise in vec(any::<u16>(), 97)) {
        let params = &case.params;
        let pixels = case.width * case.height;
        let limit = params.census.max_cost() + 1;
        let cost = |i: usize| (noise[i * 31 % 97].wrapping_mul(i as u16 | 1) % limit) as u8;
        let cost: Vec<u8> = (0..pixels * params.disparities as usize).map(cost).collect();
        let nested = rows(&rows(&wide(&cost), params.disparities as usize), case.width);
        let mut out = vec![0; cost.len()];
        case.with_views(|left, _| {
            for (&direction, step) in Direction::ALL.iter().zip(brute::steps(stereo_host::Paths::Eight)) {
                reference::path_costs(&cost, left, params, direction, &mut out);
                let expected = brute::path_costs(&nested, &brute::pixels(left), params, step);
                prop_assert_eq!(wide(&out), flat(&expected), "{}", direction);
            }
            Ok(())
        })?;
    }

    #[test]
    fn winners_of_any_sums(
        params in cases::params(),
        (width, height) in (1usize..=12, 1usize..=4),
        disparities in 1u32..=20,
        noise in vec(prop_oneof![0u16..=2040, 0u16..8], 12 * 4 * 20),
    ) {
        let params = Params { disparities, ..params };
        let sums = &noise[..width * height * disparities as usize];
        let nested = rows(&rows(&wide(sums), disparities as usize), width);
        let mut out = vec![0; width * height];
        reference::left_map(sums, &params, &mut out);
        prop_assert_eq!(wide(&out), values(&brute::left_winners(&nested, &params), INVALID));
        reference::right_map(sums, width, &params, &mut out);
        prop_assert_eq!(wide(&out), values(&brute::right_winners(&nested, &params), INVALID));
    }

    #[test]
    fn medians_of_any_map((map, width) in relative_map()) {
        let mut out = vec![0; map.len()];
        for compat in [Compat::None, Compat::LibSgm] {
            reference::median3x3(&relative(&map), width, compat, &mut out);
            let expected = brute::median(&rows(&map, width), compat == Compat::LibSgm);
            prop_assert_eq!(wide(&out), values(&expected, INVALID));
        }
    }

    #[test]
    fn consistency_of_any_maps(
        params in cases::params(),
        (map, width) in relative_map(),
        noise in vec(option::weighted(0.8, 0i64..6), 81),
        intensities in vec(0u8..3, 81),
    ) {
        let right = &noise[..map.len()];
        let left = GrayView::from_u8(&intensities[..map.len()], width, map.len() / width).unwrap();
        let mut out = relative(&map);
        reference::check_consistency(&mut out, &relative(right), &left, &params);
        let expected = brute::check(&rows(&map, width), &rows(right, width), &brute::pixels(&left), &params);
        prop_assert_eq!(wide(&out), values(&expected, INVALID));
    }

    #[test]
    fn range_speckle_and_fill_of_any_map(
        params in cases::params(),
        (map, width) in relative_map(),
        (max_size, max_diff) in (0u32..=12, 0u32..=4),
    ) {
        let invalid = i64::from(params.invalid_value());
        let mut out = vec![0; map.len()];
        reference::to_true_range(&relative(&map), &params, &mut out);
        let ranged = brute::true_range(&rows(&map, width), &params);
        prop_assert_eq!(wide(&out), values(&ranged, invalid));

        let mut cleaned = out.clone();
        reference::remove_speckles(&mut cleaned, width, Speckle { max_size, max_diff }, &params);
        let max_diff = i64::from(max_diff) * i64::from(params.scale());
        let expected = brute::without_speckles(&ranged, max_size as usize, max_diff);
        prop_assert_eq!(wide(&cleaned), values(&expected, invalid));

        reference::fill(&mut out, width, &params);
        prop_assert_eq!(wide(&out), values(&brute::median(&brute::filled(&ranged), false), invalid));
    }
}

#[test]
fn the_most_disparities() {
    let pixels: Vec<u16> = (0..10u32).map(|i| (i * 7919 % 251) as u16).collect();
    let view = GrayView::from_u16(&pixels, 5, 2).unwrap();
    for compat in [Compat::None, Compat::LibSgm] {
        let params = Params { disparities: 1024, min_disparity: -500, compat, ..Params::default() };
        compare(&view, &view, &params).unwrap();
    }
}
