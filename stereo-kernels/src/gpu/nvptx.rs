//! The device layer in inline PTX, gated on the target architecture: the same for both compilers. What
//! each of them spells in its own way is in `compiler` (`builtin.rs`, `rust_cuda.rs`).
//!
//! Addresses: global loads and stores name their state space, so that none is generic; shared
//! memory is addressed by its 32-bit shared-window address.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "every block here is one instruction; its contract is the safe function around it"
)]

use core::arch::asm;

/// Indices of threads and blocks, and the block barrier.
pub mod thread {
    use core::arch::asm;

    pub use crate::gpu::compiler::thread::*;

    /// Ends the kernel with an error.
    #[inline(always)]
    pub fn trap() -> ! {
        unsafe { asm!("trap;", options(noreturn, nostack)) }
    }
}

/// The warp: 32 threads that shuffle registers.
///
/// A shuffle is never `pure`: it must not be moved into a branch that only some threads take.
pub mod warp {
    use core::arch::asm;

    pub use crate::gpu::compiler::sync_warp;

    /// Threads in a warp.
    pub const SIZE: u32 = 32;

    /// This thread's index in its warp.
    #[inline(always)]
    pub fn lane_id() -> u32 {
        super::thread::thread_idx_x() % SIZE
    }

    const fn clamp(width: u32, last: u32) -> u32 {
        ((SIZE - width) << 8) | last
    }

    /// The value of the lane whose index differs by the bits of `mask`, within groups of `width`
    /// lanes (a power of two).
    #[inline(always)]
    pub fn shuffle_xor(value: u32, mask: u32, width: u32) -> u32 {
        let result;
        unsafe {
            asm!("shfl.sync.bfly.b32 {}, {}, {}, {}, 0xffffffff;", out(reg32) result, in(reg32) value,
                in(reg32) mask, in(reg32) clamp(width, SIZE - 1), options(nomem, nostack));
        }
        result
    }

    /// The value of the lane `delta` below, within groups of `width`; the lowest lanes keep their own.
    #[inline(always)]
    pub fn shuffle_up(value: u32, delta: u32, width: u32) -> u32 {
        let result;
        unsafe {
            asm!("shfl.sync.up.b32 {}, {}, {}, {}, 0xffffffff;", out(reg32) result, in(reg32) value,
                in(reg32) delta, in(reg32) clamp(width, 0), options(nomem, nostack));
        }
        result
    }

    /// The value of the lane `delta` above, within groups of `width`; the highest lanes keep their own.
    #[inline(always)]
    pub fn shuffle_down(value: u32, delta: u32, width: u32) -> u32 {
        let result;
        unsafe {
            asm!("shfl.sync.down.b32 {}, {}, {}, {}, 0xffffffff;", out(reg32) result, in(reg32) value,
                in(reg32) delta, in(reg32) clamp(width, SIZE - 1), options(nomem, nostack));
        }
        result
    }

    /// The value of lane `lane` of this thread's group of `width` lanes.
    #[inline(always)]
    pub fn shuffle_idx(value: u32, lane: u32, width: u32) -> u32 {
        let result;
        unsafe {
            asm!("shfl.sync.idx.b32 {}, {}, {}, {}, 0xffffffff;", out(reg32) result, in(reg32) value,
                in(reg32) lane, in(reg32) clamp(width, SIZE - 1), options(nomem, nostack));
        }
        result
    }
}

macro_rules! elements {
    ($($t:ty, $class:ident, $r:ty, $suffix:literal;)*) => {$(
        impl Element for $t {
            #[inline(always)]
            unsafe fn load_constant(p: *const Self) -> Self {
                let r: $r;
                unsafe {
                    asm!(concat!("ld.global.nc.", $suffix, " {}, [{}];"), out($class) r, in(reg64) p, options(pure, nomem, nostack));
                }
                r as Self
            }
            #[inline(always)]
            unsafe fn load(p: *const Self) -> Self {
                let r: $r;
                unsafe {
                    asm!(concat!("ld.global.", $suffix, " {}, [{}];"), out($class) r, in(reg64) p, options(readonly, nostack));
                }
                r as Self
            }
            #[inline(always)]
            unsafe fn store(p: *mut Self, value: Self) {
                unsafe {
                    asm!(concat!("st.global.", $suffix, " [{}], {};"),
                        in(reg64) p, in($class) value as $r, options(nostack));
                }
            }
            #[inline(always)]
            unsafe fn load_shared(a: u32) -> Self {
                let r: $r;
                unsafe {
                    asm!(concat!("ld.shared.", $suffix, " {}, [{}];"), out($class) r, in(reg32) a,
                        options(readonly, nostack));
                }
                r as Self
            }
            #[inline(always)]
            unsafe fn store_shared(a: u32, value: Self) {
                unsafe {
                    asm!(concat!("st.shared.", $suffix, " [{}], {};"), in(reg32) a, in($class) value as $r,
                        options(nostack));
                }
            }
        }
    )*};
}

/// A type that memory holds: implemented for the integers of 8 to 64 bits that kernels use.
pub trait Element: Copy + 'static {
    #[doc(hidden)]
    unsafe fn load_constant(p: *const Self) -> Self;
    #[doc(hidden)]
    unsafe fn load(p: *const Self) -> Self;
    #[doc(hidden)]
    unsafe fn store(p: *mut Self, value: Self);
    #[doc(hidden)]
    unsafe fn load_shared(a: u32) -> Self;
    #[doc(hidden)]
    unsafe fn store_shared(a: u32, value: Self);
}

elements! {
    u8, reg16, u16, "u8";
    u16, reg16, u16, "u16";
    i16, reg16, u16, "u16";
    u32, reg32, u32, "u32";
    i32, reg32, u32, "u32";
    u64, reg64, u64, "u64";
}

/// Device memory.
pub mod global {
    use core::arch::asm;

    pub use super::Element;

    /// What a kernel takes as a parameter.
    pub trait Parameter {
        /// Called once on entry: turns the generic addresses that a launch passes into addresses of
        /// the global window, which is what every load and store here takes.
        fn enter(self) -> Self;
    }

    macro_rules! plain {
        ($($t:ty)*) => {$(
            impl Parameter for $t {
                #[inline(always)]
                fn enter(self) -> Self {
                    self
                }
            }
        )*};
    }

    plain!(u32 i32 usize);

    #[inline(always)]
    fn to_global<T>(generic: *const T) -> *const T {
        let address;
        unsafe {
            asm!("cvta.to.global.u64 {}, {};", out(reg64) address, in(reg64) generic,
                options(pure, nomem, nostack));
        }
        address
    }

    impl<T> Parameter for Global<T> {
        #[inline(always)]
        fn enter(self) -> Self {
            Self(to_global(self.0))
        }
    }

    impl<T> Parameter for GlobalMut<T> {
        #[inline(always)]
        fn enter(self) -> Self {
            Self(to_global(self.0).cast_mut())
        }
    }

    /// Device memory that no thread writes during the launch: loads take the read-only path.
    /// A bare pointer on the device; on the host it carries its length and every access is checked.
    #[repr(transparent)]
    #[derive(Clone, Copy)]
    pub struct Global<T>(*const T);

    impl<T: Element> Global<T> {
        /// Element `i`.
        #[inline(always)]
        pub fn get(self, i: usize) -> T {
            unsafe { T::load_constant(self.0.add(i)) }
        }

        /// The 8 bytes from element `i` on; their address is a multiple of 8.
        #[inline(always)]
        pub fn get_x2(self, i: usize) -> [u32; 2] {
            let (a, b);
            unsafe {
                asm!("ld.global.nc.v2.u32 {{{}, {}}}, [{}];", out(reg32) a, out(reg32) b, in(reg64) self.0.add(i), options(pure, nomem, nostack));
            }
            [a, b]
        }

        /// The 16 bytes from element `i` on; their address is a multiple of 16.
        #[inline(always)]
        pub fn get_x4(self, i: usize) -> [u32; 4] {
            let (a, b, c, d);
            unsafe {
                asm!("ld.global.nc.v4.u32 {{{}, {}, {}, {}}}, [{}];", out(reg32) a, out(reg32) b, out(reg32) c,
                    out(reg32) d, in(reg64) self.0.add(i),
                    options(pure, nomem, nostack));
            }
            [a, b, c, d]
        }

        /// The address of element `i`, for a bulk copy.
        #[cfg(bulk_copies)]
        #[inline(always)]
        pub(super) fn address(self, i: usize) -> *const T {
            unsafe { self.0.add(i) }
        }
    }

    /// Device memory that the launch may write. Different threads write different elements unless
    /// they use the atomic operations.
    #[repr(transparent)]
    #[derive(Clone, Copy)]
    pub struct GlobalMut<T>(*mut T);

    impl<T: Element> GlobalMut<T> {
        /// Element `i`.
        #[inline(always)]
        pub fn get(self, i: usize) -> T {
            unsafe { T::load(self.0.add(i)) }
        }

        /// Writes element `i`.
        #[inline(always)]
        pub fn set(self, i: usize, value: T) {
            unsafe { T::store(self.0.add(i), value) }
        }

        /// Writes the 8 bytes from element `i` on; their address is a multiple of 8.
        #[inline(always)]
        pub fn set_x2(self, i: usize, [a, b]: [u32; 2]) {
            unsafe {
                asm!("st.global.v2.u32 [{}], {{{}, {}}};",
                    in(reg64) self.0.add(i), in(reg32) a, in(reg32) b, options(nostack));
            }
        }

        /// Writes the 16 bytes from element `i` on; their address is a multiple of 16.
        #[inline(always)]
        pub fn set_x4(self, i: usize, [a, b, c, d]: [u32; 4]) {
            unsafe {
                asm!("st.global.v4.u32 [{}], {{{}, {}, {}, {}}};",
                    in(reg64) self.0.add(i), in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                    options(nostack));
            }
        }
    }

    impl GlobalMut<u32> {
        /// Atomically lowers element `i` to `value` if that is smaller.
        #[inline(always)]
        pub fn fetch_min(self, i: usize, value: u32) {
            unsafe {
                asm!("red.relaxed.gpu.global.min.u32 [{}], {};",
                    in(reg64) self.0.add(i), in(reg32) value, options(nostack));
            }
        }
    }
}

/// The block's dynamic shared memory.
pub mod shared {
    use core::{arch::asm, marker::PhantomData};

    use super::Element;

    /// A typed part of the block's dynamic shared memory.
    #[derive(Clone, Copy)]
    pub struct Shared<T> {
        base: u32,
        element: PhantomData<T>,
    }

    impl<T: Element> Shared<T> {
        /// `len` elements that start `offset` bytes into the block's dynamic shared memory, which is
        /// aligned to 128 bytes.
        #[inline(always)]
        pub fn dynamic(offset: u32, _len: u32) -> Self {
            Self { base: crate::gpu::compiler::dynamic_shared() + offset, element: PhantomData }
        }

        /// Element `i`.
        #[inline(always)]
        pub fn get(self, i: u32) -> T {
            unsafe { T::load_shared(self.address(i)) }
        }

        /// Writes element `i`.
        #[inline(always)]
        pub fn set(self, i: u32, value: T) {
            unsafe { T::store_shared(self.address(i), value) }
        }

        /// The 8 bytes from element `i` on; their address is a multiple of 8.
        #[inline(always)]
        pub fn get_x2(self, i: u32) -> [u32; 2] {
            let (a, b);
            unsafe {
                asm!("ld.shared.v2.u32 {{{}, {}}}, [{}];", out(reg32) a, out(reg32) b, in(reg32) self.address(i),
                    options(readonly, nostack));
            }
            [a, b]
        }

        /// The 16 bytes from element `i` on; their address is a multiple of 16.
        #[inline(always)]
        pub fn get_x4(self, i: u32) -> [u32; 4] {
            let (a, b, c, d);
            unsafe {
                asm!("ld.shared.v4.u32 {{{}, {}, {}, {}}}, [{}];", out(reg32) a, out(reg32) b, out(reg32) c,
                    out(reg32) d, in(reg32) self.address(i), options(readonly, nostack));
            }
            [a, b, c, d]
        }

        /// Writes the 16 bytes from element `i` on; their address is a multiple of 16.
        #[inline(always)]
        pub fn set_x4(self, i: u32, [a, b, c, d]: [u32; 4]) {
            unsafe {
                asm!("st.shared.v4.u32 [{}], {{{}, {}, {}, {}}};", in(reg32) self.address(i), in(reg32) a,
                    in(reg32) b, in(reg32) c, in(reg32) d, options(nostack));
            }
        }

        #[inline(always)]
        pub(super) fn address(self, i: u32) -> u32 {
            self.base + i * size_of::<T>() as u32
        }
    }

    impl Shared<u32> {
        /// Atomically lowers element `i` to `value` if that is smaller.
        #[inline(always)]
        pub fn fetch_min(self, i: u32, value: u32) {
            unsafe {
                asm!("red.relaxed.cta.shared.min.u32 [{}], {};", in(reg32) self.address(i), in(reg32) value,
                    options(nostack));
            }
        }
    }
}

/// Instructions on two 16-bit lanes; see [`crate::gpu::packed`].
pub mod packed {
    use core::arch::asm;

    /// Lane-wise unsigned minimum. Lanes hold less than 2^15 - 2^10: below sm_90 the instruction is
    /// the half-precision minimum, which orders such bit patterns as integers.
    #[inline(always)]
    pub fn min(a: u32, b: u32) -> u32 {
        #[cfg(sm_90)]
        {
            let r: u32;
            unsafe {
                asm!("min.u16x2 {}, {}, {};", out(reg32) r, in(reg32) a, in(reg32) b, options(pure, nomem, nostack));
            }
            r
        }
        #[cfg(all(sm_80, not(sm_90)))]
        {
            let r: u32;
            unsafe {
                asm!("min.f16x2 {}, {}, {};", out(reg32) r, in(reg32) a, in(reg32) b, options(pure, nomem, nostack));
            }
            r
        }
        #[cfg(not(sm_80))]
        {
            const LOW: u32 = 0xffff;
            (a & LOW).min(b & LOW) | (a & !LOW).min(b & !LOW)
        }
    }

    /// Picks four bytes out of the eight of `b:a`, one per hexadecimal digit of `selector`.
    #[inline(always)]
    pub fn permute(a: u32, b: u32, selector: u32) -> u32 {
        let r: u32;
        unsafe {
            asm!("prmt.b32 {}, {}, {}, {};", out(reg32) r, in(reg32) a, in(reg32) b, in(reg32) selector,
                options(pure, nomem, nostack));
        }
        r
    }
}

/// Asynchronous bulk copies from device memory into shared memory, completed on an `mbarrier`.
/// From sm_90 on; kernels that use them exist only there.
#[cfg(bulk_copies)]
pub mod bulk {
    use core::arch::asm;

    use super::{Element, global::Global, shared::Shared};

    /// An `mbarrier` in shared memory, with the phase that this thread waits for next.
    #[derive(Clone, Copy)]
    pub struct Barrier {
        address: u32,
        parity: u32,
    }

    impl Barrier {
        /// The barrier at the 8 bytes `offset` into dynamic shared memory. One thread then calls
        /// [`Barrier::init`], and the block synchronises, before anything else.
        #[inline(always)]
        pub fn dynamic(offset: u32) -> Self {
            Self { address: Shared::<u64>::dynamic(offset, 1).address(0), parity: 0 }
        }

        /// The same barrier, with this thread waiting for a phase of the given parity next.
        #[inline(always)]
        pub fn in_phase(self, parity: u32) -> Self {
            Self { parity, ..self }
        }

        /// Sets the barrier up for one arrival per phase, and makes that visible to the copy engine.
        #[inline(always)]
        pub fn init(self) {
            unsafe {
                asm!("mbarrier.init.shared.b64 [{}], 1;", "fence.mbarrier_init.release.cluster;",
                    in(reg32) self.address, options(nostack));
            }
        }

        /// Arrives and announces `bytes` that bulk copies will bring before the phase completes.
        #[inline(always)]
        pub fn arrive_expect(self, bytes: u32) {
            unsafe {
                asm!("mbarrier.arrive.expect_tx.shared.b64 _, [{}], {};", in(reg32) self.address,
                    in(reg32) bytes, options(nostack));
            }
        }

        /// Waits until the current phase completes, then turns to the next one.
        #[inline(always)]
        pub fn wait(&mut self) {
            while !self.try_wait() {}
            self.parity ^= 1;
        }

        #[inline(always)]
        fn try_wait(self) -> bool {
            let done: u32;
            unsafe {
                asm!("{{ .reg .pred p;", "mbarrier.try_wait.parity.shared.b64 p, [{}], {};", "selp.u32 {}, 1, 0, p; }}",
                    in(reg32) self.address, in(reg32) self.parity, out(reg32) done, options(nostack));
            }
            done != 0
        }
    }

    /// Starts the copy of `bytes` from `source[i..]` to `target[j..]`. Both addresses and the size are
    /// multiples of 16. Shared memory that threads have read or written before must have been
    /// released by a block barrier.
    #[inline(always)]
    pub fn copy<T: Element>(target: Shared<T>, j: u32, source: Global<T>, i: usize, bytes: u32, barrier: Barrier) {
        unsafe {
            #[cfg(not(sm_100))]
            asm!("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
                in(reg32) target.address(j), in(reg64) source.address(i), in(reg32) bytes,
                in(reg32) barrier.address, options(nostack));
            #[cfg(sm_100)]
            asm!("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
                in(reg32) target.address(j), in(reg64) source.address(i), in(reg32) bytes,
                in(reg32) barrier.address, options(nostack));
        }
    }

    /// Makes the tile map at `map`, which the host wrote before the launch, visible to the copy engine:
    /// once per block, before its first [`copy_tile`].
    #[inline(always)]
    pub fn acquire_tiles(map: Global<u8>) {
        unsafe {
            asm!("fence.proxy.tensormap::generic.acquire.gpu [{}], 128;", in(reg64) map.address(0), options(nostack));
        }
    }

    /// Starts the copy of the tile whose first byte is 8-byte element `column` of row `row`, as the tile
    /// map at `map` describes, to `target[j..]`, aligned to 128 bytes. The whole tile's bytes arrive:
    /// zeros where it lies outside.
    #[inline(always)]
    pub fn copy_tile<T: Element>(target: Shared<T>, j: u32, map: Global<u8>, column: i32, row: i32, barrier: Barrier) {
        unsafe {
            #[cfg(not(sm_100))]
            asm!("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{}], [{}, {{{}, {}}}], [{}];",
                in(reg32) target.address(j), in(reg64) map.address(0), in(reg32) column, in(reg32) row,
                in(reg32) barrier.address, options(nostack));
            #[cfg(sm_100)]
            asm!("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [{}], [{}, {{{}, {}}}], [{}];",
                in(reg32) target.address(j), in(reg64) map.address(0), in(reg32) column, in(reg32) row,
                in(reg32) barrier.address, options(nostack));
        }
    }
}
