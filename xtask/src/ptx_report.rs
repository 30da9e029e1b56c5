//! `ptx-report`: assembles PTX for every GPU architecture and says what became of each kernel.

use crate::cuda_tools::CudaTools;
use crate::error::{Error, Result};
use crate::ptx_file::{self, Arch, Stamp};
use crate::sass::{self, Code};
use crate::workspace;
use clap::ValueEnum;
use rayon::prelude::*;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The GPU architectures the report covers: Turing, Ampere (data centre, desktop), Ada, Hopper, Blackwell (data
/// centre, desktop).
const GPUS: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// The first compute capability with bulk copies.
const FIRST_WITH_BULK_COPIES: u32 = 90;

/// Kernels whose name ends like this use bulk copies.
const BULK_COPY_KERNEL: &str = "_tma";

/// What a kernel may not have, and which kernels may for what reason: (part of the name, fault, reason).
const ALLOWED: &[(&str, Fault, &str)] = &[];

/// Assemble the committed PTX for every GPU architecture; print registers, memory and instruction counts per kernel.
///
/// Fails on a stack frame, spills or generic-address accesses in a kernel, and where bulk-copy instructions are not
/// exactly where they belong: in each of the `_tma` kernels, which exist from sm_90 on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask ptx-report                              every kernel on every architecture
  cargo xtask ptx-report --arch 90 --kernel vertical  some kernels on one
  cargo xtask ptx-report --problems                   one line per architecture, and what is wrong
  cargo xtask ptx-report --json > report.json
  cargo xtask ptx-report --folder stereo-host/ptx/rust-cuda    of another folder, see `build-ptx --codegen`
  cargo xtask ptx-report --arch 100 --compare stereo-host/ptx/rust-cuda    two compilers side by side")]
pub struct Args {
    /// GPU architectures to assemble for [default: every one that the PTX serves]
    #[arg(long, value_delimiter = ',')]
    arch: Vec<u32>,
    /// Read the PTX of this folder instead of the committed files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Beside it, the PTX of this folder: registers, instructions and memory accesses of each kernel from both.
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    compare: Option<PathBuf>,
    /// Only list kernels whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    kernel: String,
    /// Print the report as JSON.
    #[arg(long, conflicts_with = "problems")]
    json: bool,
    /// Print a line per architecture and the problems, no table.
    #[arg(long)]
    problems: bool,
}

/// One GPU architecture's part of the report.
#[derive(Debug, Serialize)]
struct GpuReport {
    /// The compute capability, ten times major plus minor.
    gpu: u32,
    /// The architecture whose PTX it runs.
    ptx: u32,
    /// Who compiled that.
    compiler: String,
    /// Kernels, then the functions they call.
    code: Vec<Code>,
    /// What is wrong.
    problems: Vec<String>,
}

/// What is not allowed in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Stack,
    Spills,
    GenericAccess,
}

/// Prints the report.
///
/// # Errors
/// A missing tool, PTX that does not assemble, or [`Error::Check`] with the number of problems.
pub fn run(args: &Args) -> Result<()> {
    let tools = CudaTools::find()?;
    let folder = args.folder.as_ref().map_or_else(ptx_file::folder, |folder| workspace::root().join(folder));
    let mut reports = report(&tools, &folder, &args.arch)?;
    let mut others = match &args.compare {
        Some(other) => report(&tools, &workspace::root().join(other), &args.arch)?,
        None => Vec::new(),
    };
    let problems: usize = reports.iter().chain(&others).map(|report| report.problems.len()).sum();
    for report in reports.iter_mut().chain(&mut others) {
        report.code.retain(|code| code.name.contains(&args.kernel));
    }
    if args.json {
        let text = serde_json::to_string_pretty(&reports);
        println!("{}", text.map_err(|error| Error::Format { what: "report".into(), reason: error.to_string() })?);
    } else {
        println!("{}", tools.version()?);
        for report in &reports {
            let other = others.iter().find(|other| other.gpu == report.gpu);
            match other {
                _ if args.problems => {}
                Some(other) => print_both(report, other),
                None if args.compare.is_some() => continue,
                None => print_table(report),
            }
            for report in [Some(report), other].into_iter().flatten() {
                println!("{}", summary(report));
                report.problems.iter().for_each(|problem| println!("  {problem}"));
            }
        }
    }
    if problems > 0 {
        return Err(Error::Check(format!("{problems} problems in the assembled kernels")));
    }
    Ok(())
}

/// Assembles the committed files for every GPU architecture; the text sums up, or the error lists what is wrong.
///
/// # Errors
/// As [`run`].
pub fn check() -> Result<String> {
    let tools = CudaTools::find()?;
    let reports = report(&tools, &ptx_file::folder(), &GPUS)?;
    let problems: Vec<String> = reports
        .iter()
        .flat_map(|report| report.problems.iter().map(|problem| format!("sm_{}: {problem}", report.gpu)))
        .collect();
    if !problems.is_empty() {
        return Err(Error::Check(problems.join("\n")));
    }
    let kernels: usize = reports.iter().map(|report| report.code.iter().filter(|code| code.kernel).count()).sum();
    Ok(format!("{kernels} kernels on {} architectures without stack, spills or generic accesses", reports.len()))
}

/// The PTX of `folder` on `gpus`, or where there are none, on all of [`GPUS`] that it serves.
fn report(tools: &CudaTools, folder: &Path, gpus: &[u32]) -> Result<Vec<GpuReport>> {
    let there: Vec<Arch> =
        Arch::value_variants().iter().copied().filter(|arch| arch.file_in(folder).is_file()).collect();
    let Some(oldest) = there.first() else {
        return Err(Error::Check(format!("{} holds no stereo_sm*.ptx", workspace::relative(folder))));
    };
    let served: Vec<u32> = GPUS.into_iter().filter(|&gpu| gpu >= oldest.number()).collect();
    let gpus = if gpus.is_empty() { &served } else { gpus };
    let scratch = tempfile::tempdir().map_err(Error::file(std::env::temp_dir(), "cannot create a folder in"))?;
    gpus.par_iter()
        .map(|&gpu| {
            let arch = Arch::serving(&there, gpu).ok_or_else(|| {
                let oldest = oldest.number();
                Error::Check(format!(
                    "no PTX in {} serves sm_{gpu}, only {oldest} and later",
                    workspace::relative(folder)
                ))
            })?;
            let path = arch.file_in(folder);
            let text = std::fs::read_to_string(&path).map_err(Error::file(&path, "cannot read"))?;
            let compiler = Stamp::read(&path, &text)?.compiler;
            let cubin = scratch.path().join(format!("sm_{gpu}.cubin"));
            let resources = tools.assemble(&path, gpu, &cubin)?;
            let code = sass::join(&resources, &tools.disassemble(&cubin)?)?;
            let problems = problems(gpu, &code);
            Ok(GpuReport { gpu, ptx: arch.number(), compiler, code, problems })
        })
        .collect()
}

fn is_bulk_copy(name: &str) -> bool {
    name.ends_with(BULK_COPY_KERNEL)
}

/// Everything that is wrong with one architecture's code.
fn problems(gpu: u32, code: &[Code]) -> Vec<String> {
    let mut problems = Vec::new();
    for code in code {
        let counts = &code.instructions;
        let generic = counts.generic_loads + counts.generic_stores;
        let faults = [
            (Fault::Stack, code.stack, "bytes of stack"),
            (Fault::Spills, code.spills, "bytes of spills"),
            (Fault::GenericAccess, generic, "generic-address accesses"),
        ];
        for (fault, amount, what) in faults {
            let allowed = ALLOWED.iter().any(|(name, allowed, _)| code.name.contains(name) && *allowed == fault);
            if amount > 0 && !allowed {
                problems.push(format!("{}: {amount} {what}", code.name));
            }
        }
        let bulk_copies = counts.bulk_copies;
        if code.kernel && is_bulk_copy(&code.name) {
            if gpu < FIRST_WITH_BULK_COPIES {
                problems.push(format!("{}: a bulk-copy kernel, sm_{gpu} has no bulk copies", code.name));
            } else if bulk_copies == 0 {
                problems.push(format!("{}: no bulk-copy instruction", code.name));
            }
        } else if bulk_copies > 0 {
            problems.push(format!("{}: {bulk_copies} bulk-copy instructions", code.name));
        }
    }
    if !code.iter().any(|code| code.kernel) {
        problems.push("no kernels".into());
    }
    if gpu >= FIRST_WITH_BULK_COPIES && !code.iter().any(|code| code.kernel && is_bulk_copy(&code.name)) {
        problems.push("no bulk-copy kernels".into());
    }
    problems
}

fn summary(report: &GpuReport) -> String {
    let kernels = || report.code.iter().filter(|code| code.kernel);
    let sum = |value: fn(&Code) -> u32| report.code.iter().map(value).sum::<u32>();
    format!(
        "sm_{} (from sm_{} by {}): {} kernels ({} by bulk copies), at most {} registers, {} B stack, {} B spills, {} generic accesses, {} bulk copies, \
         {} instructions",
        report.gpu,
        report.ptx,
        report.compiler,
        kernels().count(),
        kernels().filter(|code| is_bulk_copy(&code.name)).count(),
        kernels().map(|code| code.registers).max().unwrap_or(0),
        sum(|code| code.stack),
        sum(|code| code.spills),
        sum(|code| code.instructions.generic_loads + code.instructions.generic_stores),
        sum(|code| code.instructions.bulk_copies),
        sum(|code| code.instructions.total),
    )
}

fn print_table(report: &GpuReport) {
    let width = report.code.iter().map(|code| code.name.len()).max().unwrap_or(0);
    println!(
        "\n{:width$}  regs  smem stack spill   LD/ST   LDG   STG LDS/STS LDL/STL  SHFL   BAR  bulk  total",
        format!("sm_{}", report.gpu)
    );
    for code in &report.code {
        let counts = &code.instructions;
        println!(
            "{:width$} {:5} {:5} {:5} {:5} {:7} {:5} {:5} {:7} {:7} {:5} {:5} {:5} {:6}",
            code.name,
            code.registers,
            code.shared,
            code.stack,
            code.spills,
            counts.generic_loads + counts.generic_stores,
            counts.global_loads,
            counts.global_stores,
            counts.shared_accesses,
            counts.local_accesses,
            counts.shuffles,
            counts.barriers,
            counts.bulk_copies,
            counts.total,
        );
    }
}

/// Two compilers' code for the same GPU, kernel by kernel.
fn print_both(one: &GpuReport, other: &GpuReport) {
    let width = one.code.iter().map(|code| code.name.len()).max().unwrap_or(0).max(6);
    println!("\nA: {}\nB: {}", one.compiler, other.compiler);
    println!("{:width$}      regs A/B   instructions A/B  LDG+STG A/B  LDS/STS A/B", format!("sm_{}", one.gpu));
    for a in one.code.iter().filter(|code| code.kernel) {
        let Some(b) = other.code.iter().find(|b| b.name == a.name) else {
            println!("{:width$}  only in A", a.name);
            continue;
        };
        let (x, y) = (&a.instructions, &b.instructions);
        println!(
            "{:width$} {:6} {:6} {:9} {:8} {:6} {:5} {:6} {:5}",
            a.name,
            a.registers,
            b.registers,
            x.total,
            y.total,
            x.global_loads + x.global_stores,
            y.global_loads + y.global_stores,
            x.shared_accesses,
            y.shared_accesses,
        );
    }
    let missing = |b: &&Code| b.kernel && !one.code.iter().any(|a| a.name == b.name);
    other.code.iter().filter(missing).for_each(|b| println!("{:width$}  only in B", b.name));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, change: impl FnOnce(&mut Code)) -> Code {
        let mut code = Code { name: name.into(), kernel: true, ..Code::default() };
        change(&mut code);
        code
    }

    #[test]
    fn each_fault_is_a_problem() {
        let faults: [fn(&mut Code); 4] = [
            |code| code.stack = 8,
            |code| code.spills = 4,
            |code| code.instructions.generic_loads = 1,
            |code| code.instructions.generic_stores = 1,
        ];
        assert!(problems(75, &[kernel("vertical", |_| ())]).is_empty());
        for fault in faults {
            assert_eq!(problems(75, &[kernel("vertical", fault)]).len(), 1);
        }
        assert_eq!(problems(75, &[]).len(), 1);
    }

    #[test]
    fn bulk_copies_are_gated_both_ways() {
        let copies: fn(&mut Code) = |code| code.instructions.bulk_copies = 2;
        let with = [kernel("vertical_tma", copies)];
        let without = [kernel("vertical_tma", |_| ())];
        let plain = [kernel("vertical", |_| ())];
        let misplaced = [kernel("vertical", copies), kernel("vertical_tma", copies)];
        for gpu in [90, 100, 120] {
            assert!(problems(gpu, &with).is_empty());
            assert_eq!(problems(gpu, &without), ["vertical_tma: no bulk-copy instruction"]);
            assert_eq!(problems(gpu, &plain), ["no bulk-copy kernels"]);
            assert_eq!(problems(gpu, &misplaced), ["vertical: 2 bulk-copy instructions"]);
        }
        for gpu in [75, 80, 86, 89] {
            assert!(problems(gpu, &plain).is_empty());
            assert_eq!(problems(gpu, &with).len(), 1);
            assert_eq!(problems(gpu, &without).len(), 1);
            assert_eq!(problems(gpu, &misplaced).len(), 2);
        }
    }
}
