//! What is left of the CUDA layer in builds that have none: the reason.

use crate::{PtxImage, PtxSource, Result};

/// Why there are no GPUs.
pub mod device {
    use crate::{Backend, Error, PtxSource, Result};

    /// Always [`Error::Unavailable`]: this build is without the CUDA backend.
    ///
    /// # Errors
    /// Always.
    pub fn availability(_ordinal: Option<u32>) -> Result<()> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        let reason = if cfg!(feature = "cuda") {
            format!("CUDA is supported on Linux on x86_64 and aarch64, this build is for {os} on {arch}")
        } else {
            "this build is without the feature cuda".to_owned()
        };
        Err(Error::Unavailable { backend: Backend::Cuda.name(), reason })
    }

    /// As [`availability`].
    ///
    /// # Errors
    /// Always.
    pub fn availability_with(ordinal: Option<u32>, _source: &PtxSource) -> Result<()> {
        availability(ordinal)
    }
}

impl PtxSource {
    /// Always [`crate::Error::Unavailable`]: this build is without the CUDA backend.
    ///
    /// # Errors
    /// Always.
    pub fn list(&self) -> Result<Vec<PtxImage>> {
        device::availability(None).map(|()| Vec::new())
    }
}
