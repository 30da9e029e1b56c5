//! Helpers for the integration tests.

pub mod brute;
pub mod cases;
pub mod data;
pub mod score;
