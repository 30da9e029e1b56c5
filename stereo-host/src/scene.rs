//! Stereo pairs with ground truth: the type that the evaluation takes, and a renderer that makes such pairs.
//!
//! The renderer casts one ray per pixel of each view against planar surfaces, so the ground truth of both
//! views is exact, occlusions included. It uses additions, multiplications and divisions of doubles only:
//! the same seed gives the same bytes on every machine.

use image::{GrayImage, Luma};

use crate::{
    Params, Result,
    io::{FloatImage, Gray},
    view::check_size,
};

/// A rectified pair, its ground truth for both views and the range to search.
#[derive(Debug, Clone)]
pub struct Scene {
    /// What to call it in a table.
    pub name: String,
    /// The left image.
    pub left: Gray,
    /// The right image.
    pub right: Gray,
    /// The left view's disparities in pixels, NaN where unknown.
    pub truth_left: FloatImage,
    /// The right view's disparities in pixels, NaN where unknown.
    pub truth_right: FloatImage,
    /// The smallest disparity to search.
    pub min_disparity: i32,
    /// The number of disparities to search.
    pub disparities: u32,
}

/// What to render: a slanted background, slanted and frontal boxes and ellipses in front of it, and thin bars.
///
/// ```
/// let spec = stereo_host::SceneSpec { width: 64, height: 48, disparities: 16, ..Default::default() };
/// let scene = spec.render()?;
/// assert_eq!(scene.left.size(), (64, 48));
/// # Ok::<(), stereo_host::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneSpec {
    /// Pixels in a row. Default 640.
    pub width: usize,
    /// Rows. Default 480.
    pub height: usize,
    /// The smallest disparity in the scene, in pixels. Default 0.
    pub min_disparity: i32,
    /// All disparities lie in `min_disparity ..= min_disparity + disparities - 1`. Default 64.
    pub disparities: u32,
    /// Chooses surfaces, textures and noise. Default 1.
    pub seed: u64,
    /// Each view's own sensor noise, uniform in `-noise ..= noise` grey levels. Default 2.
    pub noise: u8,
}

impl Default for SceneSpec {
    fn default() -> Self {
        Self { width: 640, height: 480, min_disparity: 0, disparities: 64, seed: 1, noise: 2 }
    }
}

impl SceneSpec {
    /// Renders the pair and its ground truth, known at every pixel of both views.
    ///
    /// # Errors
    /// A refused size or disparity range, as for a matcher.
    pub fn render(&self) -> Result<Scene> {
        check_size(self.width, self.height)?;
        let range = Params { disparities: self.disparities, min_disparity: self.min_disparity, ..Params::default() };
        range.validate()?;
        let surfaces = self.surfaces();
        let (left, truth_left) = self.view(&surfaces, View::Left);
        let (right, truth_right) = self.view(&surfaces, View::Right);
        Ok(Scene {
            name: format!("rendered {}x{}, seed {}", self.width, self.height, self.seed),
            left: Gray::U8(left),
            right: Gray::U8(right),
            truth_left,
            truth_right,
            min_disparity: self.min_disparity,
            disparities: self.disparities,
        })
    }

    fn view(&self, surfaces: &[Surface], view: View) -> (GrayImage, FloatImage) {
        let (width, height) = (self.width as u32, self.height as u32);
        let mut image = GrayImage::new(width, height);
        let mut truth = FloatImage::new(width, height);
        for (y, (row, truth)) in image.rows_mut().zip(truth.rows_mut()).enumerate() {
            for (x, (pixel, truth)) in row.zip(truth).enumerate() {
                let hit = nearest(surfaces, view, x as f64, y as f64);
                let noise = self.noise_at(view, x, y);
                *pixel = Luma([(hit.intensity + noise).clamp(0.0, 255.0) as u8]);
                *truth = Luma([hit.disparity as f32]);
            }
        }
        (image, truth)
    }

    fn noise_at(&self, view: View, x: usize, y: usize) -> f64 {
        let random = Random::at(self.seed ^ NOISE_STREAM, &[view as u64, x as u64, y as u64]).unit();
        (2.0 * random - 1.0) * f64::from(self.noise)
    }

    /// Back to front is decided per pixel by the disparity, so the order here means nothing.
    fn surfaces(&self) -> Vec<Surface> {
        let mut random = Random(mix(self.seed));
        let mut surfaces = vec![self.background(&mut random)];
        for _ in 0..BOXES {
            let (w, h) = (random.between(0.12, 0.3), random.between(0.15, 0.35));
            let (x, y) = (random.between(0.0, 1.0 - w), random.between(0.0, 1.0 - h));
            let shape = Shape::Box { x0: x, y0: y, x1: x + w, y1: y + h };
            surfaces.push(self.object(shape, &mut random));
        }
        for _ in 0..ELLIPSES {
            let (rx, ry) = (random.between(0.05, 0.14), random.between(0.06, 0.16));
            let (x, y) = (random.between(rx, 1.0 - rx), random.between(ry, 1.0 - ry));
            surfaces.push(self.object(Shape::Ellipse { x, y, rx, ry }, &mut random));
        }
        for _ in 0..BARS {
            let (x, y0) = (random.between(0.05, 0.95), random.between(0.0, 0.4));
            let shape = Shape::Bar {
                x,
                lean: random.between(-0.15, 0.15),
                half_width: random.between(1.0, 2.5) / self.width as f64,
                y0,
                y1: y0 + random.between(0.3, 0.6),
            };
            let near = self.disparity(random.between(0.5, 0.95));
            surfaces.push(self.surface(shape, Plane { at_origin: near, per_x: 0.0, per_y: 0.0 }, &mut random));
        }
        surfaces
    }

    /// A floor that comes nearer towards the bottom of the image.
    fn background(&self, random: &mut Random) -> Surface {
        let (top, bottom) = (self.disparity(random.between(0.02, 0.08)), self.disparity(random.between(0.2, 0.3)));
        let plane = Plane { at_origin: top, per_x: 0.0, per_y: (bottom - top) / self.height as f64 };
        self.surface(Shape::Everywhere, plane, random)
    }

    /// Half of the objects are frontal, half slanted in both directions; none leaves the range.
    fn object(&self, shape: Shape, random: &mut Random) -> Surface {
        let near = random.between(0.35, 0.85);
        let slanted = random.unit() < 0.5;
        let tilt = |random: &mut Random, side: usize| {
            let reach = self.disparity(0.15) - self.disparity(0.0);
            // At most `reach` over the image's side, and never so steep that the surface turns away from a view.
            (random.between(-1.0, 1.0) * reach / side as f64).clamp(-MAX_TILT, MAX_TILT)
        };
        let (per_x, per_y) = if slanted { (tilt(random, self.width), tilt(random, self.height)) } else { (0.0, 0.0) };
        let (cx, cy) = shape.centre();
        let at_origin = self.disparity(near) - per_x * cx * self.width as f64 - per_y * cy * self.height as f64;
        self.surface(shape, Plane { at_origin, per_x, per_y }, random)
    }

    fn surface(&self, shape: Shape, plane: Plane, random: &mut Random) -> Surface {
        let texture = Texture {
            seed: random.next(),
            brightness: random.between(80.0, 170.0),
            contrast: random.between(40.0, 80.0),
        };
        Surface { shape, plane, texture, width: self.width as f64, height: self.height as f64 }
    }

    /// The disparity at a share of the range.
    fn disparity(&self, share: f64) -> f64 {
        f64::from(self.min_disparity) + share * f64::from(self.disparities - 1)
    }
}

const BOXES: usize = 5;
const ELLIPSES: usize = 3;
const BARS: usize = 4;

/// Pixels of disparity per pixel; 1 would be seen edge-on from the right.
const MAX_TILT: f64 = 0.3;

/// Keeps the noise independent of the surfaces' random numbers.
const NOISE_STREAM: u64 = 0x6e6f_6973_6521_0001;

#[derive(Clone, Copy)]
enum View {
    Left,
    Right,
}

/// A disparity that is linear in the left image's pixel coordinates.
struct Plane {
    at_origin: f64,
    per_x: f64,
    per_y: f64,
}

impl Plane {
    fn disparity(&self, x: f64, y: f64) -> f64 {
        self.at_origin + self.per_x * x + self.per_y * y
    }

    /// The left column of the surface point that this view sees at column `x`: for the right view the
    /// solution of `x = left - disparity(left, y)`.
    fn left_column(&self, view: View, x: f64, y: f64) -> f64 {
        match view {
            View::Left => x,
            View::Right => (x + self.at_origin + self.per_y * y) / (1.0 - self.per_x),
        }
    }
}

/// An outline on the surface, in shares of the left image's width and height.
enum Shape {
    Everywhere,
    Box { x0: f64, y0: f64, x1: f64, y1: f64 },
    Ellipse { x: f64, y: f64, rx: f64, ry: f64 },
    Bar { x: f64, lean: f64, half_width: f64, y0: f64, y1: f64 },
}

impl Shape {
    fn contains(&self, px: f64, py: f64) -> bool {
        match *self {
            Self::Everywhere => true,
            Self::Box { x0, y0, x1, y1 } => (x0..x1).contains(&px) && (y0..y1).contains(&py),
            Self::Ellipse { x, y, rx, ry } => {
                let (dx, dy) = ((px - x) / rx, (py - y) / ry);
                dx * dx + dy * dy < 1.0
            }
            Self::Bar { x, lean, half_width, y0, y1 } => {
                (y0..y1).contains(&py) && (px - x - lean * (py - y0)).abs() < half_width
            }
        }
    }

    fn centre(&self) -> (f64, f64) {
        match *self {
            Self::Everywhere => (0.5, 0.5),
            Self::Box { x0, y0, x1, y1 } => ((x0 + x1) / 2.0, (y0 + y1) / 2.0),
            Self::Ellipse { x, y, .. } => (x, y),
            Self::Bar { x, lean, y0, y1, .. } => (x + lean * (y1 - y0) / 2.0, (y0 + y1) / 2.0),
        }
    }
}

struct Surface {
    shape: Shape,
    plane: Plane,
    texture: Texture,
    width: f64,
    height: f64,
}

struct Hit {
    disparity: f64,
    intensity: f64,
}

/// What a view sees at a pixel: of the surfaces there, the one with the largest disparity.
fn nearest(surfaces: &[Surface], view: View, x: f64, y: f64) -> Hit {
    let mut best: Option<(f64, f64, &Surface)> = None;
    for surface in surfaces {
        let left = surface.plane.left_column(view, x, y);
        if !surface.shape.contains(left / surface.width, y / surface.height) {
            continue;
        }
        let disparity = surface.plane.disparity(left, y);
        if best.is_none_or(|(nearest, ..)| disparity > nearest) {
            best = Some((disparity, left, surface));
        }
    }
    let (disparity, left, surface) = best.expect("the background is everywhere");
    Hit { disparity, intensity: surface.texture.at(left, y) }
}

/// Value noise on several lattices, painted onto a surface in left-image coordinates.
struct Texture {
    seed: u64,
    brightness: f64,
    contrast: f64,
}

impl Texture {
    /// Lattice spacings in pixels and their weights, which sum to one; nothing finer than two pixels, which
    /// sampling between pixels would not preserve.
    const OCTAVES: [(f64, f64); 4] = [(2.5, 0.3), (6.0, 0.3), (17.0, 0.25), (61.0, 0.15)];

    fn at(&self, x: f64, y: f64) -> f64 {
        let sum: f64 = Self::OCTAVES
            .iter()
            .zip(0u64..)
            .map(|(&(cell, weight), octave)| weight * self.lattice(octave, x / cell, y / cell))
            .sum();
        // The sum of several octaves rarely leaves the middle of its range.
        self.brightness + 2.0 * self.contrast * (2.0 * sum - 1.0)
    }

    fn lattice(&self, octave: u64, x: f64, y: f64) -> f64 {
        let (x0, y0) = (x.floor(), y.floor());
        let corner =
            |i: f64, j: f64| Random::at(self.seed, &[octave, (x0 + i) as i64 as u64, (y0 + j) as i64 as u64]).unit();
        let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
        let (tx, ty) = (smooth(x - x0), smooth(y - y0));
        let top = corner(0.0, 0.0) * (1.0 - tx) + corner(1.0, 0.0) * tx;
        let bottom = corner(0.0, 1.0) * (1.0 - tx) + corner(1.0, 1.0) * tx;
        top * (1.0 - ty) + bottom * ty
    }
}

/// A counter-based generator (splitmix64): lattice points need random access, and the bytes of a scene must
/// not change with a library's version.
struct Random(u64);

impl Random {
    fn at(seed: u64, key: &[u64]) -> Self {
        Self(key.iter().fold(seed, |state, &k| mix(state ^ k)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// Uniform in `0..1`.
    fn unit(&mut self) -> f64 {
        /// A double's mantissa holds 53 bits.
        const MANTISSA: u32 = 53;
        (self.next() >> (u64::BITS - MANTISSA)) as f64 / (1u64 << MANTISSA) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// Splitmix64's step (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::non_occluded;

    #[test]
    fn truth_lies_in_the_range_at_any_size() {
        for (width, height, min_disparity, disparities) in
            [(1, 1, 0, 1), (8, 3, -5, 4), (97, 61, -20, 33), (40, 30, 7, 100), (3, 200, 0, 1024)]
        {
            for seed in 0..8 {
                let spec = SceneSpec { width, height, min_disparity, disparities, seed, noise: 3 };
                let scene = spec.render().unwrap();
                assert_eq!((scene.left.size(), scene.right.size()), ((width, height), (width, height)));
                let range = min_disparity as f32..=(min_disparity + disparities as i32 - 1) as f32;
                for truth in [&scene.truth_left, &scene.truth_right] {
                    assert!(truth.iter().all(|d| range.contains(d)), "{spec:?}: {truth:?}");
                }
            }
        }
        assert!(SceneSpec { width: 0, ..Default::default() }.render().is_err());
        assert!(SceneSpec { disparities: 0, ..Default::default() }.render().is_err());
    }

    #[test]
    fn both_views_show_the_same_surfaces_where_the_truth_says_so() {
        let scene = SceneSpec { width: 320, height: 200, disparities: 40, seed: 5, noise: 0, min_disparity: -3 }
            .render()
            .unwrap();
        let (Gray::U8(left), Gray::U8(right)) = (&scene.left, &scene.right) else { panic!("8 bits") };
        let visible = non_occluded(&scene.truth_left, &scene.truth_right);
        let (mut checked, mut far) = (0, 0);
        for (x, y, d) in scene.truth_left.enumerate_pixels().map(|(x, y, d)| (x, y, f64::from(d.0[0]))) {
            let column = f64::from(x) - d;
            if !visible[y as usize * 320 + x as usize] || !(0.0..=318.0).contains(&column) {
                continue;
            }
            let (floor, t) = (column.floor(), column - column.floor());
            let at = |c: f64| f64::from(right.get_pixel(c as u32, y).0[0]);
            let seen = at(floor) * (1.0 - t) + at(floor + 1.0) * t;
            checked += 1;
            far += usize::from((seen - f64::from(left.get_pixel(x, y).0[0])).abs() > 20.0);
        }
        assert!(checked > 320 * 200 / 2, "{checked} visible pixels");
        assert!(far * 50 < checked, "{far} of {checked} pixels do not look alike");
        let occluded = visible.iter().filter(|v| !**v).count();
        assert!(occluded > 320 * 200 / 50, "only {occluded} occluded pixels");
    }

    #[test]
    fn a_seed_gives_the_same_bytes_everywhere() {
        let spec = SceneSpec { width: 160, height: 120, ..Default::default() };
        let digest = |spec: &SceneSpec| {
            let Gray::U8(left) = spec.render().unwrap().left else { panic!("8 bits") };
            left.iter().fold(0, |h, &v| mix(h ^ u64::from(v)))
        };
        assert_eq!(digest(&spec), digest(&spec.clone()));
        assert_ne!(digest(&spec), digest(&SceneSpec { seed: 2, ..spec.clone() }));
        assert_eq!(digest(&spec), GOLDEN, "{:#x}", digest(&spec));
    }

    const GOLDEN: u64 = 0x06318ec461eee49e;
}
