//! The arguments that several commands have.

use std::{fmt, str::FromStr};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde::de::DeserializeOwned;
use stereo_host::{
    Algorithm, Backend, Census, Compat, Error, MasdaParams, Options, Params, Paths, PtxSource, Scene, Speckle, Tuning,
};

/// What is computed. A flag that is not given keeps the preset's value.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Matching")]
pub struct MatchArgs {
    /// What is computed: semi-global matching, or one-to-one assignment on each row [default: sgm]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(["sgm", "masda"]))]
    pub algorithm: Option<String>,
    /// Disparities to search, 1 to 1024 [default: 128; a scene's own where it has one]
    #[arg(short, long, value_name = "D")]
    pub disparities: Option<u32>,
    /// The smallest disparity to search, in pixels [default: 0]
    #[arg(short, long, value_name = "M", allow_negative_numbers = true)]
    pub min_disparity: Option<i32>,
    /// Path directions [default: 8]
    #[arg(long, value_name = "N", value_parser = named::<Paths>(["4", "8"]))]
    pub paths: Option<Paths>,
    /// Penalty for a disparity step of one [default: 10]
    #[arg(long, value_name = "P1")]
    pub p1: Option<u16>,
    /// Penalty for a larger step; with the largest census cost at most 255 [default: 120]
    #[arg(long, value_name = "P2")]
    pub p2: Option<u16>,
    /// Lower P2 at the left image's edges [default: true; false with --compat libsgm]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub adaptive_p2: Option<bool>,
    /// The census descriptor [default: 7x7; symmetric9x7 with --compat libsgm]
    #[arg(long, value_name = "KIND", value_parser = named::<Census>(["7x7", "9x7", "symmetric9x7"]))]
    pub census: Option<Census>,
    /// How clearly the best disparity must win, 0 to 1; 1 switches the check off [default: 0.95]
    #[arg(long, value_name = "U", allow_hyphen_values = true)]
    pub uniqueness: Option<f32>,
    /// Whole disparities, without 4 fractional bits
    #[arg(long)]
    pub no_subpixel: bool,
    /// Largest difference between left and right map in pixels; negative switches the check off [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub lr_max_diff: Option<i32>,
    /// Make pixels of intensity 0 in the left image invalid
    #[arg(long)]
    pub mask_zero: bool,
    /// Make regions of at most this many pixels invalid
    #[arg(long, value_name = "PIXELS")]
    pub speckle_size: Option<u32>,
    /// Neighbours of one region differ by at most this many pixels [default: 1]
    #[arg(long, value_name = "N", requires = "speckle_size")]
    pub speckle_diff: Option<u32>,
    /// Fill invalid pixels from their row
    #[arg(long)]
    pub fill: bool,
    /// The preset of another matcher: libsgm gives libSGM's bytes
    #[arg(long, value_name = "WHOSE", value_parser = named::<Compat>(["none", "libsgm"]))]
    pub compat: Option<Compat>,
    #[command(flatten)]
    pub masda: MasdaArgs,
}

/// What `--algorithm masda` alone has. A flag that is not given keeps the default.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Matching with masda")]
pub struct MasdaArgs {
    /// Share of the census in the score, between 0 and 1
    #[arg(long, requires = "algorithm", value_name = "SHARE")]
    pub w_c: Option<f64>,
    /// Hamming distance at which the census score falls to 1/e
    #[arg(long, requires = "algorithm", value_name = "BITS")]
    pub lambda_c: Option<f64>,
    /// Grey levels at which the intensity score falls to 1/e
    #[arg(long, requires = "algorithm", value_name = "LEVELS")]
    pub lambda_a: Option<f64>,
    /// The filter's spatial scale in pixels
    #[arg(long, requires = "algorithm", value_name = "PIXELS")]
    pub sigma_s: Option<f64>,
    /// The filter's range scale in grey levels
    #[arg(long, requires = "algorithm", value_name = "LEVELS")]
    pub sigma_r: Option<f64>,
    /// Score of leaving a pixel unmatched, of 16384
    #[arg(long, requires = "algorithm", value_name = "SCORE", allow_negative_numbers = true)]
    pub theta: Option<i32>,
    /// Smallest belief of an accepted match, of 16384
    #[arg(long, requires = "algorithm", value_name = "BELIEF", allow_negative_numbers = true)]
    pub margin: Option<i32>,
    /// Message passing iterations
    #[arg(long, requires = "algorithm", value_name = "N")]
    pub messages: Option<u32>,
}

impl MasdaArgs {
    fn to_masda(&self) -> MasdaParams {
        let preset = MasdaParams::default();
        MasdaParams {
            w_c: self.w_c.unwrap_or(preset.w_c),
            lambda_c: self.lambda_c.unwrap_or(preset.lambda_c),
            lambda_a: self.lambda_a.unwrap_or(preset.lambda_a),
            sigma_s: self.sigma_s.unwrap_or(preset.sigma_s),
            sigma_r: self.sigma_r.unwrap_or(preset.sigma_r),
            theta: self.theta.unwrap_or(preset.theta),
            margin: self.margin.unwrap_or(preset.margin),
            iterations: self.messages.unwrap_or(preset.iterations),
        }
    }
}

/// `--speckle-size` alone: neighbours belong together up to a step of one, as `--p1` has it.
const DEFAULT_SPECKLE_DIFF: u32 = 1;

impl MatchArgs {
    /// The preset, changed by the flags that were given. The matcher validates the result.
    pub fn to_params(&self) -> Params {
        let preset = match self.compat.unwrap_or_default() {
            Compat::None => Params::default(),
            Compat::LibSgm => Params::libsgm(),
        };
        let speckle = self
            .speckle_size
            .map(|max_size| Speckle { max_size, max_diff: self.speckle_diff.unwrap_or(DEFAULT_SPECKLE_DIFF) });
        let algorithm = match self.algorithm.as_deref() {
            Some("masda") => Algorithm::Masda(self.masda.to_masda()),
            _ => preset.algorithm,
        };
        Params {
            algorithm,
            disparities: self.disparities.unwrap_or(preset.disparities),
            min_disparity: self.min_disparity.unwrap_or(preset.min_disparity),
            paths: self.paths.unwrap_or(preset.paths),
            p1: self.p1.unwrap_or(preset.p1),
            p2: self.p2.unwrap_or(preset.p2),
            adaptive_p2: self.adaptive_p2.unwrap_or(preset.adaptive_p2),
            census: self.census.unwrap_or(preset.census),
            uniqueness: self.uniqueness.unwrap_or(preset.uniqueness),
            subpixel: preset.subpixel && !self.no_subpixel,
            lr_max_diff: self.lr_max_diff.unwrap_or(preset.lr_max_diff),
            mask_zero: preset.mask_zero || self.mask_zero,
            speckle: speckle.or(preset.speckle),
            fill: preset.fill || self.fill,
            ..preset
        }
    }

    /// As [`MatchArgs::to_params`], with the scene's own range where no flag gives another.
    pub fn to_params_for(&self, scene: &Scene) -> Params {
        let with_range = Self {
            disparities: self.disparities.or(Some(scene.disparities)),
            min_disparity: self.min_disparity.or(Some(scene.min_disparity)),
            ..self.clone()
        };
        with_range.to_params()
    }
}

/// Where it is computed; no flag here changes a byte of the map.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Running")]
pub struct RunArgs {
    /// Where to run; auto takes the best one available (see `stereo info`)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = backends())]
    pub backend: Backend,
    /// CPU threads, 1 to 1024 [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Which GPU, by the driver's number [default: the first]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Kernels and streams on a GPU: auto (the fastest, measured once and remembered), cached (the one
    /// remembered, else plain), plain, or JSON as `stereo tune` prints it, or @FILE with that
    /// [default: auto for bench and stream, else cached]
    #[arg(long, value_name = "PLAN", value_parser = parse_plan)]
    pub plan: Option<Tuning>,
    /// Measure and show every stage
    #[arg(long)]
    pub timing: bool,
}

fn parse_plan(text: &str) -> Result<Tuning, String> {
    let tuning = match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|error| format!("{file}: cannot read: {error}"))?.parse(),
        None => text.parse(),
    };
    tuning.map_err(|error: Error| error.to_string())
}

impl RunArgs {
    /// For a command that matches once per matcher: measuring plans would take longer than it gains.
    pub fn to_options(&self, timing: bool) -> Options {
        self.with_tuning(timing, Tuning::Cached)
    }

    /// As [`RunArgs::to_options`], for a command that uses its matcher for many frames.
    pub fn to_options_for_many(&self, timing: bool) -> Options {
        self.with_tuning(timing, Tuning::Auto)
    }

    fn with_tuning(&self, timing: bool, usual: Tuning) -> Options {
        let tuning = self.plan.unwrap_or(usual);
        Options {
            backend: self.backend,
            threads: self.threads,
            device: self.device,
            ptx: PtxSource::Environment,
            tuning,
            timing,
        }
    }
}

/// Width and height, written as `640x480`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        sides.map(|(width, height)| Self { width, height }).ok_or_else(|| "expected a size like 640x480".to_owned())
    }
}

/// Values by the names that the library's reports give them.
pub fn named<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.into_iter().map(clap::builder::PossibleValue::new))
        .try_map(|name| serde_json::from_value(name.into()))
}

fn backends() -> impl TypedValueParser<Value = Backend> {
    let names = [Backend::Auto].into_iter().chain(Backend::ALL).map(Backend::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Backend>().map_err(|e: Error| e.to_string()))
}
