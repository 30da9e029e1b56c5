//! The matcher on a GPU: one pipeline of kernel launches, written over [`executor::Executor`], so
//! that the driver and the emulator run the very same sequence.
//!
//! | file | holds |
//! |---|---|
//! | `executor` | what a pipeline needs of a machine: memory, launches, order |
//! | `on_cuda` | the executor on an NVIDIA GPU, over [`crate::cuda`] |
//! | `on_emulator` | the executor on the kernels' host build |
//! | `masda` | MASDA's image plane: buffers and launches |
//! | `plan` | which kernels and streams are used |
//! | `sgm` | the SGM pipeline: buffers and launches |
//! | `engine` | the matcher: frames in, maps out, the choice of a plan |

pub(crate) mod engine;
pub(crate) mod executor;
pub(crate) mod masda;
#[cfg(cuda)]
pub(crate) mod on_cuda;
pub(crate) mod on_emulator;
pub(crate) mod plan;
mod sgm;
