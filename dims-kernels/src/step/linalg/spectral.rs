//! Orthogonal factors, eigenvalues and singular values of one matrix, and functions of these.

use super::accuracy::are_accurate;
use super::range::{exponent_out_of_range, scale};
use super::stack::{Failure, Stack};
use super::views::{
    by_columns, by_columns_mut, by_rows, by_rows_mut, to_columns, to_rows, transpose, upper_to_rows,
};
use super::workspace::{ReusedElements, Workspace, cause_of_system, check_finite, copied, hermitian};
use super::{MatrixElement, MatrixSizes, solving};
use crate::error::MatrixFailure;
use crate::scalar::{Num, Real};
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::householder;
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::{factor, solve as qr_solve};
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors};
use faer::linalg::triangular_inverse::invert_upper_triangular;
use faer::linalg::triangular_solve as triangular;
use faer::{Accum, Conj, MatMut, MatRef, Par};

/// The coefficients of the reflections of a QR decomposition, in blocks of columns, and the number
/// of rows of a block. The vectors of the reflections are below the triangular factor.
struct Reflections<'w, T> {
    blocks: &'w [T],
    block: usize,
}

/// Overwrites a column-major matrix with its QR decomposition: the upper triangular factor, and the
/// vectors of the reflections below the diagonal. Also returns the rank that `faer` found.
fn factorize<'w, T: MatrixElement>(
    columns: &mut [T],
    [rows, least]: [usize; 2],
    blocks: &'w mut ReusedElements<T>,
    (stack, par): (&mut Stack, Par),
) -> Result<(Reflections<'w, T>, usize), Failure> {
    let count = columns.len() / rows;
    let block = factor::recommended_block_size::<T>(rows, count);
    let blocks = blocks.zeros(block * least)?;
    let scratch = factor::qr_in_place_scratch::<T>(rows, count, block, par, Default::default());
    let found = factor::qr_in_place(
        by_columns_mut(columns, rows, count),
        by_columns_mut(blocks, block, least),
        par,
        stack.of(scratch)?,
        Default::default(),
    );
    Ok((Reflections { blocks, block }, found.rank))
}

/// Multiplies a column-major matrix by the orthogonal factor from the left.
fn reflect<T: MatrixElement>(
    factors: MatRef<'_, T>,
    Reflections { blocks, block }: Reflections<'_, T>,
    columns: &mut [T],
    (stack, par): (&mut Stack, Par),
) -> Result<(), Failure> {
    let (rows, least) = (factors.nrows(), factors.ncols());
    let count = columns.len() / rows;
    let scratch =
        householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(rows, block, count);
    householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        factors,
        by_columns(blocks, block, least),
        Conj::No,
        by_columns_mut(columns, rows, count),
        par,
        stack.of(scratch)?,
    );
    Ok(())
}

/// The orthogonal and the upper triangular factor.
pub(super) fn qr<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    [q, r]: [&mut [T]; 2],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows, columns, .. } = sizes;
    let least = sizes.least();
    check_finite(a)?;
    if least == 0 {
        return Ok(());
    }
    let Workspace { copies: [copy, reflections, thin, _], stack, par } = workspace;
    let par = *par;
    let copy = copy.any(a.len())?;
    to_columns(a, rows, columns, copy);
    let exponent = exponent_out_of_range(a);
    if let Some(exponent) = exponent {
        scale(copy, -exponent);
    }
    let (reflections, _) = factorize(copy, [rows, least], reflections, (&mut *stack, par))?;
    upper_to_rows(copy, rows, [least, columns], r);
    for (row, r) in r.chunks_exact_mut(columns).enumerate() {
        r[..row].fill(T::ZERO);
    }
    if let Some(exponent) = exponent {
        scale(r, exponent);
    }
    let thin = thin.zeros(rows * least)?;
    (0..least).for_each(|at| thin[at * rows + at] = T::ONE);
    reflect(by_columns(copy, rows, columns).subcols(0, least), reflections, thin, (stack, par))?;
    to_rows(thin, rows, least, q);
    Ok(())
}

/// The eigenvalues of the Hermitian part, and the eigenvectors as columns.
pub(super) fn eigh<T: MatrixElement>(
    a: &[T],
    size: usize,
    values: &mut [T::Part],
    vectors: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    check_finite(a)?;
    if size == 0 {
        return Ok(());
    }
    let Workspace { copies: [copy, own, diagonal, _], stack, par } = workspace;
    let copy = copy.any(a.len())?;
    hermitian(a, size, copy);
    let exponent =
        exponent_out_of_range(copy.chunks_exact(size).enumerate().flat_map(|(at, own)| &own[at..]));
    if let Some(exponent) = exponent {
        scale(copy, -exponent);
    }
    let (own, diagonal) = (own.any(a.len())?, diagonal.any(size)?);
    let scratch =
        evd::self_adjoint_evd_scratch::<T>(size, ComputeEigenvectors::Yes, *par, Default::default());
    let found = evd::self_adjoint_evd(
        by_columns(copy, size, size),
        DiagMut::from_slice_mut(diagonal),
        Some(by_columns_mut(own, size, size)),
        *par,
        stack.of(scratch)?,
        Default::default(),
    );
    found.map_err(|_| MatrixFailure::NotConverged)?;
    values.iter_mut().zip(&*diagonal).for_each(|(to, value)| *to = value.part());
    if let Some(exponent) = exponent {
        scale(values, exponent);
    }
    to_rows(own, size, size, vectors);
    Ok(())
}

/// The singular values, and the left and right singular vectors as columns in column-major order.
/// Returns the exponent of the power of two by which the singular values must be multiplied.
fn decompose<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    values: &mut [T],
    vectors: Option<[MatMut<'_, T>; 2]>,
    workspace: (&mut Stack, Par),
) -> Result<i64, Failure> {
    let (stack, par) = workspace;
    if let Some(exponent) = exponent_out_of_range(a) {
        let mut scaled = copied(a)?;
        scale(&mut scaled, -exponent);
        decompose(&scaled, sizes, values, vectors, (stack, par))?;
        return Ok(exponent);
    }
    let compute = if vectors.is_some() { ComputeSvdVectors::Thin } else { ComputeSvdVectors::No };
    let scratch =
        faer_svd::svd_scratch::<T>(sizes.rows, sizes.columns, compute, compute, par, Default::default());
    let [u, v] = match vectors {
        Some([u, v]) => [Some(u), Some(v)],
        None => [None, None],
    };
    let found = faer_svd::svd(
        by_rows(a, sizes.rows, sizes.columns),
        DiagMut::from_slice_mut(values),
        u,
        v,
        par,
        stack.of(scratch)?,
        Default::default(),
    );
    found.map_err(|_| MatrixFailure::NotConverged)?;
    Ok(0)
}

/// The singular values, and the left and right singular vectors as columns.
pub(super) fn svd<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    values: &mut [T::Part],
    [u, v]: [&mut [T]; 2],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows, columns, .. } = sizes;
    let least = sizes.least();
    check_finite(a)?;
    let Workspace { copies: [left, right, diagonal, _], stack, par } = workspace;
    let (left, right) = (left.any(rows * least)?, right.any(columns * least)?);
    let diagonal = diagonal.any(least)?;
    let vectors = [by_columns_mut(left, rows, least), by_columns_mut(right, columns, least)];
    let exponent = decompose(a, sizes, diagonal, Some(vectors), (stack, *par))?;
    values.iter_mut().zip(&*diagonal).for_each(|(to, value)| *to = value.part());
    scale(values, exponent);
    to_rows(left, rows, least, u);
    to_rows(right, columns, least, v);
    Ok(())
}

pub(super) fn singular_values<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    values: &mut [T::Part],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    check_finite(a)?;
    let Workspace { copies: [diagonal, ..], stack, par } = workspace;
    let diagonal = diagonal.any(sizes.least())?;
    let exponent = decompose(a, sizes, diagonal, None, (stack, *par))?;
    values.iter_mut().zip(&*diagonal).for_each(|(to, value)| *to = value.part());
    scale(values, exponent);
    Ok(())
}

fn of_integer<P: num_traits::NumCast>(value: usize) -> P {
    num_traits::NumCast::from(value).expect("every `usize` converts to a float")
}

/// Singular values up to this number count as 0, if the greatest is `greatest`.
fn tolerance<P: MatrixElement<Part = P> + Real>(greatest: P, sizes: MatrixSizes) -> P {
    let count: P = of_integer(sizes.rows.max(sizes.columns));
    Num::mul(greatest, Num::mul(count, num_traits::Float::epsilon()))
}

/// The Frobenius norm.
fn norm<T: MatrixElement>(a: &[T]) -> T::Part {
    let square = |value: &T| Num::mul(value.size(), value.size());
    num_traits::Float::sqrt(a.iter().fold(T::Part::ZERO, |sum, value| Num::add(sum, square(value))))
}

/// The QR decomposition of the conjugate of a tall matrix, or of the adjoint of a wide one.
struct FullRank<'w, T> {
    /// The upper triangular factor, and reflections below it.
    factors: MatRef<'w, T>,
    reflections: Reflections<'w, T>,
    /// The inverse of the triangular factor, in column-major order.
    inverse: &'w [T],
}

impl<'w, T: MatrixElement> FullRank<'w, T> {
    /// `None` unless the matrix has full rank beyond doubt, and needs no scaling.
    fn of(
        a: &[T],
        sizes: MatrixSizes,
        [copy, reflections, inverse]: [&'w mut ReusedElements<T>; 3],
        (stack, par): (&mut Stack, Par),
    ) -> Result<Option<Self>, Failure> {
        let (most, least) = (sizes.rows.max(sizes.columns), sizes.least());
        // Whether the rank is certainly full if the largest singular value is at most `condition`
        // times the smallest.
        let is_regular = |condition: T::Part| {
            let limit = Num::mul(tolerance(condition, sizes), of_integer(10));
            limit < T::Part::ONE
        };
        // The product of the two norms at the end is never less than `least`.
        if !is_regular(of_integer(least)) || exponent_out_of_range(a).is_some() {
            return Ok(None);
        }
        let copy = copy.any(a.len())?;
        // The rows of `a` are the columns of its transpose.
        if sizes.rows < sizes.columns {
            copy.copy_from_slice(a);
        } else {
            to_columns(a, most, least, copy);
        }
        copy.iter_mut().for_each(|own| *own = own.conjugate());
        let (reflections, rank) = factorize(copy, [most, least], reflections, (stack, par))?;
        if rank < least {
            return Ok(None);
        }
        let factors = by_columns(copy, most, least);
        let inverse = inverse.zeros(least * least)?;
        invert_upper_triangular(by_columns_mut(inverse, least, least), factors.subrows(0, least), par);
        // The largest singular value is at most the Frobenius norm of the matrix, and the
        // reciprocal of the smallest one is at most the Frobenius norm of the inverse.
        let is_regular = is_regular(Num::mul(norm(a), norm(inverse)));
        Ok(is_regular.then_some(FullRank { factors, reflections, inverse }))
    }
}

/// Writes the transposed pseudoinverse and returns true, if [`FullRank::of`] has a result.
///
/// With the factors `conj(a) = q r`, the transposed pseudoinverse is `q r^-H`. If there are more
/// columns than rows, `a^H` is factorized, and the result transposed.
fn pinv_of_full_rank<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<bool, Failure> {
    let (most, least) = (sizes.rows.max(sizes.columns), sizes.least());
    let Workspace { copies: [copy, reflections, inverse, result], stack, par } = workspace;
    let par = *par;
    let Some(full) = FullRank::of(a, sizes, [copy, reflections, inverse], (&mut *stack, par))? else {
        return Ok(false);
    };
    let result = result.zeros(a.len())?;
    for (at, column) in result.chunks_exact_mut(most).enumerate() {
        let row = full.inverse[at..].iter().step_by(least).skip(at);
        column[at..least].iter_mut().zip(row).for_each(|(to, own)| *to = own.conjugate());
    }
    reflect(full.factors, full.reflections, result, (stack, par))?;
    if sizes.rows < sizes.columns {
        out.copy_from_slice(result);
    } else {
        to_rows(result, most, least, out);
    }
    Ok(true)
}

/// The transposed pseudoinverse.
pub(super) fn pinv<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows, columns, .. } = sizes;
    let least = sizes.least();
    check_finite(a)?;
    if least == 0 || pinv_of_full_rank(a, sizes, out, workspace)? {
        return Ok(());
    }
    let Workspace { copies: [left, right, diagonal, _], stack, par } = workspace;
    let (left, right) = (left.any(rows * least)?, right.any(columns * least)?);
    let diagonal = diagonal.any(least)?;
    let vectors = [by_columns_mut(left, rows, least), by_columns_mut(right, columns, least)];
    let exponent = decompose(a, sizes, diagonal, Some(vectors), (stack, *par))?;
    invert_values(diagonal, sizes);
    for (&share, vector) in diagonal.iter().zip(left.chunks_exact_mut(rows)) {
        vector.iter_mut().for_each(|own| *own = Num::mul(*own, share));
    }
    // With the reciprocals `s`, the pseudoinverse is `v s u^H`, and its transpose `conj(u s) v^T`.
    left.iter_mut().for_each(|own| *own = own.conjugate());
    matmul(
        by_rows_mut(out, rows, columns),
        Accum::Replace,
        by_columns(left, rows, least),
        by_columns(right, columns, least).transpose(),
        T::ONE,
        *par,
    );
    scale(out, -exponent);
    check_finite(out).map_err(|_| MatrixFailure::OutOfRange.into())
}

/// Replaces singular values by their reciprocals, or by 0 if they count as 0.
fn invert_values<T: MatrixElement>(values: &mut [T], sizes: MatrixSizes) {
    let least = tolerance(values[0].part(), sizes);
    for own in values {
        let value = own.part();
        *own = T::of_part(if value > least { Num::div(T::Part::ONE, value) } else { T::Part::ZERO });
    }
}

/// The least-squares solution with the smallest norm.
pub(super) fn lstsq<T: MatrixElement>(
    [a, b]: [&[T]; 2],
    sizes: MatrixSizes,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows, columns, right: count, .. } = sizes;
    let least = sizes.least();
    check_finite(a)?;
    if least == 0 || count == 0 {
        out.fill(T::ZERO);
        return Ok(());
    }
    if !lstsq_of_full_rank([a, b], sizes, out, workspace)? {
        let Workspace { copies: [left, right, diagonal, shares], stack, par } = workspace;
        let (left, right) = (left.any(rows * least)?, right.any(columns * least)?);
        let diagonal = diagonal.any(least)?;
        let vectors = [by_columns_mut(left, rows, least), by_columns_mut(right, columns, least)];
        let exponent = decompose(a, sizes, diagonal, Some(vectors), (stack, *par))?;
        invert_values(diagonal, sizes);
        // `v s u^H b`, with the reciprocals `s`.
        let shares = shares.any(least * count)?;
        let (left, right) = (by_columns(left, rows, least), by_columns(right, columns, least));
        let of_b = by_rows_mut(shares, least, count);
        matmul(of_b, Accum::Replace, left.adjoint(), by_rows(b, rows, count), T::ONE, *par);
        for (&share, row) in diagonal.iter().zip(shares.chunks_exact_mut(count)) {
            row.iter_mut().for_each(|own| *own = Num::mul(*own, share));
        }
        let (x, shares) = (by_rows_mut(out, columns, count), by_rows(shares, least, count));
        matmul(x, Accum::Replace, right, shares, T::ONE, *par);
        scale(out, -exponent);
    }
    check_finite(out).map_err(|_| cause_of_system(a.iter().copied(), b))
}

/// Writes the least-squares solution and returns true, if [`FullRank::of`] has a result.
///
/// With the factors `conj(a) = q r`, the solution is the conjugate of `r^-1 q^H conj(b)`. If there
/// are more columns than rows, `a^H` is factorized, and the solution is `q r^-H b`.
fn lstsq_of_full_rank<T: MatrixElement>(
    [a, b]: [&[T]; 2],
    sizes: MatrixSizes,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<bool, Failure> {
    let MatrixSizes { rows, columns, right: count, .. } = sizes;
    let (most, least) = (rows.max(columns), sizes.least());
    let Workspace { copies: [copy, reflections, inverse, sides], stack, par } = workspace;
    let par = *par;
    let Some(full) = FullRank::of(a, sizes, [copy, reflections, inverse], (&mut *stack, par))? else {
        return Ok(false);
    };
    let sides = sides.zeros(most * count)?;
    for (to, from) in sides.chunks_exact_mut(most).enumerate().map(|(at, to)| (to, b[at..].iter())) {
        to.iter_mut().zip(from.step_by(count)).for_each(|(to, &from)| *to = from);
    }
    let upper = full.factors.subrows(0, least);
    if rows < columns {
        let x = by_columns_mut(sides, most, count).subrows_mut(0, least);
        triangular::solve_lower_triangular_in_place(upper.adjoint(), x, par);
        reflect(full.factors, full.reflections, sides, (stack, par))?;
    } else {
        sides.iter_mut().for_each(|own| *own = own.conjugate());
        let Reflections { blocks, block } = full.reflections;
        let blocks = by_columns(blocks, block, least);
        let scratch = qr_solve::solve_lstsq_in_place_scratch::<T>(rows, columns, block, count, par);
        let x = by_columns_mut(sides, most, count);
        qr_solve::solve_lstsq_in_place(full.factors, blocks, upper, x, par, stack.of(scratch)?);
        sides.iter_mut().for_each(|own| *own = own.conjugate());
    }
    transpose(sides, most, [columns, count], out);
    Ok(true)
}

/// The number of singular values that do not count as 0.
pub(super) fn rank<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    workspace: &mut Workspace<T>,
) -> Result<usize, Failure> {
    check_finite(a)?;
    let Workspace { copies: [diagonal, ..], stack, par } = workspace;
    let diagonal = diagonal.any(sizes.least())?;
    decompose(a, sizes, diagonal, None, (stack, *par))?;
    let Some(greatest) = diagonal.first() else { return Ok(0) };
    let least = tolerance(greatest.part(), sizes);
    Ok(diagonal.iter().filter(|value| value.part() > least).count())
}

/// The largest singular value divided by the smallest: infinity if the smallest is 0, and 0 for a
/// matrix without elements.
pub(super) fn cond<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    workspace: &mut Workspace<T>,
) -> Result<T::Part, Failure> {
    check_finite(a)?;
    let Workspace { copies: [diagonal, ..], stack, par } = workspace;
    let diagonal = diagonal.any(sizes.least())?;
    decompose(a, sizes, diagonal, None, (stack, *par))?;
    Ok(match (diagonal.first(), diagonal.last()) {
        (Some(greatest), Some(least)) if least.part() > T::Part::ZERO => {
            Num::div(greatest.part(), least.part())
        }
        (Some(_), Some(_)) => num_traits::Float::infinity(),
        _ => T::Part::ZERO,
    })
}

/// The cofactors: the determinant times the transposed inverse, if that is accurate. Otherwise they
/// are computed from the singular value decomposition.
pub(super) fn cofactors<T: MatrixElement>(
    a: &[T],
    size: usize,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let det = solving::det(a, size, workspace)?;
    let has_inverse = num_traits::Float::is_normal(det.size())
        && match solving::inverse(a, size, out, workspace) {
            Ok(()) => true,
            Err(Failure::Matrix(_)) => false,
            Err(failure @ Failure::Memory(_)) => return Err(failure),
        };
    if has_inverse {
        out.iter_mut().for_each(|own| *own = Num::mul(*own, det));
        let sizes = a.iter().zip(&*out).map(|(value, cofactor)| [value.size(), cofactor.size()]);
        if are_accurate(sizes, det.size()) {
            return Ok(());
        }
    }
    check_finite(a)?;
    let sizes = MatrixSizes::square(1, size);
    let Workspace { copies: [left, right, diagonal, _], stack, par } = workspace;
    let (left, right) = (left.any(a.len())?, right.any(a.len())?);
    let diagonal = diagonal.any(size)?;
    let vectors = [by_columns_mut(left, size, size), by_columns_mut(right, size, size)];
    let exponent = decompose(a, sizes, diagonal, Some(vectors), (stack, *par))?;
    scale(diagonal, exponent);
    // With `a = u diag(s) v^H` the cofactors are
    // `det(u v^H) conj(u) diag(the products of all other s) v^T`.
    let others = |at: usize| {
        let rest = diagonal.iter().enumerate().filter(|&(other, _)| other != at);
        rest.fold(T::ONE, |product, (_, &value)| Num::mul(product, value))
    };
    let scaled: alloc::vec::Vec<T> = (0..size).map(others).collect();
    left.iter_mut().for_each(|own| *own = own.conjugate());
    let mut turn = Workspace::new(*par);
    let turns = [&*left, &*right].map(|own| solving::det(own, size, &mut turn));
    let [of_left, of_right] = turns;
    let factor = Num::mul(of_left?.conjugate(), of_right?.conjugate());
    for (vector, share) in left.chunks_exact_mut(size.max(1)).zip(scaled) {
        vector.iter_mut().for_each(|own| *own = Num::mul(*own, Num::mul(share, factor)));
    }
    matmul(
        by_rows_mut(out, size, size),
        Accum::Replace,
        by_columns(left, size, size),
        by_columns(right, size, size).transpose(),
        T::ONE,
        *par,
    );
    Ok(())
}
