//! Parameters that depend on the processor: prefetch distances, block sizes, and sizes from which one kernel is faster than another.
//!
//! A table belongs to a family of processors and is chosen once per process, by `cpuid`. Kernels read it before their loops: the shapes of register
//! tiles stay constants, since they decide how a loop is compiled. To tune for another family, add a table and a line to `detect`, and
//! note the measurement beside each value that differs from [`DEFAULT`].
//!
//! Without the standard library, and on other targets than x86-64, [`DEFAULT`] is used.

// Kernels that read some of the fields are compiled for x86-64 with AVX2 alone.
#![cfg_attr(
    not(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2"))),
    allow(dead_code)
)]

#[cfg(all(target_arch = "x86_64", feature = "std"))]
use core::sync::atomic::{AtomicU8, Ordering};

/// The parameters of one family of processors.
#[derive(Debug)]
pub struct Params {
    /// Products of few rows: see `gemm::skinny`.
    pub skinny: SkinnyParams,
    /// Products of a large matrix with a vector: see `reduce::dots`.
    pub dots: DotParams,
    /// Reductions along lines in memory: how many elements ahead of the additions they are prefetched.
    pub line_prefetch_distance: usize,
    /// Reductions of rows in memory, one after the other.
    pub rows: RowSumParams,
    /// Whether loops over elements that come from memory use AVX-512, where they could.
    pub wide_waits: bool,
    /// The depth of a block (KC) where columns are packed in panels: see `gemm::panels`. Longer parts are
    /// added to the result less often, shorter panels stay in a nearer cache.
    pub panel_kc: usize,
    /// Whether the first tile of some columns packs the part of a large right matrix that it reads: see `gemm::unpacked`.
    pub packs_first_tile: bool,
    /// From so many rows on, the crate `gemm` multiplies by a transposed matrix, rather than `gemm::panels`: it packs the left matrix as
    /// well, which pays off then. (Only with the feature `gemm`.)
    pub library_rows: usize,
}

/// Products of few rows.
#[derive(Debug)]
pub struct SkinnyParams {
    /// Bytes of the large matrix from which on the kernels for few rows are used.
    pub least: usize,
    /// Bytes of the sums that are updated by one row of the large matrix after the other, where its columns are neighbours. They should stay in
    /// the second-level cache, beside the rows that pass through it.
    pub sums: usize,
    /// How many bytes ahead the large matrix is prefetched where its columns are neighbours.
    pub prefetch_across: usize,
    /// The same where the elements of a sum are neighbours.
    pub prefetch_along: usize,
}

/// Products of a large matrix with a vector.
#[derive(Debug)]
pub struct DotParams {
    /// Whether a vector times a matrix of `f32` or `f64`, whose lines are summed, runs as a product of one row: four lines at once.
    pub as_rows: bool,
    /// Else, whether two lines are multiplied at once, if they lie alike in cache lines.
    pub pairs: bool,
    /// How many elements ahead lines are prefetched.
    pub prefetch_distance: usize,
}

/// Reductions of rows in memory, one after the other: see `reduce::rows`.
#[derive(Debug)]
pub struct RowSumParams {
    /// How many neighbours of each row are added at once: 128, 64, 32 or 16, as their accumulators have registers.
    pub strip: usize,
    /// How many bytes ahead long rows are prefetched.
    pub prefetch_distance: usize,
}

/// Measured on an Intel Xeon with AVX-512, 2 MiB of second-level cache for each core.
pub const DEFAULT: Params = Params {
    skinny: SkinnyParams { least: 1 << 16, sums: 1 << 18, prefetch_across: 512, prefetch_along: 256 },
    // Beyond the end of a page, where the processor's own prefetchers stop.
    dots: DotParams { as_rows: false, pairs: true, prefetch_distance: 1024 },
    line_prefetch_distance: 1024,
    rows: RowSumParams { strip: 128, prefetch_distance: 1024 },
    wide_waits: true,
    // A panel of so many lines lies in the first-level cache of 48 KiB.
    panel_kc: 320,
    // 64 products of 128 x 128 by 128 x 128 f32: 1.15 times the time of the crate `gemm` without, 1.02 with it; 64^3 is faster without.
    packs_first_tile: true,
    // Times of panels over those of the crate, f32, 1024 sums and columns: 64 rows 0.56, 128 0.71, 256 0.84; 512^3 0.97, 768^3 1.06, 1024^3 1.08,
    // 4096 x 64 by 64 x 64 1.25.
    library_rows: 640,
};

/// AMD processors with AVX-512: Zen 4 and later, 1 MiB of second-level cache for each core. Measured on an EPYC of the family 25, model 17.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
const ZEN4: Params = Params {
    skinny: SkinnyParams { least: 1 << 16, sums: 1 << 18, prefetch_across: 512, prefetch_along: 256 },
    // 4096 x 4096 f32 by a vector, ms, with huge pages and without: pairs of lines, 1024 ahead 3.30 and 4.18; line by line, 1024 ahead 3.14 and 4.54, 64
    // ahead 2.80 and 4.10, 64 ahead with AVX2 2.63 and 3.74. Beside the sum of all elements: 1.17 line by line, 0.96 as a product of one row.
    dots: DotParams { as_rows: true, pairs: false, prefetch_distance: 64 },
    // Sums of the lines of 4096 x 4096 f32, as above: 1024 ahead 2.31 and 4.02, 64 ahead 2.30 and 3.56, 64 ahead with AVX2 2.12 and 3.18.
    line_prefetch_distance: 64,
    // The sum of the rows of 4096 x 4096 f32, eight at once, as above: strips of 128, 1024 bytes ahead 3.50 and 3.70; of 32, 256 bytes ahead 2.58
    // and 2.84.
    rows: RowSumParams { strip: 32, prefetch_distance: 256 },
    wide_waits: false,
    // 1024^3 f32 by a transposed matrix, ms: 320 23.8, 512 22.2, 1024 21.5; 64 x 4096 by 4096 x 64 0.401, 0.357, 0.364; 128 x 1152 by 1152 x 784 2.77,
    // 2.73, 2.36.
    panel_kc: 1024,
    // 64 products of f32, ms with it and without: 96^3 1.52 and 1.32, 128^3 3.65 and 3.30, 128 x 64 by 64 x 128 1.81 and 1.57; 16 of 256^3 6.08 and
    // 5.98, 4 of 512^3 10.8 and 10.8.
    packs_first_tile: false,
    // 1024^3 f32: 22.6 ms by the crate, 21.5 in panels.
    library_rows: 2048,
};

/// The parameters of this machine.
#[inline]
pub fn params() -> &'static Params {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    {
        /// The number of the table in `TABLES`, plus one; 0 before it is known.
        static FOUND: AtomicU8 = AtomicU8::new(0);
        static TABLES: [Params; 2] = [DEFAULT, ZEN4];
        let mut found = FOUND.load(Ordering::Relaxed);
        if found == 0 {
            found = detect() + 1;
            FOUND.store(found, Ordering::Relaxed);
        }
        &TABLES[usize::from(found - 1)]
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    {
        &DEFAULT
    }
}

/// The number of this machine's table.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[cold]
fn detect() -> u8 {
    use super::isa::{Level, level};
    use core::arch::x86_64::__cpuid;
    let has_avx512 = level() == Level::Avx512;
    // (The intrinsic is safe in newer versions of Rust: every x86-64 processor has the instruction.)
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction, and these leaves.
    let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1)) };
    u8::from(has_avx512 && is_amd([vendor.ebx, vendor.edx, vendor.ecx]) && family(version.eax) >= 0x19)
}

/// Whether the vendor's name is AMD's, in the registers in which `cpuid` returns it.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
fn is_amd(vendor: [u32; 3]) -> bool {
    vendor.map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD"
}

/// The family of a processor, from what leaf 1 of `cpuid` says of its version.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
fn family(version: u32) -> u32 {
    let (base, extended) = (version >> 8 & 0xf, version >> 20 & 0xff);
    if base == 0xf { base + extended } else { base }
}

#[cfg(all(test, target_arch = "x86_64", feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn vendor_and_family_are_those_of_the_manuals() {
        // "Auth", "enti", "cAMD", as EBX, EDX and ECX hold them (AMD64 Architecture Programmer's Manual, volume 3, appendix E).
        assert!(is_amd([0x6874_7541, 0x6974_6e65, 0x444d_4163]));
        // "Genu", "ineI", "ntel".
        assert!(!is_amd([0x756e_6547, 0x4965_6e69, 0x6c65_746e]));
        // An EPYC 9004 (family 25, model 17), and a Xeon of the fourth generation (family 6).
        assert_eq!(family(0x00a1_0f11), 25);
        assert_eq!(family(0x0008_06f8), 6);
    }

    #[test]
    fn the_table_is_chosen_once() {
        assert!(core::ptr::eq(params(), params()));
    }
}
