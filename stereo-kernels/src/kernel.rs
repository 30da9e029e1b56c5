//! How a kernel's body, its PTX entry and its launch arguments belong together.
//!
//! [`kernels!`](crate::kernels) takes the arguments as a struct and lists the entries:
//!
//! ```text
//! kernels! {
//!     /// What the kernel needs.
//!     pub struct Scale { values: GlobalMut<u32>, len: u32, }
//!     /// Doubles every value.
//!     entry scale_by_2 = scale::<2>;
//! }
//! ```
//!
//! On the device each entry becomes a PTX entry of that name, with one parameter per field, in the way
//! that the compiler wants it (`device_entry!` in `gpu/builtin.rs` and `gpu/rust_cuda.rs`). On the host it becomes a constant [`Entry`], which names the PTX entry for
//! the driver and carries the body for the emulator: launches are typed in both.

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use core::{ffi::c_void, fmt};

    /// The arguments of a kernel.
    pub trait Args: Copy + Send + Sync + 'static {
        /// Passes the address of each kernel parameter to `each`, in the entry's order, as
        /// `cuLaunchKernel` wants them.
        fn parameters(&self, each: &mut dyn FnMut(*mut c_void));
    }

    /// One kernel: its PTX entry, and its body for the emulator.
    pub struct Entry<A> {
        /// The entry's name in the PTX.
        pub name: &'static str,
        /// The body, run once per emulated thread.
        pub body: fn(A),
    }

    impl<A> Entry<A> {
        /// The kernel called `name` in a family.
        ///
        /// # Panics
        /// When there is none: the name is made of a wrong direction or size.
        pub fn named(family: &[Self], name: &str) -> Self {
            *family.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no kernel is called {name}"))
        }
    }

    impl<A> Clone for Entry<A> {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<A> Copy for Entry<A> {}

    impl<A> fmt::Debug for Entry<A> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.name)
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{Args, Entry};

/// Declares a kernel family: its arguments and its entries. See [`crate::kernel`].
#[macro_export]
macro_rules! kernels {
    (
        $(#[$doc:meta])*
        pub struct $Args:ident $(<$T:ident>)? { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* }
        $( $(#[$entry_doc:meta])* entry $name:ident $(<$E:ty>)? = $body:expr; )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $Args $(<$T: $crate::gpu::global::Element>)? {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $(<$T: $crate::gpu::global::Element>)? $crate::kernel::Args for $Args $(<$T>)? {
            fn parameters(&self, each: &mut dyn FnMut(*mut core::ffi::c_void)) {
                $( each((&raw const self.$field).cast_mut().cast()); )*
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $(<$T: $crate::gpu::global::Element>)? $Args $(<$T>)? {
            /// The name of every kernel of the family.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        }

        $crate::kernels! { @list $Args [$($T)?] $($name)* }
        $crate::kernels! { @each $Args [$($T)?] { $($field: $type,)* } $( { [$(#[$entry_doc])*] $name [$($E)?] $body } )* }
    };

    (@list $Args:ident [$T:ident] $($name:ident)*) => {};
    (@list $Args:ident [] $($name:ident)*) => {
        #[cfg(not(target_arch = "nvptx64"))]
        impl $Args {
            /// Every kernel of the family.
            pub const ENTRIES: &[$crate::kernel::Entry<Self>] = &[$($name),*];
        }
    };

    (@each $Args:ident $T:tt $fields:tt) => {};
    (@each $Args:ident $T:tt $fields:tt { $docs:tt $name:ident $E:tt $body:expr } $($rest:tt)*) => {
        $crate::kernels! { @entry $Args $T $fields $docs $name $E $body }
        $crate::kernels! { @each $Args $T $fields $($rest)* }
    };

    (@entry $Args:ident [$($T:ident)?] { $($field:ident: $type:ty,)* } [$($docs:tt)*] $name:ident [$($E:ty)?] $body:expr) => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            $( type $T = $E; )?
            $crate::device_entry! {
                fn $name($($field: $type),*) {
                    let body: fn($Args $(<$T>)?) = $body;
                    body($Args { $($field: $crate::gpu::global::Parameter::enter($field)),* })
                }
            }
        };

        #[cfg(not(target_arch = "nvptx64"))]
        $($docs)*
        #[doc = concat!("PTX entry `", stringify!($name), "`.")]
        #[allow(non_upper_case_globals, reason = "it stands for the PTX entry of this name")]
        pub const $name: $crate::kernel::Entry<$Args $(<$E>)?> =
            $crate::kernel::Entry { name: stringify!($name), body: $body };
    };
}
