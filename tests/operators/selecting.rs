//! Operators that select elements by value.

use crate::loops::build;
use crate::table::Family;
use crate::value::of;
use crate::{D, I, Inner, J, K, L, Outer, V};
use ndarray::Axis;
use typed_dims::creation::create::full_like;
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Selecting by value",
        about: "`take`, `one_hot`, `masked_fill` and `from_end` are lazy; the others run immediately. In `take`, an index that is out of range is an error when its element is read; calls to recorded programs check all indices. \
                The size of the result of `nonzero`, `masked_select`, `unique` and `unique_consecutive` depends on the data: pass them a new local dim, `dims!(n)`. In recorded programs, the index of `scatter_add` and the mask of `masked_select` must not depend on inputs. `scatter` cannot be recorded if an operand depends on an input; if all indices differ, use `scatter_add`.",
        operators: entries(),
    }
}

fn two_by_four() -> Array2<f32> {
    Array2::zeros((2, 4))
}

crate::operators! {
    /// The elements at positions along a dim: `out[i, k] = x[i, ids[k]]`
    take [f32 i32 f16] (x: T [I J], ids: usize [K] in Below("J")) -> [K I],
        call: x.take(J, ids),
        loops: build(&[ids.len(), x.shape()[0]], |at| x[[at[1], ids[[at[0]]]]]),
        along: [J], keep: [],
        errors: [two_by_four().at((I, J)).take(J, ndarray::array![0i32, 4].at(K)).try_eval()
            => "index 4 of dim `J` is out of range for an axis of size 4"],
        names: "index_select" "numpy.take" "take";
    /// An index with the dims of the tensor: `out[i, j] = x[i, ids[i, j]]`
    gather [f32 i32 f16] (x: T [I J], ids: usize [I J] in Below("J")) -> [I J],
        call: shown!(x.take(J, ids); where { let x = x + x; }),
        loops: build(x.shape(), |at| { let x = x[[at[0], ids[[at[0], at[1]]]]]; x + x }),
        along: [J], keep: [],
        names: "gather" "numpy.take_along_axis" "take_along_axis";
    /// One element for each `i`: `out[i] = x[i, ids[i]]`
    take_each [f32 i32] (x: T [J I], ids: usize [I] in Below("J")) -> [I],
        call: x.take(J, ids),
        loops: build(&[ids.len()], |at| x[[ids[[at[0]]], at[0]]]),
        along: [J], keep: [],
        names: "gather" "numpy.take_along_axis" "choose";
    /// Rows of a table: `out[i, l, d] = table[ids[i, l], d]`
    embedding [f32 f64 f16] (table: T [V D], ids: usize [I L] in Below("V")) -> [I L D],
        call: table.take(V, ids),
        loops: build(&[ids.shape()[0], ids.shape()[1], table.shape()[1]], |at| table[[ids[[at[0], at[1]]], at[2]]]),
        along: [V], keep: [],
        names: "nn.functional.embedding" "numpy.take" "take";
    /// Sums of rows of a table, in one pass
    embedding_bag [f32 f64 f16] (table: T [V D], ids: usize [I L] in Below("V")) -> [D I],
        call: table.take(V, ids).sum(L),
        loops: build(&[table.shape()[1], ids.shape()[0]], |at| {
            (0..ids.shape()[1]).fold(0 as T, |sum, l| sum + table[[ids[[at[1], l]], at[0]]])
        }),
        along: [V L], keep: [],
        names: "nn.functional.embedding_bag" "" "";
    /// `out[ids[k], i] += x[k, i]`, starting from zeros
    scatter_add [f32 i32 half] (x: T [K I], ids: usize [K] in Below("V")) -> [I V],
        call: x.scatter_add(K, V.of(7), ids),
        loops: {
            let mut out = build(&[x.shape()[1], 7], |_| 0 as T);
            for k in 0..x.shape()[0] {
                for i in 0..x.shape()[1] {
                    out[[i, ids[[k]]]] += x[[k, i]];
                }
            }
            out
        },
        along: [K V], keep: [],
        errors: [two_by_four().at((I, J)).try_scatter_add(J, V.of(2), ndarray::array![0usize, 1, 2, 1].at(J))
            => "index 2 of dim `V` is out of range for an axis of size 2"],
        names: "scatter_add" "ops.segment_sum" "add.at";
    /// `out[i, ids[k, i]] = x[k]`, starting from a constant; of equal `ids`, the last one wins
    scatter [f32 i32 f16] (x: T [K], ids: usize [K I] in Below("V")) -> [I V],
        call: x.scatter(K, V.of(7), ids, of(9.0)),
        loops: {
            let mut out = build(&[ids.shape()[1], 7], |_| 9 as T);
            for k in 0..x.shape()[0] {
                for i in 0..ids.shape()[1] {
                    out[[i, ids[[k, i]]]] = x[[k]];
                }
            }
            out
        },
        along: [K V], keep: [],
        names: "scatter" "x.at[ids].set" "put_along_axis";
    /// `out = x`, then `out[ids[k], i] += y[k, i]`
    index_add [f32 i32] (x: T [J I], y: T [K I], ids: usize [K] in Below("J")) -> [I J],
        call: x + y.scatter_add(K, J.of(x.size(J)), ids),
        loops: {
            let mut out = x.clone();
            for k in 0..y.shape()[0] {
                for i in 0..x.shape()[1] {
                    out[[ids[[k]], i]] += y[[k, i]];
                }
            }
            out.reversed_axes()
        },
        along: [K J], keep: [],
        names: "index_add" "x.at[ids].add" "add.at";
    /// How often each index occurs
    bincount [i32] (ids: usize [I K] in Below("V")) -> [I V],
        call: full_like(ids, 1).scatter_add(K, V.of(7), ids),
        loops: build(&[ids.shape()[0], 7], |at| ids.index_axis(Axis(0), at[0]).iter().filter(|&&id| id == at[1]).count()),
        along: [K V], keep: [],
        names: "bincount" "numpy.bincount" "bincount";
    /// Indices into an axis of 5 elements; negative ones count from the end
    from_end [i32 i64] (x: T [I J]) -> [I J],
        call: x.from_end(5),
        loops: build(x.shape(), |at| {
            let index = x[[at[0], at[1]]] as isize;
            if (-5..0).contains(&index) { index + 5 } else { index }
        }),
        along: [], keep: [],
        errors: [ndarray::array![-1i32].at(I).try_from_end(V)
            => "the size of dim `V` is not known here: bind it to an axis first, or give it a size, `V.of(n)` if it is declared, `dims!(V = n)` if it is local"],
        names: "" "" "";
    /// 1 where the index along the new dim equals the element, else 0
    one_hot [f32 i32 f16] (ids: usize [I J] in Below("V")) -> [V I J],
        call: ids.one_hot::<T, _>(V.of(7)),
        loops: build(&[7, ids.shape()[0], ids.shape()[1]], |at| if ids[[at[1], at[2]]] == at[0] { 1 as T } else { 0 as T }),
        along: [V], keep: [],
        names: "nn.functional.one_hot" "nn.one_hot" "eye[ids]";
    /// A constant where the mask is true, else `x`
    masked_fill [f32 i32 f16] (x: T [I J], mask: bool [J]) -> [I J],
        call: x.masked_fill(mask, of(7.0)),
        loops: build(x.shape(), |at| if mask[[at[1]]] { 7 as T } else { x[[at[0], at[1]]] }),
        along: [], keep: [],
        names: "masked_fill" "numpy.where" "putmask";
    /// The positions of the elements that are true, row-major over the dims
    nonzero [i32] (alone x: bool [I J]) -> [V],
        call: shown!(x.nonzero((I, J), n); where { dims!(n); } then |found| found.rename(n, V).eval()),
        loops: {
            let found: Vec<usize> = x.iter().enumerate().filter(|(_, x)| **x).map(|(at, _)| at).collect();
            build(&[found.len()], |at| found[at[0]])
        },
        along: [], keep: [],
        errors: [{
            dims!(n = 3);
            ndarray::array![true, true, true].at(I).try_nonzero(I, n).map(|_| ())
        } => "dim `n` has 3 elements already; a result of unknown size needs a new dim"],
        names: "nonzero" "numpy.flatnonzero" "flatnonzero";
    /// The elements where the mask is true; pass all dims of the mask
    masked_select [f32 i32 f16] (x: T [I K J], mask: bool [I J] @alone) -> [V K],
        call: shown!(x.masked_select(mask, (I, J), n); where { dims!(n); } then |found| found.rename(n, V).eval()),
        loops: {
            let found: Vec<usize> = mask.iter().enumerate().filter(|(_, x)| **x).map(|(at, _)| at).collect();
            let width = mask.shape()[1].max(1);
            build(&[found.len(), x.shape()[1]], |at| x[[found[at[0]] / width, at[1], found[at[0]] % width]])
        },
        along: [I J], keep: [],
        errors: [{
            dims!(n);
            two_by_four().at((I, J)).try_masked_select(ndarray::array![true, false].at(J), J, n).map(|_| ())
        } => "a mask of dim `J` = 2 does not fit dim `J` = 4"],
        names: "masked_select" "x[mask]" "x[mask]";
    /// The distinct elements in ascending order
    unique [f32 i32 f16] (alone x: T [I J] in Ties) -> [V],
        call: shown!(x.unique((I, J), n).values; where { dims!(n); } then |found| found.rename(n, V).eval()),
        loops: {
            let mut all: Vec<T> = x.iter().copied().collect();
            all.sort_by(|a, b| a.partial_cmp(b).expect("the elements are not NaN"));
            all.dedup();
            build(&[all.len()], |at| all[at[0]])
        },
        along: [], keep: [],
        names: "unique" "numpy.unique" "unique";
    /// How often each distinct element occurs
    unique_counts [f32 i32 f16] (alone x: T [I J] in Ties) -> [V],
        call: shown!(x.unique((I, J), n).counts; where { dims!(n); } then |found| found.rename(n, V).eval()),
        loops: {
            let mut all: Vec<T> = x.iter().copied().collect();
            all.sort_by(|a, b| a.partial_cmp(b).expect("the elements are not NaN"));
            all.dedup();
            build(&[all.len()], |at| x.iter().filter(|&&x| x == all[at[0]]).count())
        },
        along: [], keep: [],
        names: "unique(return_counts=True)" "numpy.unique_counts" "unique_counts";
    /// For each element, its index among the distinct elements
    unique_inverse [f32 i32 f16] (alone x: T [J I] in Ties) -> [I J],
        call: shown!(x.unique((I, J), n).inverse; where { dims!(n); }),
        loops: {
            let mut all: Vec<T> = x.iter().copied().collect();
            all.sort_by(|a, b| a.partial_cmp(b).expect("the elements are not NaN"));
            all.dedup();
            build(&[x.shape()[1], x.shape()[0]], |at| all.iter().position(|&own| own == x[[at[1], at[0]]]).expect("the element is in the list"))
        },
        along: [], keep: [],
        names: "unique(return_inverse=True)" "numpy.unique_inverse" "unique_inverse";
    /// The first element of each run of equal ones
    unique_consecutive [f32 i32] (alone x: T [I J] in Ties) -> [V],
        call: shown!(x.unique_consecutive((I, J), n).values; where { dims!(n); } then |found| found.rename(n, V).eval()),
        loops: {
            let mut all: Vec<T> = x.iter().copied().collect();
            all.dedup();
            build(&[all.len()], |at| all[at[0]])
        },
        along: [], keep: [],
        names: "unique_consecutive" "" "";
    /// The length of each run of equal elements
    unique_consecutive_counts [f32 i32] (alone x: T [I J] in Ties) -> [V],
        call: shown!(x.unique_consecutive((I, J), n).counts; where { dims!(n); } then |found| found.rename(n, V).eval()),
        loops: {
            let all: Vec<T> = x.iter().copied().collect();
            let counts: Vec<usize> = all.chunk_by(|a, b| a == b).map(<[T]>::len).collect();
            build(&[counts.len()], |at| counts[at[0]])
        },
        along: [], keep: [],
        names: "unique_consecutive(return_counts=True)" "" "";
}
