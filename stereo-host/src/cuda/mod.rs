//! The layer between `cust` and the GPU pipeline: the driver opened at run time, devices, the PTX
//! that fits them, and what a pipeline is made of: context, kernels, buffers, streams, events, graphs.
//!
//! | file | holds |
//! |---|---|
//! | `symbols`, [`driver`] | the driver's symbols as jumps through a table, and the table's filling |
//! | `call` | calls and their errors |
//! | [`device`] | GPUs, and why CUDA is unavailable |
//! | [`ptx`] | the embedded device code, that of folders, and which of it a GPU takes |
//! | `context`, `module`, `memory`, `stream` | the execution layer |
//! | `tensor` | tensor maps for two-dimensional copies |
//!
//! Unsafe are only the operations that queue work on memory: their callers keep the memory alive and
//! order the work.

mod call;
mod context;
pub mod device;
pub mod driver;
mod memory;
mod module;
pub mod ptx;
mod stream;
mod symbols;
pub(crate) mod tensor;

pub use context::{CudaContext, MemoryInfo};
pub use memory::{DeviceBuffer, DeviceCopy, PinnedBuffer};
pub use module::{Kernel, KernelInfo, Kernels, LaunchConfig};
pub use stream::{Event, Graph, Priority, Stream};
