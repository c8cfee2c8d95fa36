//! Routines that depend on the element type alone.
//!
//! rustc compiles a generic function anew in each crate that calls it. So these routines are methods of the traits of element types: their default
//! bodies are generic, and `f32` and `f64` override them with the same bodies, which then are functions of this crate that callers only link. So do the
//! common integers for their sums. Other element types, those of users among them, have the defaults.
//!
//! Callers trust the results: how many elements they have, and that all places are written. So each routine takes a [`Seal`](crate::seal::Seal), a type
//! that no other crate can name, and users cannot override it.

/// The routines of one trait: the defaults in the trait, where they are hidden from the documentation, and the overrides in the impls for the common
/// types.
macro_rules! compiled {
    (Num $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        #[track_caller]
        fn contract(
            _: $crate::seal::Seal,
            operands: $crate::plan::contract::Operands<'_, Self>,
            scale: Self,
            axes: $crate::plan::contract::LoopAxes<'_>,
            kept: &[usize],
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::DimError> {
            $crate::plan::contract::contract(operands, scale, axes, kept)
        }

        $(#[$attribute])*
        #[track_caller]
        fn contract_onto(
            _: $crate::seal::Seal,
            operands: $crate::plan::contract::Operands<'_, Self>,
            scale: Self,
            axes: $crate::plan::contract::LoopAxes<'_>,
            target: $crate::plan::target::Target<'_, Self>,
        ) -> Result<(), $crate::error::DimError> {
            $crate::plan::contract::contract_onto(operands, scale, axes, target)
        }

        $(#[$attribute])*
        #[track_caller]
        fn sum_of_pair(
            _: $crate::seal::Seal,
            operands: [&$crate::plan::contract::Operand<'_, Self>; 2],
            sizes: &[usize],
            axes: [&[usize]; 2],
            describe: &dyn Fn() -> ::alloc::string::String,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::DimError> {
            $crate::plan::contract::sum_of_pair(operands, sizes, axes, describe)
        }

        $(#[$attribute])*
        fn multiply_packed(_: $crate::seal::Seal) -> unsafe fn(&$crate::kernel::gemm::Product<Self>) {
            $crate::kernel::gemm::multiply_packed
        }

        $crate::compiled::compiled!(Sum $(#[$attribute])*);
        $crate::compiled::reduction!(prod_memory, Self, Prod $(#[$attribute])*);
        $crate::compiled::along!(cumulate_blocks, cumulate_memory, Cumulate $(#[$attribute])*);
    };
    (Sum $(#[$attribute:meta])*) => {
        $crate::compiled::reduction!(sum_memory, Self, Sum $(#[$attribute])*);
    };
    (Ordered $(#[$attribute:meta])*) => {
        $crate::compiled::reduction!(max_memory, Self, Max $(#[$attribute])*);
        $crate::compiled::reduction!(min_memory, Self, Min $(#[$attribute])*);
        $crate::compiled::reduction!(argmax_memory, usize, Arg::<true> $(#[$attribute])*);
        $crate::compiled::reduction!(argmin_memory, usize, Arg::<false> $(#[$attribute])*);
    };
    (Analytic $(#[$attribute:meta])*) => {
        $crate::compiled::reduction!(mean_memory, Self, Mean $(#[$attribute])*);
    };
    (Real $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        fn attend<'w>(
            _: $crate::seal::Seal,
            work: &'w $crate::kernel::attention::Work<'w, Self>,
            len: usize,
            threads: usize,
            lower: &dyn Fn() -> ::alloc::boxed::Box<dyn $crate::kernel::attention::Change<Self> + 'w>,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::DimError> {
            $crate::kernel::attention::attend(work, len, threads, lower)
        }

        $crate::compiled::along!(softmax_blocks, softmax_memory, Softmax<false> $(#[$attribute])*);
        $crate::compiled::along!(log_softmax_blocks, log_softmax_memory, Softmax<true> $(#[$attribute])*);
        $crate::compiled::along!(standardize_blocks, standardize_memory, Standardize<Self> $(#[$attribute])*);
        $crate::compiled::along!(standardize_affine_blocks, standardize_affine_memory, StandardizeAffine<'_, Self> $(#[$attribute])*);
        $crate::compiled::along!(root_mean_square_blocks, root_mean_square_memory, RootMeanSquare<Self> $(#[$attribute])*);
        $crate::compiled::along!(unit_length_blocks, unit_length_memory, UnitLength<Self> $(#[$attribute])*);
    };
}

/// A reduction of elements in memory.
macro_rules! reduction {
    ($name:ident, $out:ty, $reducer:ident $(::<$greatest:literal>)? $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        fn $name(
            _: $crate::seal::Seal,
            memory: $crate::kernel::reduce::InMemory<'_, Self>,
        ) -> Result<::alloc::vec::Vec<$out>, $crate::error::DimError> {
            memory.reduce($crate::kernel::reducers::$reducer $(::<$greatest>)?)
        }
    };
}

/// Work along lines: of elements that are worked on where they are, and of elements in memory whose results go elsewhere.
macro_rules! along {
    ($blocks:ident, $memory:ident, $work:ident $(<$($argument:tt),*>)? $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        fn $blocks(_: $crate::seal::Seal, work: $crate::kernel::scan::works::$work $(<$($argument),*>)?, data: &mut [Self], block: usize, inner: usize) {
            $crate::kernel::scan::blocks(work, data, block, inner);
        }

        $(#[$attribute])*
        fn $memory(
            _: $crate::seal::Seal,
            work: $crate::kernel::scan::works::$work $(<$($argument),*>)?,
            memory: $crate::kernel::scan::InMemory<'_, Self>,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::DimError> {
            memory.collect(work)
        }
    };
}

pub(crate) use {along, compiled, reduction};
