//! Calls of driver functions, their results turned into [`Error::Cuda`].
//!
//! `cust_raw` declares that the driver returns a Rust enum of the codes of CUDA 11.4. A newer driver
//! returns newer codes, which no value of that enum is, so this module takes results as integers.

use std::ffi::{CStr, c_char, c_int};

use cust::{
    error::CudaError,
    sys::{self, CUresult},
};

use crate::{Error, Result};

/// The largest code that is the driver's; `cust` puts its own above.
const LAST_DRIVER_CODE: u32 = 999;

/// Calls `cust::sys::$name`; its result as an integer. The caller answers for the call in an
/// `unsafe` block.
macro_rules! cu_code {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let function: unsafe extern "C" fn($($crate::cuda::call::cu_code!(@infer $arg)),*) -> _ = cust::sys::$name;
        $crate::cuda::call::NumericResult::numeric(function)($($arg),*)
    }};
    (@infer $arg:expr) => { _ };
}
pub(super) use cu_code;

/// As [`cu_code`], [`Error::Cuda`] unless the result is `CUDA_SUCCESS`.
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {
        $crate::cuda::call::check(stringify!($name), $crate::cuda::call::cu_code!($name($($arg),*)))
    };
}
pub(super) use cu;

/// A driver function whose result is taken as an integer.
pub(super) trait NumericResult {
    type Numeric;

    fn numeric(self) -> Self::Numeric;
}

macro_rules! numeric_result {
    ($($arg:ident)*) => {
        impl<$($arg),*> NumericResult for unsafe extern "C" fn($($arg),*) -> CUresult {
            type Numeric = unsafe extern "C" fn($($arg),*) -> c_int;

            fn numeric(self) -> Self::Numeric {
                // SAFETY: CUresult is `repr(i32)`: the same function type with the range of the
                // result no longer assumed.
                unsafe { std::mem::transmute::<Self, Self::Numeric>(self) }
            }
        }
    };
}

numeric_result!();
numeric_result!(A);
numeric_result!(A B);
numeric_result!(A B C);
numeric_result!(A B C D);
numeric_result!(A B C D E);
numeric_result!(A B C D E F G H I J K); // cuLaunchKernel

/// [`Error::Cuda`] unless `code` is `CUDA_SUCCESS`.
pub(super) fn check(call: &'static str, code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(Error::Cuda { call, message: describe(code) }),
    }
}

/// Attaches the call's name to an error of `cust`.
pub(super) fn named(call: &'static str) -> impl FnOnce(CudaError) -> Error {
    move |error| Error::Cuda { call, message: describe_cust(error) }
}

/// What [`named`] says about `error`.
pub(super) fn describe_cust(error: CudaError) -> String {
    match error as u32 {
        code @ 0..=LAST_DRIVER_CODE => describe(code as c_int),
        _ => format!("{error:?} (refused before reaching the driver)"),
    }
}

/// The driver's name for a code and its words: `CUDA_ERROR_INVALID_VALUE (1): invalid argument`.
pub(super) fn describe(code: c_int) -> String {
    let name = text(sys::cuGetErrorName, code).unwrap_or_else(|| "unknown CUDA error".to_owned());
    match text(sys::cuGetErrorString, code) {
        Some(words) => format!("{name} ({code}): {words}"),
        None => format!("{name} ({code})"),
    }
}

type TextOf = unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult;

fn text(function: TextOf, code: c_int) -> Option<String> {
    type NumericTextOf = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    // SAFETY: CUresult is `repr(i32)`; as an integer it may hold codes that the enum does not know.
    let function = unsafe { std::mem::transmute::<TextOf, NumericTextOf>(function) };
    let mut words = std::ptr::null();
    // SAFETY: the driver writes one pointer, to a text that lives as long as the program.
    let found = unsafe { function(code, &raw mut words) } == 0 && !words.is_null();
    // SAFETY: as above: a C string of static life.
    found.then(|| unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned())
}
