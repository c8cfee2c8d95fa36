//! Parameters of the kernels: block sizes, prefetch distances, and sizes from which one kernel is
//! faster than another.
//!
//! In matrix products, a register tile is MR x NR, a packed block of the left matrix MC x KC, and a
//! packed block of the right matrix KC x NC. In measurements, `N^3` is a product of two N x N
//! matrices.
//!
//! Parameters that depend on the processor are in tables ([`Params`]), one for each family of
//! processors. One table is chosen per process, by `cpuid`. The shapes of register tiles are
//! constants, because they decide how a loop is compiled. To tune for another family, add a table,
//! list it in `TABLES`, choose it in `detect`, and note the measurement next to each value that
//! differs from [`DEFAULT`].
//!
//! Without the standard library, and on targets other than x86-64, [`DEFAULT`] is used.

// Some parameters are read only by kernels for AVX2 and AVX-512.
#![cfg_attr(not(x86_vectors), allow(dead_code))]

#[cfg(all(target_arch = "x86_64", feature = "std"))]
use core::sync::atomic::{AtomicU8, Ordering};

/// A product of at most this many multiplications is too small for a library's packing to pay off.
pub const SMALL_PRODUCT: usize = 16 * 16 * 16;

/// Small products list the offsets of a sum over several loops if there are at most this many, so
/// that the list stays in the first-level cache.
pub const MAX_SCATTERED: usize = 1 << 10;

/// Bytes of a page. Lines whose distance is a multiple of it fall into few sets of the data caches,
/// and each line needs a separate TLB entry.
pub const PAGE: usize = 4096;

/// Register tiles of `f32` and `f64`: MR rows by NR columns, where NR is two vectors.
pub mod tile {
    /// Accumulators with AVX2: 12 of 16 registers. Others hold the factors.
    pub const ACCUMULATORS_AVX2: usize = 12;
    /// MR with AVX2.
    pub const MR_AVX2: usize = ACCUMULATORS_AVX2 / 2;
    /// Accumulators with AVX-512: 24 of 32 registers.
    pub const ACCUMULATORS_AVX512: usize = 24;
    /// MR with AVX-512.
    pub const MR_AVX512: usize = ACCUMULATORS_AVX512 / 2;
    /// The greatest NR: two vectors of 16 `f32`.
    pub const MAX_NR: usize = 32;
    /// The maximum number of rows of a tile.
    pub const MAX_MR: usize = 16;
}

/// Products whose operands are read in place: see `gemm::unpacked`.
pub mod unpacked {
    /// The minimum number of rows, unless the right matrix is narrow or small. With fewer, there
    /// are too few sums to keep the multipliers busy.
    pub const MIN_ROWS: usize = 8;
    /// The largest left matrix, in bytes, that stays in the second-level cache. It is read again
    /// for every two vectors of columns.
    pub const MAX_LEFT_BYTES: usize = 1 << 20;
    /// The largest right matrix, in bytes, that is likely to be in the second-level cache. A larger
    /// one may come from memory, and hardware prefetchers do not follow the strides between its
    /// lines.
    pub const MAX_RIGHT_BYTES: usize = 1 << 18;
    /// The maximum width of a tile in bytes: two vectors of AVX-512.
    pub const TILE_BYTES: usize = 128;
    /// With at least this many rows of the left matrix, the right matrix is used so often that it
    /// does not matter whether it comes from memory.
    pub const MIN_SHARING_ROWS: usize = 128;
    /// A sum over at most this many rows of the right matrix needs few TLB entries, whatever their
    /// stride.
    pub const FEW_LINES: usize = 32;
    /// A sum over at least this many rows is slow if they fall into few sets of the data caches.
    pub const MANY_LINES: usize = 512;
    /// Sums of at most this many elements take less time to compute than to write. They are
    /// computed one row of tiles after another, which writes memory fastest.
    pub const MAX_SHALLOW_K: usize = 16;
    /// The least span of the rows of a right matrix, in bytes, for which packing helps. A matrix
    /// with a smaller span stays in the first-level cache.
    pub const MIN_SPAN_BYTES: usize = 1 << 15;
    /// The minimum number of rows for packing. With fewer, packed columns are not read often
    /// enough.
    pub const MIN_ROWS_TO_PACK: usize = 48;
}

/// Products in packed micro-panels: see `gemm::panels`. KC depends on the processor:
/// [`Params::panel_kc`].
pub mod panels {
    /// The number of columns of a block of the right matrix. With the KC of
    /// [`DEFAULT`](super::DEFAULT), a packed block fits into the second-level cache.
    pub const NC: usize = 256;
    /// The number of rows of a block of the left matrix. With the same KC, a packed block also fits
    /// into that cache.
    pub const MC: usize = 240;
    /// The minimum number of columns. Fewer would leave too much of a micro-panel empty.
    pub const MIN_COLUMNS: usize = 16;
    /// The minimum number of rows. With fewer, packing columns does not pay off.
    pub const MIN_ROWS: usize = 4;
    /// If the left matrix has at most this many tiles of rows, strips of the right matrix with
    /// adjacent columns are not packed: packing pays off only where a strip is read often.
    pub const MAX_TILES_UNPACKED: usize = 20;
    /// The least average length of runs of adjacent elements that are copied as parts of a vector.
    pub const MIN_RUN: usize = 4;
    /// The maximum number of rows, of columns or of elements of a sum whose offsets a plan lists.
    pub const MAX_OFFSETS: usize = 1 << 20;
}

/// Products of few rows with a large matrix: see `gemm::skinny`.
pub mod skinny {
    /// The maximum number of rows. With more, a kernel that packs the matrix is as fast.
    pub const MAX_ROWS: usize = 8;
    /// The minimum number of rows, and of columns, of the large matrix.
    pub const MIN_SIDE: usize = 32;
    /// With the feature `gemm`, the crate `gemm` multiplies shorter lines by a vector. Speed for
    /// lines of f32, in GB/s, here and in `gemm`: 64 elements 21 and 33, 128 elements 41 and 31.
    pub const MIN_LINE: usize = 128;
    /// How many rows of the large matrix form a block if its columns are adjacent. The sums over
    /// blocks are added in pairs, so the rounding error grows with the logarithm of the number of
    /// blocks.
    pub const KC: usize = 256;
    /// How many vectors of a line are multiplied before their sums are added to the totals. Short
    /// partial sums keep rounding errors small.
    pub const VECTORS_AT_ONCE: usize = 256;
    /// How many rows of the large matrix are added at once if its columns are adjacent: each vector
    /// of sums is loaded and stored once for these rows.
    pub const ROWS_AT_ONCE: usize = 8;
    /// A group of lines that are multiplied at once is prefetched while the group before it is
    /// multiplied, if the lines are nearly adjacent and together have at most this many bytes.
    /// Otherwise, later elements of the same lines are prefetched.
    pub const MAX_GROUP_BYTES: usize = 16 << 10;
}

/// The parameters of one family of processors.
#[derive(Debug)]
pub struct Params {
    /// Products of few rows: see `gemm::skinny`.
    pub skinny: SkinnyParams,
    /// Products of a large matrix with a vector: see `reduce::dots`.
    pub dots: DotParams,
    /// The prefetch distance of reductions along lines in memory, in elements.
    pub line_prefetch_distance: usize,
    /// Reductions of rows in memory: see `reduce::rows`.
    pub rows: RowSumParams,
    /// Whether tasks with `WIDE` and `WAITS` use AVX-512: see `machine::isa::Task`.
    pub wide_waits: bool,
    /// The maximum depth of a block (KC) in `gemm::panels`. With deeper blocks the result is
    /// updated less often; shallower panels stay in a nearer cache.
    pub panel_kc: usize,
    /// Whether the first tile of some columns packs the part of a large right matrix that it reads:
    /// see `gemm::unpacked`.
    pub packs_first_tile: bool,
    /// The number of rows from which the crate `gemm` multiplies by a transposed matrix, instead of
    /// `gemm::panels`: the crate also packs the left matrix, which then pays off. Used only with
    /// the feature `gemm`.
    pub library_rows: usize,
}

/// Products of few rows.
#[derive(Debug)]
pub struct SkinnyParams {
    /// The minimum size of the large matrix in bytes; half of this where the elements of a sum are
    /// adjacent.
    pub least: usize,
    /// Bytes of the sums that are updated together, where the columns of the large matrix are
    /// adjacent. These sums should stay in the second-level cache while rows pass through it.
    pub sums: usize,
    /// The prefetch distance in the large matrix, in bytes, where its columns are adjacent.
    pub prefetch_across: usize,
    /// The prefetch distance in bytes where the elements of a sum are adjacent.
    pub prefetch_along: usize,
}

/// Products of a large matrix with a vector.
#[derive(Debug)]
pub struct DotParams {
    /// Whether a vector times a matrix of `f32` or `f64`, summed along the lines, runs as a product
    /// of one row.
    pub as_rows: bool,
    /// Whether two lines with the same alignment in cache lines are multiplied at once, if
    /// [`as_rows`](DotParams::as_rows) does not apply.
    pub pairs: bool,
    /// The prefetch distance in elements.
    pub prefetch_distance: usize,
}

/// Reductions of rows in memory, except rows at computed indices: see `reduce::rows`.
#[derive(Debug)]
pub struct RowSumParams {
    /// The maximum number of adjacent elements of each row that are added at once: 128, 64 or 32.
    pub strip: usize,
    /// The prefetch distance along a row, in bytes.
    pub prefetch_distance: usize,
}

/// The parameters of processors without a table of their own, measured on an Intel Xeon with
/// AVX-512 and 2 MiB of second-level cache per core.
pub const DEFAULT: Params = Params {
    skinny: SkinnyParams { least: 1 << 16, sums: 1 << 18, prefetch_across: 512, prefetch_along: 256 },
    // The distance reaches past the end of a page, where the hardware prefetchers stop.
    dots: DotParams { as_rows: false, pairs: true, prefetch_distance: 1024 },
    line_prefetch_distance: 1024,
    rows: RowSumParams { strip: 128, prefetch_distance: 1024 },
    wide_waits: true,
    // A micro-panel of this depth fits into the first-level cache of 48 KiB.
    panel_kc: 320,
    // 64 products of 128^3 f32: without packing 1.15 times the time of the crate `gemm`, with
    // packing 1.02; 64^3 is faster without packing.
    packs_first_tile: true,
    // Time of panels divided by the time of the crate `gemm`, f32, 1024 columns and sums of 1024:
    // 64 rows 0.56, 128 0.71, 256 0.84; 512^3 0.97, 768^3 1.06, 1024^3 1.08, 4096 x 64 by 64 x 64
    // 1.25.
    library_rows: 640,
};

/// AMD processors with AVX-512: Zen 4 and later, 1 MiB of second-level cache per core. Measured on
/// an EPYC of family 25, model 17.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
const ZEN4: Params = Params {
    skinny: SkinnyParams { least: 1 << 16, sums: 1 << 18, prefetch_across: 512, prefetch_along: 256 },
    // 4096 x 4096 f32 by a vector, ms, with huge pages and without: pairs of lines, 1024 ahead 3.30
    // and 4.18; line by line, 1024 ahead 3.14 and 4.54, 64 ahead 2.80 and 4.10, 64 ahead with AVX2
    // 2.63 and 3.74. Divided by the time of the sum of all elements: 1.17 line by line, 0.96 as a
    // product of one row.
    dots: DotParams { as_rows: true, pairs: false, prefetch_distance: 64 },
    // Sums of the lines of 4096 x 4096 f32, ms, with huge pages and without: 1024 ahead 2.31 and
    // 4.02, 64 ahead 2.30 and 3.56, 64 ahead with AVX2 2.12 and 3.18.
    line_prefetch_distance: 64,
    // The sum of the rows of 4096 x 4096 f32, eight at once, ms, with huge pages and without:
    // strips of 128, 1024 bytes ahead 3.50 and 3.70; of 32, 256 bytes ahead 2.58 and 2.84.
    rows: RowSumParams { strip: 32, prefetch_distance: 256 },
    wide_waits: false,
    // Products with a transposed matrix, f32, ms, with a KC of 320, 512 and 1024: 1024^3 23.8,
    // 22.2, 21.5; 64 x 4096 by 4096 x 64 0.401, 0.357, 0.364; 128 x 1152 by 1152 x 784 2.77, 2.73,
    // 2.36.
    panel_kc: 1024,
    // Batched products of f32, ms, with packing and without: 64 of 96^3 1.52 and 1.32, of 128^3
    // 3.65 and 3.30, of 128 x 64 by 64 x 128 1.81 and 1.57; 16 of 256^3 6.08 and 5.98; 4 of 512^3
    // 10.8 and 10.8.
    packs_first_tile: false,
    // 1024^3 f32: 22.6 ms with the crate `gemm`, 21.5 in panels.
    library_rows: 2048,
};

/// The parameters of this machine.
#[inline]
pub fn params() -> &'static Params {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    {
        /// The index of the table in `TABLES`, plus one; 0 before detection.
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

/// The index of this machine's table.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[cold]
fn detect() -> u8 {
    use super::level::{Level, level};
    use core::arch::x86_64::__cpuid;
    let has_avx512 = level() == Level::Avx512;
    // (The intrinsic is safe in newer versions of Rust.)
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction, and these leaves.
    let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1)) };
    u8::from(has_avx512 && is_amd([vendor.ebx, vendor.edx, vendor.ecx]) && family(version.eax) >= 0x19)
}

/// Whether the vendor's name is AMD's. EBX, EDX and ECX hold the name, in this order.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
fn is_amd(vendor: [u32; 3]) -> bool {
    vendor.map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD"
}

/// The family of a processor, from EAX of `cpuid` leaf 1.
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
        // "Auth", "enti", "cAMD" in EBX, EDX and ECX (AMD64 Architecture Programmer's Manual,
        // volume 3, appendix E).
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
