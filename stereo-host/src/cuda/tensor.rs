//! Tensor maps, newer than `cust`: the call comes from the opened driver library.

use std::ffi::{c_int, c_void};

use super::{call::check, driver};
use crate::{
    Backend, Error, Result,
    gpu::executor::{TILE_MAP, TileShape},
};

/// `CUtensorMap`.
#[repr(C, align(64))]
struct TensorMap([u8; TILE_MAP]);

/// `cuTensorMapEncodeTiled`, its enumerations as integers.
type EncodeTiled = unsafe extern "C" fn(
    *mut TensorMap,
    c_int,
    u32,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// `CU_TENSOR_MAP_DATA_TYPE_UINT64`: the widest element, since a tile has at most 256 of them in a row.
const ELEMENT_TYPE: c_int = 4;
/// Its bytes.
const ELEMENT: usize = 8;
/// `CU_TENSOR_MAP_INTERLEAVE_NONE`, `CU_TENSOR_MAP_SWIZZLE_NONE`, `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE` (zeros).
const NONE: c_int = 0;
/// `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`.
const L2_PROMOTION: c_int = 3;

/// The tensor map for tiles of the matrix at `address`, which is aligned to 16 bytes.
///
/// # Errors
/// [`Error::Unavailable`] from a driver without tensor maps; the driver's refusal of the shape.
pub(crate) fn encode(address: u64, shape: TileShape) -> Result<[u8; TILE_MAP]> {
    let symbol = driver::symbol(c"cuTensorMapEncodeTiled").ok_or_else(|| Error::Unavailable {
        backend: Backend::Cuda.name(),
        reason: "the NVIDIA driver has no tensor maps (cuTensorMapEncodeTiled), which the plan asks for".to_owned(),
    })?;
    // SAFETY: the driver's function of this name has this type (CUDA driver API, "Tensor Map Object Management").
    let encode_tiled = unsafe { std::mem::transmute::<*mut c_void, EncodeTiled>(symbol.as_ptr()) };
    let dims = [(shape.row_bytes / ELEMENT) as u64, shape.rows as u64];
    let strides = [shape.row_bytes as u64];
    let tile = [shape.tile_bytes / ELEMENT as u32, shape.tile_rows];
    let steps = [1u32; 2];
    let mut map = TensorMap([0; TILE_MAP]);
    // SAFETY: all pointers are to live arrays of the lengths that rank 2 asks for; the driver only reads the address
    // as a number.
    let code = unsafe {
        encode_tiled(
            &raw mut map,
            ELEMENT_TYPE,
            2,
            address as *mut c_void,
            dims.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            steps.as_ptr(),
            NONE,
            NONE,
            L2_PROMOTION,
            NONE,
        )
    };
    check("cuTensorMapEncodeTiled", code)?;
    Ok(map.0)
}
