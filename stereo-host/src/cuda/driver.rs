//! The CUDA driver, opened at run time.
//!
//! `cust` calls the driver through link-time symbols. A program linked with `-lcuda` does not start
//! on a machine without a driver, so this crate defines those symbols itself (`symbols.rs`): each is
//! one jump through a slot of a table, and the table is filled from `libcuda.so.1` by [`load`], which
//! the first `cuInit` runs. Until then, and for ever where there is no driver, every slot leads to
//! `no_device`, so that the program starts and CUDA calls fail with `CUDA_ERROR_NO_DEVICE`.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering},
    },
};

use cust::sys::cudaError_enum as Code;
use libloading::Library;

use super::symbols::{TABLE, slots};

/// The name under which a driver installs its library, and the one for linking, which few machines
/// have alone.
const LIBRARY_NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// A slot of the jump table: the address that the symbol of the same name jumps to.
pub(super) type Slot = AtomicPtr<c_void>;

/// The opened driver library.
#[derive(Debug)]
pub struct Loaded {
    library: Library,
    name: &'static str,
    missing: Vec<&'static str>,
}

impl Loaded {
    /// The name under which the library was found.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The table's symbols that this driver does not have; calls to them return
    /// `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }
}

/// Opens the driver's library and fills the jump table. Only the first call does anything; calling
/// it is never necessary, as the first `cuInit` does.
///
/// # Errors
/// Why the library cannot be opened, in the system's words.
pub fn load() -> Result<&'static Loaded, &'static str> {
    static LOADED: OnceLock<Result<Loaded, String>> = OnceLock::new();
    LOADED.get_or_init(open).as_ref().map_err(String::as_str)
}

/// The address of a driver function by its exported name, versions included (`cuMemAlloc_v2`): also
/// for functions newer than `cust`, such as `cuTensorMapEncodeTiled`. `None` without a driver or
/// when the driver lacks it.
pub fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    find(&load().ok()?.library, name.to_bytes_with_nul())
}

/// Every symbol that this crate defines in the driver's place.
pub fn defined_symbols() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| name.trim_end_matches('\0'))
}

fn open() -> Result<Loaded, String> {
    let opened = open_library();
    let mut missing = Vec::new();
    for &(name, slot) in TABLE {
        let entry = match &opened {
            Ok((library, _)) => find(library, name.as_bytes()).map(NonNull::as_ptr).or_else(|| {
                missing.push(name.trim_end_matches('\0'));
                stand_in(slot, missing_symbol)
            }),
            Err(_) => stand_in(slot, no_device),
        };
        if let Some(entry) = entry {
            slot.store(entry, Ordering::Release);
        }
    }
    let (library, name) = opened?;
    Ok(Loaded { library, name, missing })
}

/// The entry for a symbol that the driver does not serve; `None` where the slot's first entry, which
/// gives the text of an error, serves on.
fn stand_in(slot: &'static Slot, entry: unsafe extern "C" fn() -> c_int) -> Option<*mut c_void> {
    let keeps = [&slots::cuGetErrorName, &slots::cuGetErrorString];
    (!keeps.into_iter().any(|kept| std::ptr::eq(kept, slot))).then_some(entry as *mut c_void)
}

fn open_library() -> Result<(Library, &'static str), String> {
    // SAFETY: opening the library runs the NVIDIA driver's own initialisers, which expect to be run in
    // any process at any time.
    let open = |name| unsafe { Library::new(name) }.map(|library| (library, name));
    let [installed, development] = LIBRARY_NAMES;
    // The reason of the first counts: it is the name that a driver installs.
    open(installed).or_else(|reason| open(development).map_err(|_| reason)).map_err(|error| {
        // The system's own words; the error itself only says that opening failed.
        std::error::Error::source(&error).map_or_else(|| format!("{installed}: {error}"), ToString::to_string)
    })
}

/// Looks up `name`, which ends in NUL.
fn find(library: &Library, name: &[u8]) -> Option<NonNull<c_void>> {
    // SAFETY: only the address is taken; whoever calls it gives it its type.
    let symbol = unsafe { library.get::<*mut c_void>(name) }.ok()?;
    NonNull::new(*symbol)
}

/// What a slot leads to before the driver is loaded and where there is none.
pub(super) unsafe extern "C" fn no_device() -> c_int {
    Code::CUDA_ERROR_NO_DEVICE as c_int
}

/// What a slot leads to when the loaded driver lacks the function.
unsafe extern "C" fn missing_symbol() -> c_int {
    Code::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND as c_int
}

/// The first entry of `cuInit`: loads the driver, then hands the call on.
pub(super) unsafe extern "C" fn first_init(flags: c_uint) -> c_int {
    let _ = load();
    let entry = slots::cuInit.load(Ordering::Acquire);
    // SAFETY: `load` has replaced this very function by the driver's `cuInit` or by a function that
    // ignores its arguments.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_uint) -> c_int>(entry)(flags) }
}

/// The first entry of `cuDriverGetVersion`, which may be called before `cuInit`.
pub(super) unsafe extern "C" fn first_version(version: *mut c_int) -> c_int {
    let _ = load();
    let entry = slots::cuDriverGetVersion.load(Ordering::Acquire);
    // SAFETY: as in `first_init`.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(entry)(version) }
}

/// `cuGetErrorString` and `cuGetErrorName` without a driver. `cust` formats its errors through them
/// and panics when they fail, so they must not.
pub(super) unsafe extern "C" fn no_driver_text(error: c_int, text: *mut *const c_char) -> c_int {
    let known = match error {
        e if e == Code::CUDA_ERROR_NO_DEVICE as c_int => c"no CUDA driver is loaded",
        _ => c"unknown error (no CUDA driver is loaded)",
    };
    if text.is_null() {
        return Code::CUDA_ERROR_INVALID_VALUE as c_int;
    }
    // SAFETY: the caller passes a place for the pointer, as the driver API asks.
    unsafe { text.write(known.as_ptr()) };
    Code::CUDA_SUCCESS as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves both kinds of machines: with a driver the call may succeed, without it must be `NoDevice`.
    #[test]
    fn first_init_loads_the_driver_or_says_no_device() {
        let result = cust::init(cust::CudaFlags::empty());
        match load() {
            Ok(_) => assert_ne!(slots::cuInit.load(Ordering::Acquire), first_init as *mut c_void),
            Err(reason) => {
                assert_eq!(result, Err(cust::error::CudaError::NoDevice), "{reason}");
                assert!(reason.contains("libcuda"), "{reason}");
                assert!(symbol(c"cuInit").is_none());
                assert_eq!(
                    cust::error::CudaError::NoDevice.to_string(),
                    "\"no CUDA driver is loaded\"",
                    "cust's Display panics when cuGetErrorString fails"
                );
                assert_eq!(cust::device::Device::num_devices(), Err(cust::error::CudaError::NoDevice));
            }
        }
    }

    #[test]
    fn names_are_terminated_and_unique() {
        let names: std::collections::HashSet<_> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert!(names.iter().all(|name| CStr::from_bytes_with_nul(name.as_bytes()).is_ok()));
    }
}
