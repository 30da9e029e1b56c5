//! Which instructions a loop is compiled for. The loops are plain Rust that the compiler vectorises; each is compiled once
//! per set by [`multiversion`].

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isa {
    /// What the build allows for every machine: SSE2 on x86-64, Neon on aarch64.
    Baseline,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with 16-bit lanes and their bit count (BW and BITALG).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Every set that this machine has, the best last.
    pub(super) fn available() -> Vec<Self> {
        let mut all = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                all.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bitalg")
            {
                all.push(Self::Avx512);
            }
        }
        all
    }

    pub(super) fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Baseline)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }
}

/// Defines `fn $name(isa, args…)`, which runs `$body` compiled for `isa`. `$body` must be `#[inline(always)]`.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) = $body:path;) => {
        $(#[$doc])*
        $vis fn $name(isa: $crate::masda::cpu::isa::Isa, $($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($arg: $type),*) {
                $body($($arg),*);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bitalg")]
            fn avx512($($arg: $type),*) {
                $body($($arg),*);
            }
            match isa {
                $crate::masda::cpu::isa::Isa::Baseline => $body($($arg),*),
                // SAFETY: this set is only ever made where the machine has it, see `Isa::available`.
                #[cfg(target_arch = "x86_64")]
                $crate::masda::cpu::isa::Isa::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::masda::cpu::isa::Isa::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(super) use multiversion;
