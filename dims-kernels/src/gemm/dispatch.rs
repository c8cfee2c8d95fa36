//! Chooses the kernel that computes a product. The thresholds and their measurements are in
//! `machine::params`.

use crate::compiled::compiled;
#[cfg(feature = "blas")]
use crate::gemm::blas;
use crate::gemm::{Product, library, loops};
#[cfg(x86_vectors)]
use crate::gemm::{panels, skinny, unpacked};
#[cfg(x86_vectors)]
use crate::machine::level::{Level, level};
use crate::machine::params::{self, params};
use crate::scalar::Num;
use core::any::TypeId;
use num_complex::{Complex32, Complex64};

/// The algorithm that computes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // Not every target and set of features has all routes.
pub enum Route {
    /// A BLAS that the user has installed.
    Blas,
    /// Register tiles that read both matrices in place.
    Unpacked,
    /// Loops over register tiles of any element type, without packing.
    SmallLoops,
    /// A few rows by a large matrix, or a large matrix by a few columns. The large matrix is read
    /// once, in memory order.
    SkinnyRows,
    /// The right matrix is packed into micro-panels; lists of offsets locate the rows, the
    /// columns and the terms of the sums.
    Panels,
    /// The crate `gemm`, or `matrixmultiply` without the feature `gemm`.
    Library,
    /// Each row of the result as a sum of scaled rows of the right matrix, for any element type.
    RowLoops,
}

impl Route {
    /// All routes.
    pub const ALL: [Route; 7] = [
        Route::Blas,
        Route::Unpacked,
        Route::SmallLoops,
        Route::SkinnyRows,
        Route::Panels,
        Route::Library,
        Route::RowLoops,
    ];
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementClass {
    /// `f32` and `f64`: there are vector kernels and a library.
    Real,
    /// Complex numbers of `f32` or `f64`: there is a library.
    Complex,
    Other,
}

impl ElementClass {
    /// In optimized code, the result is a constant.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn of<T: 'static>() -> Self {
        let is = |other: TypeId| TypeId::of::<T>() == other;
        if is(TypeId::of::<f32>()) || is(TypeId::of::<f64>()) {
            ElementClass::Real
        } else if is(TypeId::of::<Complex32>()) || is(TypeId::of::<Complex64>()) {
            ElementClass::Complex
        } else {
            ElementClass::Other
        }
    }
}

/// The parts of a product's layout that the types of the operands determine.
#[derive(Clone, Copy, Debug)]
pub struct KnownLayout {
    /// Whether the result is column-major, so that the transposed product is computed.
    pub transposed: bool,
    /// Whether the rows of the right matrix and of the result are contiguous in the product that is
    /// computed.
    pub row_major_b: bool,
}

/// Chooses the kernel of a product whose result is row-major. `row_major` says whether the rows of
/// the right matrix and of the result are contiguous.
#[cfg_attr(not(unoptimized), inline(always))]
fn route<T: Num>(product: &Product<T>, row_major: bool) -> Route {
    match ElementClass::of::<T>() {
        _ if is_unpacked(product, row_major) => Route::Unpacked,
        ElementClass::Real | ElementClass::Complex if is_for_blas(product) => Route::Blas,
        _ if is_small_product(product.m, product.n, product.k) => Route::SmallLoops,
        ElementClass::Real if is_for_skinny(product) && has_vectors() => Route::SkinnyRows,
        ElementClass::Real if is_for_panels(product) && has_vectors() => Route::Panels,
        ElementClass::Real | ElementClass::Complex => Route::Library,
        ElementClass::Other => Route::RowLoops,
    }
}

/// Computes a product. If the caller passes a constant layout, the orientation of the matrices need
/// not be found at run time.
///
/// The test for [`Route::Unpacked`] comes first and is inlined into the caller, because running all
/// tests would slow down the smallest products.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; `layout`, if given, is the layout of the matrices.
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn multiply_as<T: Num>(product: &Product<T>, layout: Option<KnownLayout>) {
    let is_transposed = layout.map_or(!product.has_row_major_c(), |layout| layout.transposed);
    let row_major = layout.map(|layout| layout.row_major_b);
    // SAFETY: the caller's promise; the transposed product computes the same elements.
    unsafe {
        // Two calls, because a single one would need a copy of the product, which was just
        // assembled. Copying it takes as long as choosing its kernel.
        if is_transposed {
            multiply_oriented(&product.transposed(), row_major);
        } else {
            multiply_oriented(product, row_major);
        }
    }
}

/// Computes a product whose result is row-major. `row_major` says whether the rows of the right
/// matrix and of the result are contiguous, if the caller knows.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; `row_major` is correct if it is given.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn multiply_oriented<T: Num>(product: &Product<T>, row_major: Option<bool>) {
    let row_major = row_major.unwrap_or_else(|| has_row_major_b(product));
    // SAFETY: the caller's promise; the product takes `Route::Unpacked` only if it can.
    unsafe {
        if is_unpacked(product, row_major) {
            run(Route::Unpacked, product);
        } else {
            multiply(product);
        }
    }
}

compiled! {
    for f32 f64:

    /// Computes a product.
    ///
    /// # Safety
    ///
    /// As for [`crate::gemm::multiply`]; the result is row-major, as [`Product::with_row_major_c`]
    /// makes it.
    unsafe fn multiply<'a, T: Num>(product: &'a Product<T>) {
        // SAFETY: the caller's promise.
        unsafe { multiply_routed(product) }
    }
}

/// [`multiply`] as a generic function.
///
/// # Safety
///
/// As for [`multiply`].
unsafe fn multiply_routed<T: Num>(product: &Product<T>) {
    // SAFETY: the caller's promise; the route can compute the product.
    unsafe { run(route(product, has_row_major_b(product)), product) }
}

/// Computes a product by the given route, to compare routes. Returns whether the route can compute
/// it; if not, nothing is written.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`].
#[doc(hidden)]
pub unsafe fn multiply_by<T: Num>(route: Route, product: &Product<T>) -> bool {
    let product = product.with_row_major_c();
    let (kind, &Product { m, k, n, ref b, c_col, .. }) = (ElementClass::of::<T>(), &product);
    // The function `route` counts an empty product as small, so `SkinnyRows` and `Panels` need not
    // support it.
    let has_elements = m > 0 && k > 0 && n > 0;
    let can_run = match route {
        Route::Blas => has_blas_for(&product),
        Route::Unpacked => kind == ElementClass::Real && has_vectors() && b.col == 1 && c_col == 1,
        Route::SkinnyRows => {
            kind == ElementClass::Real && has_vectors() && has_elements && has_few_rows(&product)
        }
        Route::Panels => kind == ElementClass::Real && has_vectors() && has_elements,
        Route::Library => kind != ElementClass::Other,
        Route::SmallLoops | Route::RowLoops => true,
    };
    if can_run {
        // SAFETY: the caller's promise; the route can compute the product.
        unsafe { run(route, &product) };
    }
    can_run
}

/// The route of a product.
#[doc(hidden)]
pub fn route_of<T: Num>(product: &Product<T>) -> Route {
    let product = product.with_row_major_c();
    route(&product, has_row_major_b(&product))
}

/// # Safety
///
/// As for [`crate::gemm::multiply`]; the route can compute the product, whose result is row-major.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn run<T: Num>(route: Route, product: &Product<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match route {
            #[cfg(feature = "blas")]
            Route::Blas => blas::multiply(product),
            #[cfg(x86_vectors)]
            Route::Unpacked => unpacked::multiply(level(), product),
            #[cfg(x86_vectors)]
            Route::SkinnyRows => skinny::multiply(level(), product),
            #[cfg(x86_vectors)]
            Route::Panels => panels::multiply_strided(product),
            Route::SmallLoops => loops::small(product),
            Route::Library => library::multiply(product),
            Route::RowLoops => loops::by_rows(product),
            #[allow(unreachable_patterns)] // All routes may be compiled.
            _ => unreachable!("the route is for other machines"),
        }
    }
}

/// Whether the machine has the vectors that the kernels for `f32` and `f64` need.
#[cfg_attr(not(unoptimized), inline(always))]
fn has_vectors() -> bool {
    #[cfg(x86_vectors)]
    return level() != Level::Baseline;
    #[cfg(not(x86_vectors))]
    false
}

/// Whether this type has vector kernels that the machine supports.
#[inline]
pub fn has_vector_kernels<T: 'static>() -> bool {
    ElementClass::of::<T>() == ElementClass::Real && has_vectors()
}

/// Whether a BLAS that multiplies this type is installed.
#[inline]
#[cfg_attr(not(feature = "blas"), allow(clippy::extra_unused_type_parameters))]
#[cfg_attr(not(x86_vectors), allow(dead_code))]
pub fn has_blas<T: Num>() -> bool {
    #[cfg(feature = "blas")]
    return blas::is_installed::<T>();
    #[cfg(not(feature = "blas"))]
    false
}

/// Whether the user's BLAS can compute the product.
#[cfg_attr(not(unoptimized), inline(always))]
#[cfg_attr(not(feature = "blas"), allow(unused_variables))]
fn has_blas_for<T: Num>(product: &Product<T>) -> bool {
    #[cfg(feature = "blas")]
    return blas::can_multiply(product);
    #[cfg(not(feature = "blas"))]
    false
}

/// Whether the user's BLAS computes the product: it can, and the product is not small.
#[cfg_attr(not(unoptimized), inline(always))]
fn is_for_blas<T: Num>(product: &Product<T>) -> bool {
    cfg!(feature = "blas") && !is_small_product(product.m, product.n, product.k) && has_blas_for(product)
}

/// Whether a product of these sizes is too small for a library's packing to pay off.
#[inline]
pub fn is_small_product(m: usize, n: usize, k: usize) -> bool {
    // On 32-bit targets, `m * n * k` may overflow although each matrix fits into memory.
    m.saturating_mul(n).saturating_mul(k) <= params::SMALL_PRODUCT
}

/// Whether the rows of the right matrix and of the result are contiguous.
#[cfg_attr(not(unoptimized), inline(always))]
fn has_row_major_b<T>(product: &Product<T>) -> bool {
    product.b.col == 1 && product.c_col == 1
}

/// Whether the product is computed by [`Route::Unpacked`].
#[cfg_attr(not(unoptimized), inline(always))]
fn is_unpacked<T: Num>(product: &Product<T>, row_major: bool) -> bool {
    ElementClass::of::<T>() == ElementClass::Real
        && row_major
        && is_for_unpacked(product)
        && !is_for_blas(product)
        && has_vectors()
}

/// Whether a product by a row-major right matrix is at least as fast in place as with packing.
#[cfg_attr(not(unoptimized), inline(always))]
fn is_for_unpacked<T>(product: &Product<T>) -> bool {
    let &Product { m, k, n, ref b, .. } = product;
    // For such small sizes, only the test of `n` can fail.
    if (m | k | n) < params::unpacked::FEW_LINES {
        return n > 1;
    }
    let size = size_of::<T>();
    let line = b.row.unsigned_abs().saturating_mul(size);
    // The lines of the right matrix need too many TLB entries, or share too few sets of the data
    // caches.
    let is_far = k > params::unpacked::FEW_LINES && line >= 4 * params::PAGE
        || k >= params::unpacked::MANY_LINES && line.is_multiple_of(params::PAGE);
    // A tile has too few rows to keep the multipliers busy. If one tile spans a whole line, the
    // lines are read in memory order, which is still fast enough. A right matrix of up to four
    // pages is fast enough, too.
    let is_short = m < params::unpacked::MIN_ROWS
        && n.saturating_mul(size) > params::unpacked::TILE_BYTES
        && k.saturating_mul(n) > 4 * params::PAGE / size;
    // The right matrix may come from memory, and too few rows use it.
    let is_cold = m < params::unpacked::MIN_SHARING_ROWS
        && k.saturating_mul(n).saturating_mul(size) > params::unpacked::MAX_RIGHT_BYTES;
    n > 1
        && !is_far
        && !is_short
        && !is_cold
        && m.saturating_mul(k).saturating_mul(size) <= params::unpacked::MAX_LEFT_BYTES
}

/// Whether the left matrix has one to [`MAX_ROWS`](params::skinny::MAX_ROWS) rows, and the right
/// one is contiguous along one of its axes; if the left matrix has more rows, whether this is true
/// of the transposed product.
#[inline]
fn has_few_rows<T>(product: &Product<T>) -> bool {
    let Product { m, n, a, b, .. } = product;
    let (rows, large) = if *m <= params::skinny::MAX_ROWS { (*m, b) } else { (*n, a) };
    (1..=params::skinny::MAX_ROWS).contains(&rows) && (large.row == 1 || large.col == 1)
}

/// Whether the product can be computed by [`Route::SkinnyRows`] and is large enough for it.
#[inline]
fn is_for_skinny<T>(product: &Product<T>) -> bool {
    let &Product { m, k, n, ref a, ref b, .. } = product;
    if !has_few_rows(product) {
        return false;
    }
    let (is_along, rows, columns) =
        if m <= params::skinny::MAX_ROWS { (b.col != 1, m, n) } else { (a.row != 1, n, m) };
    let least = params().skinny.least;
    if !is_along {
        return is_large_by_few_rows::<T>(rows, columns, k, least);
    }
    // The crate `gemm` has special loops for products with a vector, which are faster for short
    // lines.
    let is_for_library = cfg!(feature = "gemm") && rows == 1 && k < params::skinny::MIN_LINE;
    !is_for_library && is_large_by_few_rows::<T>(rows, columns, k, least / 2)
}

/// Whether a product of `m` rows by a `k` x `n` matrix of `T` usually runs by
/// [`Route::SkinnyRows`], provided that the matrix is contiguous along its rows or columns.
#[inline]
pub fn is_skinny<T: 'static>(m: usize, n: usize, k: usize) -> bool {
    m <= params::skinny::MAX_ROWS
        && is_large_by_few_rows::<T>(m, n, k, params().skinny.least)
        && has_vector_kernels::<T>()
}

/// Whether the `k` x `n` matrix has at least `least` bytes, neither `k` nor `n` is small, and `m`
/// is at most [`MAX_ROWS`](params::skinny::MAX_ROWS).
#[cfg_attr(not(unoptimized), inline(always))]
fn is_large_by_few_rows<T>(m: usize, n: usize, k: usize, least: usize) -> bool {
    m <= params::skinny::MAX_ROWS
        && n >= params::skinny::MIN_SIDE
        && k >= params::skinny::MIN_SIDE
        && k.saturating_mul(n).saturating_mul(size_of::<T>()) >= least
}

/// Whether the product is faster with panels than with the library.
#[inline]
fn is_for_panels<T>(product: &Product<T>) -> bool {
    let Product { m, n, b, c_col, .. } = product;
    b.row == 1 && b.col != 1 && *c_col == 1 && fills_panels(*m, *n) && *m < library_rows()
}

/// Whether there are enough rows and columns for packed panels.
#[inline]
pub fn fills_panels(m: usize, n: usize) -> bool {
    m >= params::panels::MIN_ROWS && n >= params::panels::MIN_COLUMNS
}

/// The number of rows from which the library multiplies by a column-major matrix at least as fast
/// as `panels`, because it also packs the left matrix; `usize::MAX` without the feature `gemm`.
#[inline]
pub fn library_rows() -> usize {
    if cfg!(feature = "gemm") { params().library_rows } else { usize::MAX }
}
