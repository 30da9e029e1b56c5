//! Reads what the assembler and the disassembler print about each kernel.

use crate::error::{Error, Result};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// What a kernel or device function needs and contains on one GPU architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Its name.
    pub name: String,
    /// Whether it can be launched; else it is a function that kernels call.
    pub kernel: bool,
    /// Registers of one thread; 0 for functions.
    pub registers: u32,
    /// Bytes of static shared memory.
    pub shared: u32,
    /// Bytes of stack, callees included.
    pub stack: u32,
    /// Bytes of spill stores and loads.
    pub spills: u32,
    /// Chosen machine instructions.
    pub instructions: Instructions,
}

/// How many machine instructions of a kind a kernel has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// All of them.
    pub total: u32,
    /// Bulk and tensor copies between global and shared memory.
    pub bulk_copies: u32,
    /// Loads from generic addresses.
    pub generic_loads: u32,
    /// Stores to generic addresses.
    pub generic_stores: u32,
    /// Loads from global memory.
    pub global_loads: u32,
    /// Stores to global memory.
    pub global_stores: u32,
    /// Loads from and stores to shared memory.
    pub shared_accesses: u32,
    /// Loads from and stores to local memory.
    pub local_accesses: u32,
    /// Warp shuffles.
    pub shuffles: u32,
    /// Block barriers.
    pub barriers: u32,
}

impl Instructions {
    fn count(&mut self, opcode: &str) {
        if opcode == "NOP" {
            // Padding at a function's end.
            return;
        }
        self.total += 1;
        let counter = match opcode.split('.').next().unwrap_or_default() {
            "UBLKCP" | "UTMALDG" | "UTMASTG" | "UBLKRED" | "UTMAREDG" => &mut self.bulk_copies,
            "LD" => &mut self.generic_loads,
            "ST" => &mut self.generic_stores,
            "LDG" => &mut self.global_loads,
            "STG" => &mut self.global_stores,
            "LDS" | "LDSM" | "STS" | "STSM" | "ATOMS" => &mut self.shared_accesses,
            "LDL" | "STL" => &mut self.local_accesses,
            "SHFL" => &mut self.shuffles,
            "BAR" => &mut self.barriers,
            _ => return,
        };
        *counter += 1;
    }
}

/// Joins the report of `ptxas -v` with the text of `nvdisasm -c` for the same file; kernels come first, by name.
///
/// # Errors
/// [`Error::Format`] where a kernel of one is missing in the other: then these formats are not understood any more, and
/// an empty report would pass for a good one.
pub fn join(ptxas: &str, nvdisasm: &str) -> Result<Vec<Code>> {
    let mut codes = read_resources(ptxas);
    let mut instructions = read_instructions(nvdisasm);
    for code in &mut codes {
        match instructions.remove(&code.name) {
            Some(counts) if counts.total > 0 => code.instructions = counts,
            _ if code.kernel => return Err(mismatch(&code.name, "has a resource report but no code")),
            // A function whose calls were all inlined or dropped.
            _ => {}
        }
    }
    if let Some(name) = instructions.keys().next() {
        return Err(mismatch(name, "has code but no resource report"));
    }
    codes.retain(|code| code.kernel || code.instructions.total > 0);
    codes.sort_by(|a, b| (!a.kernel, &a.name).cmp(&(!b.kernel, &b.name)));
    Ok(codes)
}

fn mismatch(name: &str, reason: &str) -> Error {
    Error::Format { what: "ptxas and nvdisasm output".into(), reason: format!("`{name}` {reason}") }
}

fn read_resources(text: &str) -> Vec<Code> {
    let quoted = |line: &str| line.split('\'').nth(1).map(str::to_owned);
    let entries: HashSet<String> =
        text.lines().filter(|line| line.contains("Compiling entry function")).filter_map(quoted).collect();
    let mut codes: Vec<Code> = Vec::new();
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            let name = name.trim().to_owned();
            codes.push(Code { kernel: entries.contains(&name), name, ..Code::default() });
            continue;
        }
        let Some(code) = codes.last_mut() else { continue };
        for part in line.rsplit("info    :").next().unwrap_or_default().split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            match words.as_slice() {
                [bytes, "bytes", "stack", "frame"] | [bytes, "bytes", "cumulative", "stack", "size"] => {
                    code.stack = code.stack.max(number(bytes));
                }
                [bytes, "bytes", "spill", _] => code.spills += number(bytes),
                ["Used", count, "registers"] => code.registers = number(count),
                [bytes, "bytes", "smem"] => code.shared = number(bytes),
                _ => {}
            }
        }
    }
    codes
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or(0)
}

fn read_instructions(text: &str) -> BTreeMap<String, Instructions> {
    let mut sections: BTreeMap<String, Instructions> = BTreeMap::new();
    let mut current: Option<&mut Instructions> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix(".section\t") {
            let name = section.trim().split(',').next().unwrap_or_default().trim_matches('"');
            current = name.strip_prefix(".text.").map(|name| sections.entry(name.to_owned()).or_default());
        } else if let (Some(counts), Some((_, code))) =
            (&mut current, line.strip_prefix("/*").and_then(|l| l.split_once("*/")))
        {
            let mut words = code.split_whitespace().map(|word| word.trim_start_matches('{'));
            let predicated = |word: &&str| word.starts_with('@') || word.is_empty();
            if let Some(opcode) = words.find(|word| !predicated(word)) {
                counts.count(opcode.trim_end_matches(';'));
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTXAS: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'aggregate' for 'sm_90'
ptxas info    : Function properties for aggregate
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem, 16 bytes cmem[0]
ptxas info    : Function properties for helper
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";

    const SASS: &str = "\
\t.section\t.nv.info,\"\",@\"SHT_CUDA_INFO\"
        /*0000*/ \t.byte\t0x04, 0x2f
\t.section\t.text.aggregate,\"ax\",@progbits
\t.sectioninfo\t@\"SHI_REGISTERS=32\"
aggregate:
.text.aggregate:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LD.E.64 R10, desc[UR4][R2.64] ;
        /*0020*/             @P1   UBLKCP.S.G [UR8], [UR4], UR6 ;
        /*0030*/                   STL.U8 [R1], RZ ;
.L_x_1:
        /*0040*/                   EXIT ;
        /*0050*/                   NOP;
";

    #[test]
    fn resources_and_instructions_are_joined() {
        let codes = join(PTXAS, SASS).unwrap();
        let kernel = &codes[0];
        assert_eq!((kernel.name.as_str(), kernel.kernel, kernel.registers), ("aggregate", true, 32));
        assert_eq!((kernel.stack, kernel.spills, kernel.shared), (48, 20, 1024));
        let counts = &kernel.instructions;
        assert_eq!((counts.total, counts.generic_loads, counts.bulk_copies, counts.local_accesses), (5, 1, 1, 1));
        assert_eq!(codes.len(), 1, "the helper has no code left");
    }

    #[test]
    fn output_that_does_not_fit_together_is_refused() {
        assert!(join(PTXAS, "").unwrap_err().to_string().contains("aggregate"));
        assert!(join("", SASS).unwrap_err().to_string().contains("no resource report"));
    }
}
