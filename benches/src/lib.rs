//! Helpers for the benchmarks.
