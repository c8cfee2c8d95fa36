//! The instruction sets of a machine.

use core::sync::atomic::{AtomicU8, Ordering};

/// An instruction set for which loops are compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub enum Level {
    /// The instructions that the target guarantees.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2,
    /// AVX2, FMA, and AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The best instruction set of this machine, detected at run time. Without the standard library,
/// the best one that the target guarantees.
///
/// Without the standard library and without guaranteed AVX2, this module and its callers are not
/// compiled: the target may have no floating-point registers.
#[inline]
pub fn level() -> Level {
    /// The detected level; 0 before detection.
    static FOUND: AtomicU8 = AtomicU8::new(0);
    match FOUND.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Baseline,
        _ => {
            let found = detect();
            FOUND.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

#[cold]
fn detect() -> Level {
    macro_rules! has {
        ($($feature:tt)*) => {{
            #[cfg(feature = "std")]
            let has = $(std::is_x86_feature_detected!($feature))&&*;
            #[cfg(not(feature = "std"))]
            let has = $(cfg!(target_feature = $feature))&&*;
            has
        }};
    }
    if !has!("avx2" "fma") {
        Level::Baseline
    } else if !has!("avx512f" "avx512bw" "avx512dq" "avx512vl") {
        Level::Avx2
    } else {
        Level::Avx512
    }
}
