//! How much memory the host can still give: a size that does not fit is refused before it is tried,
//! since a system that promises more than it has ends the whole process instead.

use crate::{Error, Result};

/// Refuses `need` bytes for `what` where the system says that it has fewer; passes where it says nothing.
pub(crate) fn check(what: &'static str, need: u64, advice: impl Into<String>) -> Result<()> {
    match available() {
        Some(available) if need > available => Err(Error::Memory { what, need, available, advice: advice.into() }),
        _ => Ok(()),
    }
}

/// Bytes that can be used without swapping, where the system tells (Linux).
fn available() -> Option<u64> {
    parse_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// The line `MemAvailable:  123 kB` of the kernel's table.
fn parse_meminfo(table: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_table() {
        let table = "MemTotal:       16384 kB\nMemFree:            1 kB\nMemAvailable:    4096 kB\n";
        assert_eq!(parse_meminfo(table), Some(4 << 20));
        assert_eq!(parse_meminfo("MemTotal: 1 kB\n"), None);
        assert_eq!(parse_meminfo("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn refuses_what_no_machine_has() {
        check("a byte", 1, "").unwrap();
        if available().is_some() {
            let refusal = check("the test", u64::MAX, "less would fit").unwrap_err().to_string();
            assert!(refusal.contains(&u64::MAX.to_string()) && refusal.ends_with("less would fit"), "{refusal}");
        }
    }
}
