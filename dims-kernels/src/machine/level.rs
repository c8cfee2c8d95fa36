//! The instructions that a machine has.

use core::sync::atomic::{AtomicU8, Ordering};

/// The instructions that a machine has, of those for which loops are compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub enum Level {
    /// What the target guarantees.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2,
    /// Those, and AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The best instructions that this machine has: detected at run time; without the standard library, those that the target guarantees.
///
/// (The target may have no registers for floats then, and no code that uses them may be compiled: so all of this is left out, with what asks
/// for it, where AVX2 is not guaranteed either.)
#[inline]
pub fn level() -> Level {
    /// What was found out; 0 before.
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
