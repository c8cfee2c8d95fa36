//! Run-time dispatch: the same loop, compiled for the instructions that the machine has.
//!
//! A default build may use only the oldest instructions of its target. So each driver is a [`Task`] whose `run` is
//! inlined into a function with `#[target_feature]`; the loops inside are then vectorised by the compiler for that
//! feature set. What the scalar code must know is handed down as an [`Isa`].

/// An instruction set, as far as scalar code must know it.
pub trait Isa: Copy {
    /// `a * b + c`; with one rounding where the machine has an instruction for it.
    fn fma32(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c`; with one rounding where the machine has an instruction for it.
    fn fma64(a: f64, b: f64, c: f64) -> f64;
}

/// What the target guarantees. A fused multiply-add would be a library call here.
#[derive(Clone, Copy)]
pub struct Baseline;

impl Isa for Baseline {
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// Instructions with fused multiply-add: x86-64 with AVX2 and FMA, or AVX-512.
#[derive(Clone, Copy)]
pub struct Fused;

impl Isa for Fused {
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

/// Work to be compiled for several instruction sets. `run` must be `#[inline(always)]`.
pub trait Task {
    /// What the work yields.
    type Out;
    /// Whether the work is also compiled for AVX-512: for what computes much on elements that are at hand, and is not compiled for each
    /// expression.
    const WIDE: bool = false;
    /// Does the work.
    fn run<I: Isa>(self) -> Self::Out;
}

/// Runs the task with the best instructions that this machine has.
///
/// (It is never inlined, so that there is one copy of a task for each instruction set, however often it is dispatched.)
#[inline(never)]
pub fn dispatch<W: Task>(task: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn with_avx2<W: Task>(task: W) -> W::Out {
            task.run::<Fused>()
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn with_avx512<W: Task>(task: W) -> W::Out {
            task.run::<Fused>()
        }
        if W::WIDE
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the features were just detected; machines with them have AVX2 and FMA.
            return unsafe { with_avx512(task) };
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            // SAFETY: both features were just detected.
            return unsafe { with_avx2(task) };
        }
    }
    task.run::<Baseline>()
}
