//! The routines that depend on the element type alone, as methods of the traits of element types: see [`compiled`](crate::compiled).
//!
//! The macros name modules of higher layers, such as `$crate::contract`. This is by design: the traits call these modules, as a vtable would, so that
//! other crates link the routines of the common types. `tests/architecture.rs` does not count these paths as imports of `ops` and `scalar`.

/// The routines of one trait: the defaults in the trait, where they are hidden from the documentation, and the overrides in the impls for the common
/// types.
macro_rules! compiled {
    (Num $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        #[track_caller]
        fn contract(
            _: $crate::seal::KernelSeal,
            operands: $crate::contract::ContractionFactors<'_, Self>,
            scale: Self,
            axes: $crate::contract::LoopAxes<'_>,
            target: $crate::contract::target::Target<'_, Self>,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::Error> {
            $crate::contract::contract(operands, scale, axes, target)
        }

        $(#[$attribute])*
        #[track_caller]
        fn contract_pair(
            _: $crate::seal::KernelSeal,
            operands: [$crate::contract::ContractionFactor<'_, Self>; 2],
            axes: $crate::contract::LoopAxes<'_>,
            target: $crate::contract::target::Target<'_, Self>,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::Error> {
            $crate::contract::contract(operands.into_iter().collect(), Self::ONE, axes, target)
        }

        $(#[$attribute])*
        #[track_caller]
        fn sum_of_pair(
            _: $crate::seal::KernelSeal,
            operands: [&$crate::contract::ContractionFactor<'_, Self>; 2],
            sizes: &[usize],
            axes: [&[usize]; 2],
            describe: &dyn Fn() -> ::alloc::string::String,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::Error> {
            $crate::contract::sum_of_pair(operands, sizes, axes, describe)
        }

        $(#[$attribute])*
        unsafe fn multiply(_: $crate::seal::KernelSeal, product: &$crate::gemm::Product<Self>) {
            // SAFETY: the caller's promise, which is that of the function.
            unsafe { $crate::gemm::dispatch::multiply(product) }
        }

        $crate::ops::compiled::compiled!(Sum $(#[$attribute])*);
        $crate::ops::compiled::reduction!(prod_memory, Self, Prod $(#[$attribute])*);
        $crate::ops::compiled::along!(cumulate_blocks, cumulate_memory, Cumulate $(#[$attribute])*);
    };
    (Sum $(#[$attribute:meta])*) => {
        $crate::ops::compiled::reduction!(sum_memory, Self, Sum $(#[$attribute])*);
    };
    (Ordered $(#[$attribute:meta])*) => {
        $crate::ops::compiled::reduction!(max_memory, Self, Max $(#[$attribute])*);
        $crate::ops::compiled::reduction!(min_memory, Self, Min $(#[$attribute])*);
        $crate::ops::compiled::reduction!(argmax_memory, usize, ArgExtremum::<true> $(#[$attribute])*);
        $crate::ops::compiled::reduction!(argmin_memory, usize, ArgExtremum::<false> $(#[$attribute])*);
    };
    (Analytic $(#[$attribute:meta])*) => {
        $crate::ops::compiled::reduction!(mean_memory, Self, Mean $(#[$attribute])*);
    };
    // (Programs compute with `f32` and `f64`, which override this.)
    (NoScores $(#[$attribute:meta])*) => {
        /// # Safety
        ///
        /// As for [`lowered_scores`](crate::attention::lowered_scores).
        $(#[$attribute])*
        unsafe fn lowered_scores<'k>(
            _: $crate::seal::KernelSeal,
            _: &'k $crate::program::lowered::LoweredProgram<'k>,
            _: Option<&'k $crate::program::lowered::LoweredProgram<'k>>,
            _: &mut $crate::loops::nest::OperandRows<'k>,
        ) -> Option<::alloc::boxed::Box<dyn $crate::attention::Change<Self> + 'k>> {
            None
        }
    };
    (Scores) => {
        unsafe fn lowered_scores<'k>(
            _: $crate::seal::KernelSeal,
            mask: &'k $crate::program::lowered::LoweredProgram<'k>,
            bias: Option<&'k $crate::program::lowered::LoweredProgram<'k>>,
            rows: &mut $crate::loops::nest::OperandRows<'k>,
        ) -> Option<::alloc::boxed::Box<dyn $crate::attention::Change<Self> + 'k>> {
            // SAFETY: the caller's promise, which is that of the function.
            Some(unsafe { $crate::attention::lowered_scores(mask, bias, rows) })
        }
    };
    (Real $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        #[track_caller]
        fn widened<'a>(
            _: $crate::seal::KernelSeal,
            operand: $crate::contract::ContractionFactor<'a, Self>,
            sizes: &[usize],
        ) -> Result<$crate::contract::ContractionFactor<'a, Self::Wide>, $crate::error::Error> {
            operand.converted(sizes, $crate::scalar::Real::widen)
        }

        $(#[$attribute])*
        fn narrowed(_: $crate::seal::KernelSeal, data: ::alloc::vec::Vec<Self::Wide>) -> ::alloc::vec::Vec<Self> {
            $crate::attention::narrowed(data)
        }

        $(#[$attribute])*
        unsafe fn attend<'w>(
            _: $crate::seal::KernelSeal,
            work: &'w $crate::attention::Work<'w, Self>,
            len: usize,
            threads: usize,
            lower: &dyn Fn() -> ::alloc::boxed::Box<dyn $crate::attention::Change<Self> + 'w>,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::Error> {
            // SAFETY: the caller's promise, which is that of the function.
            unsafe { $crate::attention::attend(work, len, threads, lower) }
        }

        $crate::ops::compiled::along!(softmax_blocks, softmax_memory, Softmax<false> $(#[$attribute])*);
        $crate::ops::compiled::along!(log_softmax_blocks, log_softmax_memory, Softmax<true> $(#[$attribute])*);
        $crate::ops::compiled::along!(standardize_blocks, standardize_memory, Standardize<Self> $(#[$attribute])*);
        $crate::ops::compiled::along!(standardize_affine_blocks, standardize_affine_memory, StandardizeAffine<'_, Self> $(#[$attribute])*);
        $crate::ops::compiled::along!(root_mean_square_blocks, root_mean_square_memory, RootMeanSquare<Self> $(#[$attribute])*);
        $crate::ops::compiled::along!(unit_length_blocks, unit_length_memory, UnitLength<Self> $(#[$attribute])*);
    };
}

/// A reduction of elements in memory.
macro_rules! reduction {
    ($name:ident, $out:ty, $reducer:ident $(::<$greatest:literal>)? $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        fn $name(
            _: $crate::seal::KernelSeal,
            memory: $crate::reduce::ReduceInput<'_, Self>,
            to: $crate::memory::destination::Destination<'_, $out>,
        ) -> Result<::alloc::vec::Vec<$out>, $crate::error::Error> {
            memory.reduce(to, $crate::reduce::reducers::$reducer $(::<$greatest>)?)
        }
    };
}

/// Work along lines: of elements that are worked on where they are, and of elements in memory whose results go elsewhere.
macro_rules! along {
    ($blocks:ident, $memory:ident, $work:ident $(<$($argument:tt),*>)? $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        fn $blocks(_: $crate::seal::KernelSeal, work: $crate::scan::works::$work $(<$($argument),*>)?, data: &mut [Self], block: usize, inner: usize) {
            $crate::scan::blocks(work, data, block, inner);
        }

        $(#[$attribute])*
        fn $memory(
            _: $crate::seal::KernelSeal,
            work: $crate::scan::works::$work $(<$($argument),*>)?,
            memory: $crate::scan::ScanInput<'_, Self>,
        ) -> Result<::alloc::vec::Vec<Self>, $crate::error::Error> {
            memory.collect(work)
        }
    };
}

pub(crate) use {along, compiled, reduction};
