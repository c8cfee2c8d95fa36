//! Blocked copies: two loops of a copy at a time. If possible, one of them is contiguous in the
//! result, and the other in the source.

use crate::loops::nest::Odometer;
use crate::machine::isa::{Isa, Task};
use crate::machine::prefetch::LINE;
use core::any::TypeId;
use smallvec::SmallVec;

/// Transpositions of at least this many bytes bypass the caches when they write, if the elements
/// are [numbers](is_number) and all lines of the result are aligned alike. Through the caches, each
/// cache line of the result would first be read from memory, and could be evicted before all of it
/// is written.
const STREAMED: usize = 8 << 20;

/// Whether the target guarantees SSE2, and the elements are numbers of 4 or 8 bytes, all of whose
/// bytes are initialized. [`stream`] and the transposition in registers require both.
pub(super) fn is_number<T: 'static>() -> bool {
    let own = TypeId::of::<T>();
    cfg!(all(target_arch = "x86_64", target_feature = "sse2"))
        && [
            TypeId::of::<f32>(),
            TypeId::of::<i32>(),
            TypeId::of::<u32>(),
            TypeId::of::<f64>(),
            TypeId::of::<i64>(),
            TypeId::of::<u64>(),
            TypeId::of::<isize>(),
            TypeId::of::<usize>(),
        ]
        .contains(&own)
}

/// Writes a cache line without reading it first. Call [`fence`] before other threads read it.
///
/// # Safety
///
/// `to` is a whole, aligned cache line that may be written to; elements are [numbers](is_number).
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn stream<T, const B: usize>(to: *mut [T; B], line: [T; B]) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    for at in 0..size_of::<[T; B]>() / 16 {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        // SAFETY: the line consists of this many vectors, whose bytes are initialized; the vectors
        // at `to` are aligned, because `to` is.
        unsafe {
            let part = _mm_loadu_si128((&raw const line).cast::<__m128i>().add(at));
            _mm_stream_si128(to.cast::<__m128i>().add(at), part);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    // SAFETY: the caller's promise.
    unsafe {
        *to = line
    };
}

/// Makes the writes of [`stream`] visible to other threads before any later write.
#[cfg_attr(not(unoptimized), inline(always))]
fn fence() {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    // SAFETY: the instruction is part of SSE, which the target has.
    unsafe {
        core::arch::x86_64::_mm_sfence()
    };
}

/// A copy between two layouts, block by block.
pub(super) struct BlockedCopy<'n, T> {
    pub(super) source: *const T,
    pub(super) strides: &'n [isize],
    pub(super) target: *mut T,
    pub(super) result: &'n [isize],
    pub(super) sizes: &'n [usize],
    /// Whether the elements are [numbers](is_number). `T` does not say so: elements of the same
    /// size are copied as the same type of words.
    pub(super) are_numbers: bool,
}

/// A matrix of elements to copy: `rows` lines of the result, each with `columns` elements.
struct MatrixBlock<T> {
    source: *const T,
    source_row: isize,
    source_column: isize,
    target: *mut T,
    target_row: isize,
    target_column: isize,
    rows: usize,
    columns: usize,
    /// Only used by transpositions in registers.
    #[cfg(x86_vectors)]
    are_numbers: bool,
}

impl<T: Copy + 'static> Task for BlockedCopy<'_, T> {
    type Out = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let BlockedCopy { source, strides, target, result, sizes: loops, are_numbers } = self;
        let last = loops.len() - 1;
        // The loop along which the source has the least stride other than 0, if this stride is less
        // than the one along the innermost loop of the result.
        let near = (0..last)
            .filter(|&at| strides[at] != 0)
            .min_by_key(|&at| strides[at].unsigned_abs())
            .filter(|&at| strides[last].unsigned_abs() > strides[at].unsigned_abs());
        let row = near.unwrap_or(last.saturating_sub(1));
        let mut sizes: SmallVec<[usize; 8]> = SmallVec::from_slice(loops);
        sizes[last] = 1;
        let (rows, source_row, target_row) = if row < last {
            sizes[row] = 1;
            (loops[row], strides[row], result[row])
        } else {
            (1, 0, 0)
        };
        let bytes = loops.iter().product::<usize>().saturating_mul(size_of::<T>());
        let streams = bytes >= STREAMED && are_numbers;
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, sizes.len());
        let mut odometer = Odometer::new(&sizes);
        while !odometer.is_done() {
            let mut from = 0;
            let mut to = 0;
            for (loop_, &at) in at.iter().enumerate() {
                from += at as isize * strides[loop_];
                to += at as isize * result[loop_];
            }
            let block = MatrixBlock {
                source: source.wrapping_offset(from),
                source_row,
                source_column: strides[last],
                target: target.wrapping_offset(to),
                target_row,
                target_column: if loops[last] == 1 { 1 } else { result[last] },
                rows,
                columns: loops[last],
                #[cfg(x86_vectors)]
                are_numbers,
            };
            // SAFETY: rows and columns are loops of the nest: the source's elements are valid, by
            // the contract of `copy_between`, and the target's are slots of the result.
            unsafe {
                match size_of::<T>() {
                    _ if block.target_column != 1 => block.scattered(),
                    _ if block.source_column == 1 => block.by_rows(),
                    _ if block.is_interleaved(2) => block.by_planes::<2>(),
                    _ if block.is_interleaved(3) => block.by_planes::<3>(),
                    _ if block.is_interleaved(4) => block.by_planes::<4>(),
                    _ if block.is_woven(2) => block.by_weaving::<2>(),
                    _ if block.is_woven(3) => block.by_weaving::<3>(),
                    _ if block.is_woven(4) => block.by_weaving::<4>(),
                    _ if near.is_none() || block.source_row != 1 => block.by_elements(),
                    1 | 2 => block.by_squares::<32, false>(),
                    4 if streams && block.has_lines() => block.by_squares::<16, true>(),
                    4 if block.rows.min(block.columns) >= 16 => block.by_squares::<16, false>(),
                    8 if streams && block.has_lines() => block.by_squares::<8, true>(),
                    _ => block.by_squares::<8, false>(),
                }
            }
            odometer.advance(&mut at);
        }
    }
}

impl<T: Copy + 'static> MatrixBlock<T> {
    /// Copies lines that are contiguous on both sides.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn by_rows(&self) {
        for row in 0..self.rows as isize {
            // SAFETY: the line is in both matrices, and nothing else accesses the target's
            // elements, so they do not overlap the source.
            unsafe {
                let (from, to) =
                    (self.source.offset(row * self.source_row), self.target.offset(row * self.target_row));
                core::ptr::copy_nonoverlapping(from, to, self.columns);
            }
        }
    }

    /// Whether the source interleaves the elements of this many lines, as an image interleaves its
    /// colors.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_interleaved(&self, lines: usize) -> bool {
        (self.rows, self.source_row, self.source_column) == (lines, 1, lines as isize)
    }

    /// Copies `N` lines whose elements are interleaved in the source.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn by_planes<const N: usize>(&self) {
        let lines: [*mut T; N] =
            core::array::from_fn(|line| self.target.wrapping_offset(line as isize * self.target_row));
        for at in 0..self.columns {
            // SAFETY: the `N` elements are adjacent in the source, and each of them has a slot in a
            // line of the target.
            unsafe {
                let elements = self.source.cast::<[T; N]>().add(at).read();
                for (line, element) in lines.into_iter().zip(elements) {
                    line.add(at).write(element);
                }
            }
        }
    }

    /// Whether the result interleaves the elements of this many lines, as when several image planes
    /// are combined.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_woven(&self, lines: usize) -> bool {
        (self.columns, self.target_row, self.source_row) == (lines, lines as isize, 1)
    }

    /// Copies `N` lines whose elements are interleaved in the result.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn by_weaving<const N: usize>(&self) {
        let lines: [*const T; N] =
            core::array::from_fn(|line| self.source.wrapping_offset(line as isize * self.source_column));
        for at in 0..self.rows {
            // SAFETY: each of the `N` lines has this element in the source, and their slots are
            // adjacent in the result.
            unsafe {
                let elements = lines.map(|line| line.add(at).read());
                self.target.cast::<[T; N]>().add(at).write(elements);
            }
        }
    }

    /// Copies elements that are not contiguous in the result.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn scattered(&self) {
        for row in 0..self.rows as isize {
            for column in 0..self.columns as isize {
                // SAFETY: the element is in both matrices.
                unsafe {
                    *self.target.offset(row * self.target_row + column * self.target_column) =
                        *self.source.offset(row * self.source_row + column * self.source_column);
                }
            }
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn by_elements(&self) {
        for row in 0..self.rows {
            // SAFETY: the elements are in both matrices.
            unsafe { self.part(row, 1, 0, self.columns) };
        }
    }

    /// Copies a part of the matrix, one element at a time.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn part(&self, row: usize, rows: usize, column: usize, columns: usize) {
        for row in row as isize..(row + rows) as isize {
            for column in column as isize..(column + columns) as isize {
                // SAFETY: the caller passes elements of the matrix.
                unsafe {
                    *self.target.offset(row * self.target_row + column) =
                        *self.source.offset(row * self.source_row + column * self.source_column);
                }
            }
        }
    }

    /// Whether all lines of the result have the same alignment within cache lines.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_lines(&self) -> bool {
        self.target_row.unsigned_abs().wrapping_mul(size_of::<T>()).is_multiple_of(LINE)
    }

    /// Transposes in squares of `B` x `B` elements. For the caches, the squares are grouped into
    /// larger ones. If `STREAM`, each line of a square is a [cache line](MatrixBlock::has_lines) of
    /// the result, and is [streamed](stream).
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn by_squares<const B: usize, const STREAM: bool>(&self) {
        let first = if STREAM { self.target.align_offset(LINE).min(self.columns) } else { 0 };
        let whole_rows = self.rows - self.rows % B;
        let whole_columns = self.columns - (self.columns - first) % B;
        let large = if STREAM { 8 * B } else { 4 * B };
        let mut row = 0;
        while row < whole_rows {
            let row_end = (row + large).min(whole_rows);
            let mut column = first;
            while column < whole_columns {
                let column_end = (column + large).min(whole_columns);
                for row in (row..row_end).step_by(B) {
                    for column in (column..column_end).step_by(B) {
                        // SAFETY: the square is in both matrices; if `STREAM`, its lines are cache
                        // lines, because column `first` starts one, and squares and rows of the
                        // result are whole numbers of cache lines apart.
                        unsafe { self.square::<B, STREAM>(row, column) };
                    }
                }
                column = column_end;
            }
            row = row_end;
        }
        if STREAM {
            fence();
        }
        // SAFETY: the remaining rows and columns are in both matrices.
        unsafe {
            self.part(0, whole_rows, 0, first);
            self.part(0, whole_rows, whole_columns, self.columns - whole_columns);
            self.part(whole_rows, self.rows - whole_rows, 0, self.columns);
        }
    }

    /// # Safety
    ///
    /// The square is in both matrices. If `STREAM` or `are_numbers`, elements are
    /// [numbers](is_number). If `STREAM`, the square's lines in the result are cache lines.
    #[allow(clippy::needless_range_loop)] // clearer with both indices
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn square<const B: usize, const STREAM: bool>(&self, row: usize, column: usize) {
        // SAFETY: the square is in both matrices; each of its columns is `B` contiguous elements of
        // the source (`source_row` is 1). `transpose` is called only for numbers, whose bytes are
        // all initialized.
        unsafe {
            let from = self.source.offset(row as isize + column as isize * self.source_column);
            let to = self.target.offset(row as isize * self.target_row + column as isize);
            let mut lines = [[*from; B]; B];
            for (at, line) in lines.iter_mut().enumerate() {
                *line = *from.offset(at as isize * self.source_column).cast::<[T; B]>();
            }
            let mut transposed = lines;
            let (place, step) =
                if STREAM { (transposed.as_mut_ptr().cast(), B as isize) } else { (to, self.target_row) };
            #[cfg(x86_vectors)]
            let is_done = self.are_numbers && crate::copy::vectors::transpose(&lines, place, step);
            #[cfg(not(x86_vectors))]
            let is_done = false;
            if !is_done {
                for row in 0..B {
                    let mut out = [*from; B];
                    for column in 0..B {
                        out[column] = lines[column][row];
                    }
                    *place.offset(row as isize * step).cast::<[T; B]>() = out;
                }
            }
            if STREAM {
                for (row, line) in transposed.into_iter().enumerate() {
                    stream(to.offset(row as isize * self.target_row).cast::<[T; B]>(), line);
                }
            }
        }
    }
}
