//! Run-time dispatch: each loop is compiled for several instruction sets.
//!
//! A default build may use only the oldest instructions of its target. So loops are in the `run` of
//! a [`Task`], which is inlined into functions with `#[target_feature]`. There, the compiler
//! vectorizes the loops for the function's features. Scalar code gets the facts that it needs as an
//! [`Isa`].
//!
//! On targets other than x86-64 the loops are compiled once, for the instructions that the target
//! guarantees: NEON on AArch64, and SIMD on WebAssembly if the program is built with
//! `-C target-feature=+simd128`. x86-64 without the standard library also runs only instructions
//! that the target guarantees.

#[cfg(x86_vectors)]
use crate::machine::level::{Level, level};
#[cfg(x86_vectors)]
use crate::machine::params::params;

/// The facts about an instruction set that scalar code needs.
pub trait Isa: Copy {
    /// Whether `fma32` and `fma64` round once.
    const FUSED: bool;
    /// `a * b + c`, rounded once if `FUSED`.
    fn fma32(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c`, rounded once if `FUSED`.
    fn fma64(a: f64, b: f64, c: f64) -> f64;
}

/// The instructions that the target guarantees. A fused multiply-add could be a library call here.
#[derive(Clone, Copy)]
pub struct Baseline;

impl Isa for Baseline {
    const FUSED: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// Instructions with fused multiply-add: x86-64 with AVX2 and FMA, or AVX-512, and AArch64 with the
/// standard library.
#[derive(Clone, Copy)]
#[allow(dead_code)] // Not every target has them.
pub struct Fused;

impl Isa for Fused {
    const FUSED: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        fused::fma32(a, b, c)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        fused::fma64(a, b, c)
    }
}

/// The fused multiply-add intrinsics: `core` has no `mul_add`, and `libm::fma` is a function call.
/// LLVM vectorizes these in loops as it does `mul_add`.
#[cfg(all(not(feature = "std"), target_arch = "x86_64", target_feature = "fma"))]
mod fused {
    use core::arch::x86_64::{
        _mm_cvtsd_f64, _mm_cvtss_f32, _mm_fmadd_sd, _mm_fmadd_ss, _mm_set_sd, _mm_set_ss,
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn fma32(a: f32, b: f32, c: f32) -> f32 {
        // SAFETY: the target guarantees the instruction.
        unsafe { _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c))) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn fma64(a: f64, b: f64, c: f64) -> f64 {
        // SAFETY: the target guarantees the instruction.
        unsafe { _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(a), _mm_set_sd(b), _mm_set_sd(c))) }
    }
}

#[cfg(not(all(not(feature = "std"), target_arch = "x86_64", target_feature = "fma")))]
mod fused {
    use num_traits::Float;

    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn fma32(a: f32, b: f32, c: f32) -> f32 {
        Float::mul_add(a, b, c)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn fma64(a: f64, b: f64, c: f64) -> f64 {
        Float::mul_add(a, b, c)
    }
}

/// Work to be compiled for several instruction sets. `run` must be inlined where code is optimized:
/// `#[cfg_attr(not(unoptimized), inline(always))]`.
pub trait Task {
    /// The result of the work.
    type Out;
    /// Whether the work is also compiled for AVX-512. Set it for work that does a lot of arithmetic
    /// on cached elements. Loops that wait for memory do not gain from wider vectors.
    #[allow(dead_code)] // Only used on x86-64.
    const WIDE: bool = false;
    /// Whether work with `WIDE` waits for memory when there are many elements. If so, the
    /// processor's [parameters](crate::machine::params) decide whether to use AVX-512.
    #[allow(dead_code)] // Only used on x86-64.
    const WAITS: bool = false;
    /// Does the work.
    fn run<I: Isa>(self) -> Self::Out;
}

/// Runs the task with the best instructions for this machine among those that the task is compiled
/// for.
///
/// Unoptimized builds compile a task only once, for the baseline: they do not vectorize, so the
/// other copies would only cost build time.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn dispatch<W: Task>(task: W) -> W::Out {
    task.dispatch()
}

/// The copies of a task. They are methods because rustc puts a method into the codegen unit of its
/// type's module. If they were generic functions, all tasks would be in this module's unit, and one
/// thread would compile them.
trait Copies: Task + Sized {
    /// Never inlined, so that a task has one copy for each instruction set, however often it is
    /// dispatched.
    #[inline(never)]
    fn dispatch(self) -> Self::Out {
        if cfg!(unoptimized) {
            return self.run::<Baseline>();
        }
        #[cfg(x86_vectors)]
        {
            let level = level();
            if level == Level::Avx512 && Self::WIDE && (!Self::WAITS || params().wide_waits) {
                // SAFETY: the machine has the features.
                return unsafe { self.with_avx512() };
            }
            // If the target guarantees AVX2 and FMA, the baseline is not compiled.
            if cfg!(all(target_feature = "avx2", target_feature = "fma")) || level != Level::Baseline {
                // SAFETY: the target guarantees the features, or the level includes them, as each
                // level above the baseline does.
                return unsafe { self.with_avx2() };
            }
        }
        #[cfg(all(feature = "std", target_arch = "aarch64"))]
        let out = self.run::<Fused>();
        #[cfg(not(all(feature = "std", target_arch = "aarch64")))]
        let out = self.run::<Baseline>();
        out
    }

    /// # Safety
    ///
    /// The machine has the features.
    #[cfg(x86_vectors)]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn with_avx2(self) -> Self::Out {
        self.run::<Fused>()
    }

    /// # Safety
    ///
    /// The machine has the features.
    #[cfg(x86_vectors)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn with_avx512(self) -> Self::Out {
        self.run::<Fused>()
    }
}

impl<W: Task> Copies for W {}
