//! Parallel accumulators along contiguous elements, so that additions need not wait for each other.

/// The number of accumulators along a line.
pub const LANES: usize = 32;

/// How many elements are added to an accumulator at once, so that it is loaded and stored less
/// often.
const UNROLL: usize = 4;

/// The accumulators along a line form vectors of this length. The compiler unrolls a loop over the
/// accumulators of a vector, and keeps them in registers.
pub const VECTOR: usize = 16;

/// A vector of accumulators.
pub type LaneVector<A> = [A; VECTOR];

/// All accumulators along a line, as vectors.
pub type LaneVectors<A> = [LaneVector<A>; LANES / VECTOR];

/// Folds the elements of a line with `step`, in several accumulators that are combined at the end.
/// Each of them begins with `start`, which must be a neutral element.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn fold<T: Copy, A: Copy>(line: &[T], start: A, step: impl Fn(A, T) -> A, join: impl Fn(A, A) -> A) -> A {
    if line.len() < LANES {
        return line.iter().fold(start, |total, &value| step(total, value));
    }
    let mut lanes = [start; LANES];
    let (chunks, rest) = line.as_chunks::<{ UNROLL * LANES }>();
    for chunk in chunks {
        for (lane, acc) in lanes.iter_mut().enumerate() {
            for row in 0..UNROLL {
                *acc = step(*acc, chunk[row * LANES + lane]);
            }
        }
    }
    let (chunks, rest) = rest.as_chunks::<LANES>();
    for chunk in chunks {
        for (acc, &value) in lanes.iter_mut().zip(chunk) {
            *acc = step(*acc, value);
        }
    }
    rest.iter().fold(together(lanes, join), |total, &value| step(total, value))
}

/// Combines all accumulators, halves with halves.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn together<A: Copy>(lanes: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let (left, right) = lanes.split_at(VECTOR);
    let mut half = [lanes[0]; VECTOR];
    for (half, (&left, &right)) in half.iter_mut().zip(left.iter().zip(right)) {
        *half = join(left, right);
    }
    together_in_vector(half, join)
}

/// Not inlined, so that the choice of registers here does not affect the loops.
#[inline(never)]
fn together_in_vector<A: Copy>(mut lanes: LaneVector<A>, join: impl Fn(A, A) -> A) -> A {
    let mut width = VECTOR / 2;
    while width > 0 {
        let (left, right) = lanes.split_at_mut(width);
        left.iter_mut().zip(right).for_each(|(left, right)| *left = join(*left, *right));
        width /= 2;
    }
    lanes[0]
}

/// Applies `f` to each pair of elements of two vectors.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn each<A: Copy, B: Copy>(
    mut a: LaneVector<A>,
    b: LaneVector<B>,
    f: impl Fn(A, B) -> A,
) -> LaneVector<A> {
    for at in 0..VECTOR {
        a[at] = f(a[at], b[at]);
    }
    a
}

/// Accumulators with the same start value.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn lanes<A: Copy>(start: A) -> LaneVectors<A> {
    [[start; VECTOR]; LANES / VECTOR]
}

/// The accumulators of all vectors as one array.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn flat<A: Copy>(vectors: LaneVectors<A>) -> [A; LANES] {
    core::array::from_fn(|at| vectors[at / VECTOR][at % VECTOR])
}
