//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args, Parser, Subcommand, ValueHint,
    builder::{OsStringValueParser, TypedValueParser},
};
use stereo_host::{Paths, PtxSource, io::Encoding, pipeline::PipelineOptions};

use self::shared::named;
pub use self::shared::{MatchArgs, RunArgs, Size};
use crate::frames::{FrameLayout, PixelFormat};

mod shared;

/// Dense stereo matching of rectified pairs.
#[derive(Debug, Parser)]
#[command(name = "stereo", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// More detail on standard error; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Errors only on standard error: no messages, no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stereo demo --out out                                 a rendered pair, matched and scored
  stereo match left.png right.png -o map.pfm --fill     a map of float disparities without holes
  stereo eval --data ../shared/data/middlebury          scores against ground truth
  stereo bench --size 1280x720 --disparities 128        how fast it is here
  stereo tune --size 1280x720 --disparities 128         which GPU kernels are fastest for it
  stereo info                                           what can run here, and why not the rest

Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Match a rectified pair into a disparity map
    Match(MatchCommand),
    /// Render a pair, match it, and write inputs, map, previews and score
    Demo(DemoCommand),
    /// Score the matcher on scenes with ground truth
    Eval(EvalCommand),
    /// Time the matcher on a rendered pair
    Bench(BenchCommand),
    /// Match a sequence of pairs, several frames in flight
    Stream(StreamCommand),
    /// Measure which kernels and streams are fastest on this GPU
    Tune(TuneCommand),
    /// Show the version, the CPU's features and the backends
    Info(InfoCommand),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  stereo completions bash > ~/.local/share/bash-completion/completions/stereo")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stereo match left.png right.png -o map.pfm
  stereo match left.png right.png -o map.png --encoding kitti --color
  stereo match l.pgm r.pgm -o map.tif --encoding raw16 --disparities 256 --min-disparity -32
  stereo match left.png right.png -o map.png --compat libsgm --disparities 64 --encoding raw16
  stereo match left.png right.png -o map.pfm --backend cpu --json | jq .stages")]
pub struct MatchCommand {
    /// The left image: PNG, PGM/PPM, JPEG, TIFF or BMP, 8 or 16 bits, grey or colour
    #[arg(value_hint = ValueHint::FilePath)]
    pub left: PathBuf,
    /// The right image, of the same size and depth
    #[arg(value_hint = ValueHint::FilePath)]
    pub right: PathBuf,
    /// The map to write: .pfm, .png, .tif or .tiff
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// How the map is stored: pfm; kitti (16 bits, disparity times 256, 0 invalid); middlebury=SCALE (8 bits,
    /// disparity times SCALE, 0 invalid); raw16 (the fixed-point values, two's complement)
    /// [default: pfm for .pfm, kitti for .png and .tif]
    #[arg(long, value_name = "ENCODING")]
    pub encoding: Option<Encoding>,
    /// Also write a coloured preview with a legend [default file: OUT's name with _color.png]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    pub color: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub matching: MatchArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Write a report for machines to standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stereo demo --out out
  stereo demo --out out --size 320x240 --disparities 32 --seed 7 --fill")]
pub struct DemoCommand {
    /// The folder to write to; made when it does not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// The images' size
    #[arg(long, value_name = "WxH", default_value_t = Size { width: 640, height: 480 })]
    pub size: Size,
    /// Chooses the scene
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub matching: MatchArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Write a report for machines to standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A score counts non-occluded pixels: those where both views' ground truth is known and agrees within a pixel.
  dense bad-T   share without an estimate or off by more than T pixels
  given bad-T   the same among the pixels that have an estimate
  density       share that has an estimate
  error         mean distance from the truth, in pixels, where there is an estimate

Examples:
  stereo eval --data ../shared/data/middlebury --fill
  stereo eval --data ../shared/data/middlebury/Teddy --paths 4 --json
  stereo eval --left l.png --right r.png --truth-left dl.pfm --truth-right dr.pfm --disparities 256")]
pub struct EvalCommand {
    /// A folder of scenes, or one scene's folder: im2, im6, disp2, disp6 (truth times 4, 60 disparities) or
    /// view1, view5, disp1, disp5 (truth times 3, 80 disparities)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "left")]
    #[arg(conflicts_with_all = ["left", "right", "truth_left", "truth_right"])]
    pub data: Option<PathBuf>,
    /// One scene's left image, instead of --data
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(requires_all = ["right", "truth_left", "truth_right"])]
    pub left: Option<PathBuf>,
    /// Its right image
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "left")]
    pub right: Option<PathBuf>,
    /// Its left view's ground truth
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "left")]
    pub truth_left: Option<PathBuf>,
    /// Its right view's ground truth
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "left")]
    pub truth_right: Option<PathBuf>,
    /// How that ground truth is stored: pfm, kitti or middlebury=SCALE [default: by extension, as for match]
    #[arg(long, value_name = "ENCODING", requires = "left")]
    pub truth_encoding: Option<Encoding>,
    #[command(flatten)]
    pub matching: MatchArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Write the scores for machines (shares from 0 to 1) instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stereo bench --size 1920x1080 --disparities 128 --paths 8 --iterations 50
  stereo bench --size 1920x1080 --disparities 128 --backend cuda --plan plain
  stereo bench --size 1920x1080 --compare-ptx embedded stereo-host/ptx/rust-cuda
  stereo bench --size 640x480 --disparities 64 --backend cpu --threads 1 --json")]
pub struct BenchCommand {
    /// The images' size
    #[arg(long, value_name = "WxH", default_value_t = Size { width: 1920, height: 1080 })]
    pub size: Size,
    /// How often to match; the stages are timed in as many runs of their own
    #[arg(short, long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Runs before the first measured one
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub warmup: u32,
    /// Compare the GPU code of two folders of stereo_sm*.ptx, or `embedded`, the one in this program (`./embedded` is
    /// a folder): run in turn, with one plan, A's unless --plan gives one. A byte of difference, to the CPU's map as
    /// well, is exit code 1
    #[arg(long, num_args = 2, action = clap::ArgAction::Set, value_names = ["A", "B"])]
    #[arg(value_hint = ValueHint::DirPath, value_parser = OsStringValueParser::new().map(ptx_source))]
    pub compare_ptx: Option<Vec<PtxSource>>,
    #[command(flatten)]
    pub matching: MatchArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Write the result for machines instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stereo stream sequence --out maps                     sequence/left and sequence/right, pairs by name
  stereo stream l_%04d.png --right r_%04d.png --fill    numbered files, from 0 on
  stereo stream sequence --repeat 20 --algorithm masda --disparities 60 --json
  ffmpeg -i camera.mkv -f rawvideo -pix_fmt gray - | stereo stream - --size 640x480 --latest

Latency is the time from a frame's arrival to its map, waiting included.")]
pub struct StreamCommand {
    /// A folder with the folders left and right (or image_0 and image_1, image_2 and image_3, cam0 and cam1); a pattern of
    /// numbered left images, with --right; or - for raw frames on standard input, as `ffmpeg -f rawvideo` writes them
    #[arg(value_name = "DIR|PATTERN|-", value_hint = ValueHint::AnyPath)]
    pub source: String,
    /// The pattern of the right images
    #[arg(long, value_name = "PATTERN")]
    pub right: Option<String>,
    /// The first number of the patterns
    #[arg(long, value_name = "N", default_value_t = 0, requires = "right")]
    pub start: u64,
    /// Go over an image sequence this often
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Raw frames: the size of one view
    #[arg(long, value_name = "WxH")]
    pub size: Option<Size>,
    /// Raw frames: how a pixel is stored [default: gray]
    #[arg(long, value_name = "FORMAT")]
    pub pixel_format: Option<PixelFormat>,
    /// Raw frames: where the two views are [default: side-by-side]
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<FrameLayout>,
    /// Write every map to this folder, named by the frame's number; made when it does not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// How the maps are stored, as for match [default: pfm]
    #[arg(long, value_name = "ENCODING", requires = "out")]
    pub encoding: Option<Encoding>,
    /// Replace a frame that waits by a newer one instead of making the source wait: for live use
    #[arg(long)]
    pub latest: bool,
    /// Frames that may wait between two stages
    #[arg(long, value_name = "N", default_value_t = PipelineOptions::default().depth)]
    pub depth: usize,
    /// Bind masda's solver threads to cores; measure whether it helps
    #[arg(long)]
    pub pin: bool,
    #[command(flatten)]
    pub matching: MatchArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Write the result for machines instead of the text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every match with `--plan auto` or `cached` then uses the result for this size, until the GPU, its driver or this
program changes. STEREO_CACHE_DIR names another folder for the results than the user's cache folder.

Examples:
  stereo tune --size 1920x1080 -d 128
  stereo tune --size 1280x720 -d 64 --paths 4 --pin plan.json
  stereo match left.png right.png -o map.pfm --plan @plan.json
  stereo tune --clear")]
pub struct TuneCommand {
    /// The images' size
    #[arg(long, value_name = "WxH", default_value_t = Size { width: 1920, height: 1080 })]
    pub size: Size,
    /// Disparities to search, 1 to 1024 [default: 128]
    #[arg(short, long, value_name = "D")]
    pub disparities: Option<u32>,
    /// Path directions [default: 8]
    #[arg(long, value_name = "N", value_parser = named::<Paths>(["4", "8"]))]
    pub paths: Option<Paths>,
    /// Which GPU, by the driver's number [default: the first]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Also write the plan to a file, for `--plan @FILE`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pin: Option<PathBuf>,
    /// Write everything for machines
    #[arg(long)]
    pub json: bool,
    /// Forget every result instead of measuring
    #[arg(long, exclusive = true)]
    pub clear: bool,
}

#[derive(Debug, Args)]
pub struct InfoCommand {
    /// Write it for machines
    #[arg(long)]
    pub json: bool,
}

fn ptx_source(name: OsString) -> PtxSource {
    if name == "embedded" { PtxSource::Embedded } else { PtxSource::Folder(name.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use stereo_host::{Algorithm, Census, MasdaParams, Params, Speckle};

    fn params(flags: &str) -> Params {
        let line = format!("stereo match l.png r.png -o m.pfm {flags}");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Match(args) = cli.command else { panic!("match") };
        args.matching.to_params()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_flag_is_the_preset() {
        assert_eq!(params(""), Params::default());
        assert_eq!(params("--compat libsgm"), Params::libsgm());
        assert_eq!(params("--compat none"), Params::default());
    }

    #[test]
    fn every_flag_reaches_its_parameter() {
        let flags = "--disparities 64 --min-disparity -5 --paths 4 --p1 3 --p2 99 --adaptive-p2 false --census 9x7 \
                     --uniqueness 0.9 --no-subpixel --lr-max-diff -1 --mask-zero --speckle-size 50 --speckle-diff 2 --fill";
        let expected = Params {
            disparities: 64,
            min_disparity: -5,
            paths: Paths::Four,
            p1: 3,
            p2: 99,
            adaptive_p2: false,
            census: Census::Window9x7,
            uniqueness: 0.9,
            subpixel: false,
            lr_max_diff: -1,
            mask_zero: true,
            speckle: Some(Speckle { max_size: 50, max_diff: 2 }),
            fill: true,
            ..Params::default()
        };
        assert_eq!(params(flags), expected);
        let changed = params("--compat libsgm --adaptive-p2 true --census 7x7");
        assert_eq!(changed, Params { adaptive_p2: true, census: Census::Window7x7, ..Params::libsgm() });
    }

    #[test]
    fn masda_flags_reach_their_parameters() {
        assert_eq!(params("--algorithm sgm"), Params::default());
        assert_eq!(params("--algorithm masda"), Params::masda());
        let flags = "--algorithm masda --w-c 0.5 --lambda-c 7 --lambda-a 9.5 --sigma-s 3 --sigma-r 4 --theta -2 --margin -1 \
                     --messages 5 --disparities 60";
        let masda = MasdaParams {
            w_c: 0.5,
            lambda_c: 7.0,
            lambda_a: 9.5,
            sigma_s: 3.0,
            sigma_r: 4.0,
            theta: -2,
            margin: -1,
            iterations: 5,
        };
        let algorithm = Algorithm::Masda(masda);
        assert_eq!(params(flags), Params { algorithm, disparities: 60, ..Params::default() });
        assert!(Cli::try_parse_from("stereo match l r -o m.pfm --theta 5".split_whitespace()).is_err());
    }

    #[test]
    fn two_ptx_sources_are_compared() {
        let parse = |flags: &str| {
            Cli::try_parse_from(["stereo", "bench"].into_iter().chain(flags.split_whitespace())).map(|cli| {
                let Command::Bench(args) = cli.command else { panic!("bench") };
                args.compare_ptx
            })
        };
        assert_eq!(parse("").unwrap(), None);
        let folder = |name: &str| PtxSource::Folder(name.into());
        assert_eq!(parse("--compare-ptx embedded a/b").unwrap(), Some(vec![PtxSource::Embedded, folder("a/b")]));
        assert_eq!(parse("--compare-ptx ./embedded a").unwrap(), Some(vec![folder("./embedded"), folder("a")]));
        for bad in ["--compare-ptx", "--compare-ptx a", "--compare-ptx a b c", "--compare-ptx a b --compare-ptx a b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_the_reports() {
        for census in ["7x7", "9x7", "symmetric9x7"] {
            let value = serde_json::to_value(params(&format!("--census {census}")).census).unwrap();
            assert_eq!(value, census);
        }
        for (text, size) in [("640x480", Some((640, 480))), ("640", None), ("x", None), ("-1x5", None), ("1x2x3", None)]
        {
            assert_eq!(text.parse::<Size>().ok().map(|s| (s.width, s.height)), size);
        }
    }
}
