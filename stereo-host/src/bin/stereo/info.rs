//! `stereo info`.

use std::path::PathBuf;

use serde::Serialize;
use stereo_host::{Backend, Error, PTX_DIR_VARIABLE, PtxImage, PtxSource, Result};

use crate::{args::InfoCommand, output};

/// What `--json` prints.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    target: String,
    threads: usize,
    cpu_features: Vec<&'static str>,
    /// What `--backend auto` takes.
    auto: &'static str,
    /// Where measured plans are kept.
    plan_folder: Option<PathBuf>,
    backends: Vec<BackendInfo>,
    device_code: DeviceCodeInfo,
}

/// The PTX that there is for GPUs.
#[derive(Serialize)]
struct DeviceCodeInfo {
    source: PtxSource,
    /// The environment variable that names the folder.
    variable: Option<&'static str>,
    images: Vec<PtxImage>,
    /// Why there are none.
    reason: Option<String>,
}

#[derive(Serialize)]
struct BackendInfo {
    name: &'static str,
    available: bool,
    /// Why not.
    reason: Option<String>,
}

pub fn run(args: &InfoCommand) -> Result<()> {
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        cpu_features: cpu_features(),
        auto: Backend::Auto.resolve().name(),
        plan_folder: stereo_host::cache_folder(),
        backends: Backend::ALL.into_iter().map(backend_info).collect(),
        device_code: device_code_info(),
    };
    if args.json { output::print_json(&info) } else { output::print(&info.text()) }
}

fn device_code_info() -> DeviceCodeInfo {
    let source = PtxSource::Environment.resolve();
    let variable = matches!(source, PtxSource::Folder(_)).then_some(PTX_DIR_VARIABLE);
    let (images, reason) = match PtxSource::Environment.list() {
        Ok(images) => (images, None),
        Err(error) => (Vec::new(), Some(reason(error))),
    };
    DeviceCodeInfo { source, variable, images, reason }
}

/// Why something is missing.
fn reason(error: Error) -> String {
    match error {
        Error::Unavailable { reason, .. } => reason,
        other => other.to_string(),
    }
}

fn backend_info(backend: Backend) -> BackendInfo {
    let reason = backend.availability().err().map(reason);
    BackendInfo { name: backend.name(), available: reason.is_none(), reason }
}

impl Info {
    fn text(&self) -> String {
        let features = if self.cpu_features.is_empty() { "none known".to_owned() } else { self.cpu_features.join(" ") };
        let mut text = format!(
            "stereo {} on {}, {} threads\nCPU features: {features}\nbackends (auto takes {}):\n",
            self.version, self.target, self.threads, self.auto
        );
        for backend in &self.backends {
            let state = match &backend.reason {
                None => "available".to_owned(),
                Some(reason) => format!("not available: {reason}"),
            };
            text += &format!("  {:10} {state}\n", backend.name);
        }
        text += &self.device_code.text();
        if let Some(folder) = &self.plan_folder {
            text += &format!("measured plans: {}\n", folder.display());
        }
        text
    }
}

impl DeviceCodeInfo {
    fn text(&self) -> String {
        let source = match self.variable {
            Some(_) => PtxSource::Environment.to_string(),
            None => self.source.to_string(),
        };
        if let Some(reason) = &self.reason {
            return format!("GPU code ({source}): {reason}\n");
        }
        if self.images.is_empty() {
            return format!("GPU code ({source}): none\n");
        }
        let mut text = format!("GPU code ({source}):\n");
        for PtxImage { code, needed_cuda: (cuda_major, cuda_minor), devices } in &self.images {
            let (isa_major, isa_minor) = code.isa;
            text += &format!(
                "  {:10} PTX {isa_major}.{isa_minor}, CUDA {cuda_major}.{cuda_minor} or newer, {}",
                format!("sm_{}", code.arch),
                code.compiler_name()
            );
            for device in devices {
                text += &format!("; GPU {device} runs it");
            }
            text += "\n";
        }
        text
    }
}

/// The vector instructions that CPU paths may use.
#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<&'static str> {
    // The macro takes literals only.
    [
        ("sse4.1", is_x86_feature_detected!("sse4.1")),
        ("popcnt", is_x86_feature_detected!("popcnt")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
        ("avx512vbmi", is_x86_feature_detected!("avx512vbmi")),
        ("avx512bitalg", is_x86_feature_detected!("avx512bitalg")),
        ("avx512vpopcntdq", is_x86_feature_detected!("avx512vpopcntdq")),
    ]
    .into_iter()
    .filter_map(|(name, found)| found.then_some(name))
    .collect()
}

/// The vector instructions that CPU paths may use.
#[cfg(target_arch = "aarch64")]
fn cpu_features() -> Vec<&'static str> {
    if std::arch::is_aarch64_feature_detected!("neon") { vec!["neon"] } else { Vec::new() }
}

/// The vector instructions that CPU paths may use.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_features() -> Vec<&'static str> {
    Vec::new()
}
