//! CUDA.
pub mod driver;
mod symbols;
