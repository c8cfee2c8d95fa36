//! Operators that change dims without changing elements, and joins.

use crate::loops::{build, transpose};
use crate::table::Family;
use crate::{I, Inner, J, K, L, Outer, V};
use ndarray::Axis;
use typed_dims::fallible::{try_concat, try_concat_to, try_stack};
use typed_dims::operators::join::concat_to;
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Restructuring",
        about: "`order`, `flatten`, `concat`, `concat_to` and `stack` run immediately; the others return views, even of expressions. `concat_to` is in `typed_dims::operators::join`.",
        operators: entries(),
    }
}

fn two_by_four() -> Array2<f32> {
    Array2::zeros((2, 4))
}

crate::operators! {
    /// An array with the dims as axes in this order; a nested tuple of dims becomes one axis
    order [f32 i32 bool f16] (x: T [I J K]) -> [K I J],
        call: x,
        loops: transpose(x, &[2, 0, 1]),
        along: [], keep: [],
        names: "permute" "lax.transpose" "transpose";
    /// Renames a dim
    rename [f32 i32] (x: T [I J]) -> [K I],
        call: x.rename(J, K),
        loops: transpose(x, &[1, 0]),
        along: [J], keep: [],
        names: "rename" "" "";
    /// The elements at one position along a dim
    index [f32 i32 f16] (x: T [I J]) -> [I],
        call: x.index(J, -2),
        loops: x.index_axis(Axis(1), x.shape()[1] - 2).to_owned(),
        along: [J], keep: [J],
        errors: [two_by_four().at((I, J)).try_index(J, 4)
            => "index 4 of dim `J` is out of range for an axis of size 4"],
        names: "select" "lax.index_in_dim" "take";
    /// The elements in a range of positions along a dim
    slice [f32 i32] (x: T [I J]) -> [I J],
        call: x.slice(J, 1..-1),
        loops: x.slice_axis(Axis(1), ndarray::Slice::new(1, Some(-1), 1)).to_owned(),
        along: [J], keep: [J],
        errors: [two_by_four().at((I, J)).try_slice(J, 3..5)
            => "the range 3..5 of dim `J` is out of range for an axis of size 4"],
        names: "narrow" "lax.slice_in_dim" "x[..., 1:-1]";
    /// Every `step`th element of a range
    slice_step [f32 i32] (x: T [I J]) -> [I J],
        call: shown!(x.slice_step(J, 1.., 2); where { let x = x + x; }),
        loops: build(&[x.shape()[0], x.shape()[1] / 2], |at| { let x = x[[at[0], 2 * at[1] + 1]]; x + x }),
        along: [J], keep: [J],
        errors: [
            two_by_four().at((I, J)).try_slice_step(J, .., 0)
                => "a slice of dim `J` with a step of 0; it must be at least 1",
            two_by_four().at((I, J)).try_slice_step(J, 1..5, 2)
                => "the range 1..5 of dim `J` is out of range for an axis of size 4",
        ],
        names: "x[..., 1::2]" "lax.slice_in_dim(stride)" "x[..., 1::2]";
    /// Merges dims into one; the last one varies fastest
    flatten [f32 i32] (x: T [I J K]) -> [L J],
        call: x.flatten((K, I), L),
        loops: transpose(x, &[2, 0, 1]).to_shape((x.shape()[2] * x.shape()[0], x.shape()[1])).unwrap().to_owned(),
        along: [K I], keep: [],
        names: "flatten, reshape" "lax.collapse" "reshape";
    /// Splits a dim into several; the last one varies fastest
    unflatten [f32 i32] (x: T [I J]) -> [K L I],
        call: x.unflatten(J, (K, L.of(2))),
        loops: build(&[x.shape()[1] / 2, 2, x.shape()[0]], |at| x[[at[2], 2 * at[0] + at[1]]]),
        along: [J], keep: [J],
        names: "unflatten, view" "lax.reshape" "reshape";
    /// Pieces of given sizes along a dim
    split [f32 i32] (x: T [I J]) -> [J I],
        call: shown!(x.split(J, &[1, 3]); where { let x = &x.eval(); } then |parts| concat(J, parts.into_iter().rev())),
        loops: {
            let swap = |j: usize| if j < 3 { j + 1 } else { 0 };
            build(&[x.shape()[1], x.shape()[0]], |at| x[[at[1], swap(at[0])]])
        },
        along: [J], keep: [J],
        errors: [(&two_by_four().at((I, J)).eval()).try_split(J, &[1, 2])
            => "dim `J` of size 4 cannot be split into pieces of sizes [1, 2]"],
        names: "split" "lax.split" "split";
    /// One piece for each of the given dims
    split_to [f32 i32] (x: T [I J]) -> [L I],
        call: shown!(x.split_to(J, (K.of(1), L)); where { let x = &x.eval(); } then |parts| parts.1.eval()),
        loops: build(&[x.shape()[1] - 1, x.shape()[0]], |at| x[[at[1], at[0] + 1]]),
        along: [J], keep: [J],
        errors: [(&two_by_four().at((I, J)).eval()).try_split_to(J, (K.of(5), L)).map(|pieces| pieces.1)
            => "dim `J` of size 4 cannot be split into `K` = 5, `L`"],
        names: "split" "lax.split" "split";
    /// Concatenates along a dim that all parts have
    concat [f32 i32 f16] (x: T [I J]) -> [J I],
        call: concat(J, [x, x]),
        loops: build(&[2 * x.shape()[1], x.shape()[0]], |at| x[[at[1], at[0] % x.shape()[1]]]),
        along: [J], keep: [],
        errors: [try_concat(J, [two_by_four().at((I, J)), Array2::zeros((3, 4)).at((I, J))])
            => "parts of a concatenation along `J` differ: dims `I` = 2, `J` = 4 and dims `I` = 3, `J` = 4"],
        names: "cat" "lax.concatenate" "concatenate";
    /// Concatenates along a new dim, which replaces one dim of each part
    concat_to [f32 i32] (x: T [I J]) -> [K I],
        call: shown!(concat_to(K, (J, L), (x, y)); where { let y = (x + x).rename(J, L); }),
        loops: {
            let size = x.shape()[1];
            build(&[2 * size, x.shape()[0]], |at| {
                let value = x[[at[1], at[0] % size]];
                if at[0] < size { value } else { value + value }
            })
        },
        along: [J], keep: [],
        errors: [try_concat_to(K, (J, L), (two_by_four().at((I, J)), Array2::zeros((3, 4)).at((I, L))))
            => "parts of a concatenation along `K` differ: dims `I` = 2, `K` = 4 and dims `I` = 3, `K` = 4"],
        names: "cat" "lax.concatenate" "concatenate";
    /// Stacks the parts along a new dim
    stack [f32 i32] (x: T [I J]) -> [K I J],
        call: stack(K, [x, x, x]),
        loops: build(&[3, x.shape()[0], x.shape()[1]], |at| x[[at[1], at[2]]]),
        along: [K], keep: [],
        errors: [try_stack(K, [two_by_four().at((I, J)), Array2::zeros((3, 4)).at((I, J))])
            => "parts of a stack along `K` differ: dims `I` = 2, `J` = 4 and dims `I` = 3, `J` = 4"],
        names: "stack" "numpy.stack" "stack";
    /// The diagonal of an array: one dim for two axes
    diagonal [f32 i32] (x: T [I]) -> [I],
        call: shown!(x.at((I, I)); where {
            let square = from_fn((V.of(x.size(I)), L.of(x.size(I))), |(v, l)| (10 * v + l) as T);
            let (given, x) = (x, square.order((V, L)).into_tensor((I, K)).rename(K, J).order((I, J)));
        } then |found| given + found.eval()),
        loops: build(x.shape(), |at| x[[at[0]]] + (11 * at[0]) as T),
        along: [I], keep: [],
        names: "diagonal" "numpy.diagonal" "diagonal";
}
