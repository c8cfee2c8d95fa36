//! The memory bandwidth probe: the sum of an array, on one thread.

/// The sum of the elements in whole chunks of 64. With 64 partial sums, consecutive additions are
/// independent.
pub fn sum(x: &[f32]) -> f32 {
    #[inline(always)]
    fn lanes(x: &[f32]) -> f32 {
        let mut lanes = [0.0; 64];
        for chunk in x.as_chunks::<64>().0 {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += x;
            }
        }
        lanes.iter().sum()
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2(x: &[f32]) -> f32 {
            lanes(x)
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has the feature.
            return unsafe { with_avx2(x) };
        }
    }
    lanes(x)
}
