//! One file per machine: the vector operations, and the kernels compiled for it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use super::{
    CpuLevel,
    census::{CensusRow, PenaltyRow},
    cost::CostBlock,
    finish::FinishRow,
    horizontal::BackwardRow,
    median::MedianRow,
    sweep::SweepBlock,
};

/// The kernels of one machine level.
///
/// # Safety
/// Every function needs the level's instructions (so a table is handed out only by [`kernels`], which
/// asks for them) and the contract of its argument's type.
pub(super) struct Kernels {
    pub(super) name: &'static str,
    /// 8-bit lanes of a vector: the grain of every padded disparity range.
    pub(super) lanes: usize,
    pub(super) census8: unsafe fn(&CensusRow<u8>),
    pub(super) census16: unsafe fn(&CensusRow<u16>),
    pub(super) penalties8: unsafe fn(&PenaltyRow<u8>),
    pub(super) penalties16: unsafe fn(&PenaltyRow<u16>),
    pub(super) cost: unsafe fn(&CostBlock),
    pub(super) sweep: unsafe fn(&SweepBlock),
    pub(super) backward: unsafe fn(&BackwardRow),
    pub(super) finish: unsafe fn(&FinishRow),
    pub(super) median: unsafe fn(&mut MedianRow<'_>),
}

/// The kernels of `level`, if this machine can run them.
pub(super) fn kernels(level: CpuLevel) -> Option<&'static Kernels> {
    match level {
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx512 => avx512::is_available().then_some(&avx512::KERNELS),
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => avx2::is_available().then_some(&avx2::KERNELS),
        #[cfg(target_arch = "aarch64")]
        CpuLevel::Neon => neon::is_available().then_some(&neon::KERNELS),
        CpuLevel::Portable => Some(&portable::KERNELS),
        #[allow(unreachable_patterns)]
        _ => None,
    }
}

/// Compiles every kernel over vector type `$vector` with the given target features: the generic code is
/// inlined into these functions, so that its operations become single instructions.
macro_rules! entry_points {
    ($name:literal, $vector:ty $(, $features:literal)?) => {
        pub(crate) static KERNELS: $crate::cpu::arch::Kernels = $crate::cpu::arch::Kernels {
            name: $name,
            lanes: <$vector as $crate::cpu::vector::Vector>::LANES,
            census8: entry::census8,
            census16: entry::census16,
            penalties8: entry::penalties8,
            penalties16: entry::penalties16,
            cost: entry::cost,
            sweep: entry::sweep,
            backward: entry::backward,
            finish: entry::finish,
            median: entry::median,
        };

        mod entry {
            use super::*;
            use $crate::cpu::{census, cost, finish, horizontal, median, sweep};

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn census8(row: &census::CensusRow<u8>) {
                census::census_row(row)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn census16(row: &census::CensusRow<u16>) {
                census::census_row(row)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn penalties8(row: &census::PenaltyRow<u8>) {
                census::penalty_row(row)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn penalties16(row: &census::PenaltyRow<u16>) {
                census::penalty_row(row)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn cost(block: &cost::CostBlock) {
                cost::cost_block::<$vector>(block)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn sweep(block: &sweep::SweepBlock) {
                sweep::sweep_block::<$vector>(block)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn backward(row: &horizontal::BackwardRow) {
                horizontal::backward_row::<$vector>(row)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn finish(row: &finish::FinishRow) {
                finish::finish_row::<$vector>(row)
            }
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn median(row: &mut median::MedianRow<'_>) {
                median::median_row(row)
            }
        }
    };
}
use entry_points;
