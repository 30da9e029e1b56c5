//! `stereo stream`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use stereo_host::{
    DeviceCode, Error, Params, Result,
    io::{self, Encoding, Gray},
    pipeline::{Pipeline, PipelineOptions, Summary},
};

use crate::{
    args::{Size, StreamCommand},
    frames::{self, Frames},
    interrupt,
    output::{self, Lossy},
};

/// What `--json` prints.
#[derive(Serialize)]
struct StreamReport<'a> {
    source: &'a str,
    width: usize,
    height: usize,
    backend: &'static str,
    device: String,
    /// The PTX of a GPU.
    device_code: Option<DeviceCode>,
    /// The mean time that a frame was worked on, without waiting, in milliseconds.
    work_ms: f64,
    #[serde(flatten)]
    summary: Summary,
    latest_only: bool,
    depth: usize,
    output: Option<Lossy<'a>>,
    params: &'a Params,
}

/// Digits of a map's number in its file name.
const DIGITS: usize = 6;

pub fn run(args: &StreamCommand) -> Result<()> {
    let params = args.matching.to_params();
    params.validate()?;
    let maps =
        args.out.as_deref().map(|folder| Maps::new(folder, args.encoding.unwrap_or(Encoding::Pfm))).transpose()?;

    // The first pair tells the size.
    let Frames { mut pairs, count } = frames::open(args)?;
    let first = pairs.next().transpose()?.ok_or_else(|| Error::Format {
        path: args.source.clone().into(),
        reason: "no frame: the source is empty".to_owned(),
    })?;
    let (width, height) = first.0.size();
    let options = PipelineOptions { depth: args.depth, latest_only: args.latest, pin_solver: args.pin };
    let pipeline = Pipeline::new(width, height, &params, &args.run.to_options_for_many(args.run.timing), &options)?;
    tracing::debug!("{params:?}");

    let bar = match count {
        Some(count) => output::progress(count, "frames"),
        None => output::spinner(format!("streaming {} frames", Size { width, height })),
    };
    let (mut backend, mut device, mut device_code, mut work_ms) = ("", String::new(), None, 0.0);
    let mut stages = String::new();
    let summary = pipeline.run(std::iter::once(Ok(first)).chain(pairs), |frame| {
        interrupt::check()?;
        if let Some(maps) = &maps {
            let path = maps.path(frame.index);
            interrupt::whole(|| frame.map.save_as(&path, maps.encoding))?;
        }
        if args.run.timing {
            stages = output::stage_table(&frame.report);
        }
        work_ms += frame.report.total_ms;
        (backend, device, device_code) = (frame.report.backend, frame.report.device, frame.report.device_code);
        bar.inc(1);
        Ok(())
    })?;
    bar.finish_and_clear();

    let report = StreamReport {
        source: &args.source,
        width,
        height,
        backend,
        device,
        device_code,
        work_ms: work_ms / summary.frames.max(1) as f64,
        summary,
        latest_only: args.latest,
        depth: args.depth,
        output: args.out.as_deref().map(Lossy),
        params: &params,
    };
    if args.json { output::print_json(&report) } else { output::print(&(report.text() + &stages)) }
}

/// Where the maps go.
struct Maps {
    folder: PathBuf,
    encoding: Encoding,
    extension: &'static str,
}

impl Maps {
    /// Makes the folder and refuses names that cannot be written, before any work.
    fn new(folder: &Path, encoding: Encoding) -> Result<Self> {
        let extension = if encoding == Encoding::Pfm { "pfm" } else { "png" };
        std::fs::create_dir_all(folder).map_err(|source| Error::File {
            path: folder.to_owned(),
            action: "cannot make the folder",
            source,
        })?;
        let maps = Self { folder: folder.to_owned(), encoding, extension };
        encoding.check_path(&maps.path(0))?;
        io::check_target(&maps.path(0))?;
        Ok(maps)
    }

    fn path(&self, index: u64) -> PathBuf {
        self.folder.join(format!("{index:0DIGITS$}.{}", self.extension))
    }
}

impl StreamReport<'_> {
    fn text(&self) -> String {
        let Summary { frames, dropped, seconds, frames_per_second, latency } = self.summary;
        format!(
            "{frames} frames of {}x{} in {seconds:.3} s on {} ({}): {frames_per_second:.1} frames/s, {dropped} dropped\n\
             work {:.3} ms a frame; latency, ms: min {:.3}, median {:.3}, 95 % {:.3}, 99 % {:.3}, max {:.3}\n",
            self.width,
            self.height,
            self.backend,
            self.device,
            self.work_ms,
            latency.min_ms,
            latency.p50_ms,
            latency.p95_ms,
            latency.p99_ms,
            latency.max_ms,
        ) + &output::code_line(self.device_code.as_ref())
    }
}

/// A pair as it travels.
pub type Pair = (Gray, Gray);
