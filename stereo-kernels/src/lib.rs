//! GPU kernels for dense stereo matching.
#![cfg_attr(target_arch = "nvptx64", no_std)]
