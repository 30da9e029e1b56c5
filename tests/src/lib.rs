//! Helpers for the integration tests.

pub mod data;
pub mod score;
