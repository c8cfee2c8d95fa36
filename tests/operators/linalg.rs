//! Linear algebra: diagonals, products, norms and distances. `matrices` has the rest.

use crate::loops::{build, fold};
use crate::table::Family;
use crate::value::of;
use crate::{C, I, Inner, J, K, L, Outer, P, Q};
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Linear algebra",
        about: "`diagonal`, `tril`, `triu`, `prime`, `unprime`, `transpose` and `x * y` are lazy; the others run immediately. Both operands of `contract`, `dot`, `cdist` and `cosine_similarity` must have the dims that you pass. `J'` is `prime(J)`, of the type `Prime<J>`.",
        operators: entries(),
    }
}

fn p_norm<T: Copy + Into<f64>>(line: impl Iterator<Item = T>, p: f64) -> f64 {
    line.map(|x| x.into().abs().powf(p)).sum::<f64>().powf(1.0 / p)
}

crate::operators! {
    /// The elements on a diagonal: `out[i] = x[i, i + 1]`
    diagonal_at [f32 i32] (x: T [I J K]) -> [K I],
        call: x.diagonal(I, J, 1),
        loops: build(&[x.shape()[2], x.shape()[0].min(x.shape()[1] - 1)], |at| x[[at[1], at[1] + 1, at[0]]]),
        along: [I J], keep: [J],
        errors: [Array2::<f32>::zeros((2, 4)).at((I, J)).try_diagonal(I, J, 5)
            => "there is no diagonal 5 in a matrix of dims `I` = 2, `J` = 4"],
        names: "diagonal" "numpy.diagonal" "diagonal";
    /// `sum over i of x[i, i]`
    trace [f32 i32 f16] (x: T [I K J]) -> [K],
        call: x.trace(I, J),
        loops: build(&[x.shape()[1]], |at| {
            (0..x.shape()[0].min(x.shape()[2])).fold(0 as T, |sum, i| sum + x[[i, at[0], i]])
        }),
        along: [I J], keep: [],
        names: "trace" "numpy.trace" "trace";
    /// A matrix with the elements on its diagonal
    diag_embed [f32 i32] (x: T [I K]) -> [J K I],
        call: x.diag_embed(I, J),
        loops: build(&[x.shape()[0], x.shape()[1], x.shape()[0]], |at| if at[0] == at[2] { x[[at[0], at[1]]] } else { 0 as T }),
        along: [I J], keep: [],
        names: "diag_embed" "numpy.diag" "diag";
    /// The lower triangle: `x[i, j]` where `j <= i + 1`, else 0
    tril [f32 i32] (x: T [I J]) -> [J I],
        call: x.tril(I, J, 1),
        loops: build(&[x.shape()[1], x.shape()[0]], |at| if at[0] <= at[1] + 1 { x[[at[1], at[0]]] } else { 0 as T }),
        along: [I J], keep: [],
        names: "tril" "numpy.tril" "tril";
    /// The upper triangle: `x[i, j]` where `j >= i`, else 0
    triu [f32 i32] (x: T [I J]) -> [I J],
        call: x.triu(I, J, 0),
        loops: build(x.shape(), |at| if at[1] >= at[0] { x[[at[0], at[1]]] } else { 0 as T }),
        along: [I J], keep: [],
        names: "triu" "numpy.triu" "triu";
    /// `sum over i of x[i] * y[i]`
    dot [f32 f64 i32] (x: T [I], y: T [I]) -> [],
        call: x.dot(y, I),
        loops: x.iter().zip(y).fold(0 as T, |sum, (x, y)| sum + x * y),
        along: [I], keep: [],
        names: "dot" "numpy.dot" "dot";
    /// `sum over j of x[i, j] * y[j, k]`
    matmul [f32 f64 i32] (x: T [I J], y: T [J K]) -> [K I],
        call: x.contract(y, J),
        loops: build(&[y.shape()[1], x.shape()[0]], |at| {
            (0..x.shape()[1]).fold(0 as T, |sum, j| sum + x[[at[1], j]] * y[[j, at[0]]])
        }),
        along: [J], keep: [],
        names: "matmul" "numpy.matmul" "matmul";
    /// `sum over j and k of x[i, j, k] * y[k, j, l]`
    tensordot [f32 i32] (x: T [I J K], y: T [K J L]) -> [I L],
        call: x.contract(y, (J, K)),
        loops: build(&[x.shape()[0], y.shape()[2]], |at| {
            let pairs = (0..x.shape()[1]).flat_map(|j| (0..x.shape()[2]).map(move |k| (j, k)));
            pairs.fold(0 as T, |sum, (j, k)| sum + x[[at[0], j, k]] * y[[k, j, at[1]]])
        }),
        along: [J K], keep: [],
        names: "tensordot" "numpy.tensordot" "tensordot";
    /// `x[i] * y[j]`
    outer [f32 i32] (x: T [I], y: T [J]) -> [J I],
        call: x * y,
        loops: build(&[y.len(), x.len()], |at| x[[at[1]]] * y[[at[0]]]),
        along: [], keep: [],
        names: "outer" "numpy.outer" "outer";
    /// The Kronecker product: `out[(i, k), (j, l)] = x[i, j] * y[k, l]`
    kron [f32 i32] (x: T [I J], y: T [K L]) -> [P Q],
        call: (x * y).flatten((I, K), P).flatten((J, L), Q),
        loops: build(&[x.shape()[0] * y.shape()[0], x.shape()[1] * y.shape()[1]], |at| {
            let (k, l) = (y.shape()[0], y.shape()[1]);
            x[[at[0] / k, at[1] / l]] * y[[at[0] % k, at[1] % l]]
        }),
        along: [I J K L], keep: [],
        names: "kron" "numpy.kron" "kron";
    /// `prime(J)` in place of `J`: `out[j'] = x[j]`
    prime [f32 i32] (x: T [I J]) -> [C I],
        call: shown!(x.prime(J); then |found| found.rename(prime(J), C)),
        loops: x.clone().reversed_axes(),
        along: [J], keep: [],
        names: "" "" "";
    /// `J` in place of `prime(J)`: `out[j] = x[j']`
    unprime [f32 i32] (x: T [I C]) -> [J I],
        call: shown!(x.unprime(J); where { let x = x.rename(C, prime(J)); }),
        loops: x.clone().reversed_axes(),
        along: [C], keep: [],
        names: "" "" "";
    /// The transpose of square matrices: `out[j, j'] = x[j', j]`
    transpose [f32 i32] (x: T [J C]) -> [J C],
        call: shown!(x.transpose(J); where { let x = x.rename(C, prime(J)); } then |found| found.rename(prime(J), C)),
        loops: x.clone().reversed_axes(),
        along: [J C], keep: [J C],
        names: "transpose" "numpy.matrix_transpose" "matrix_transpose";
    /// The product of square matrices: `out[j, j'] = sum over k of x[j, k] * y[k, j']`
    compose [f32 f64 i32] (x: T [J C], y: T [J C]) -> [C J],
        call: shown!(x.compose(y, J); where {
            let (x, y) = (x.rename(C, prime(J)), y.rename(C, prime(J)));
        } then |found| found.rename(prime(J), C)),
        loops: build(&[4, 4], |at| (0..4).fold(0 as T, |sum, k| sum + x[[at[1], k]] * y[[k, at[0]]])),
        along: [J C], keep: [J C],
        names: "matmul" "numpy.matmul" "matmul";
    /// `sum of |x|`
    norm_l1 [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.norm_p(J, of(1.0)),
        loops: fold(x, 1, |x| p_norm(x.iter().copied(), 1.0) as T),
        along: [J], keep: [],
        names: "linalg.vector_norm(ord=1)" "numpy.linalg.norm(ord=1)" "linalg.norm(ord=1)";
    /// `max of |x|`
    norm_inf [f32 f64 f16] (x: T [I J]) -> [I],
        call: x.norm_p(J, T::INFINITY),
        loops: fold(x, 1, |x| x.iter().fold(0.0, |max: T, x| max.max(x.abs()))),
        along: [J], keep: [J],
        errors: [Array2::<f32>::zeros((2, 0)).at((I, J)).try_norm_p(J, f32::INFINITY)
            => "`norm_p` over dim `J` = 0 has no elements to choose from"],
        names: "linalg.vector_norm(ord=inf)" "numpy.linalg.norm(ord=inf)" "linalg.norm(ord=inf)";
    /// The number of elements that are not 0
    norm_zero [f32 f64 f16] (x: T [I J] in Ties) -> [I],
        call: x.norm_p(J, of(0.0)),
        loops: fold(x, 1, |x| x.iter().filter(|x| **x != 0.0).count() as T),
        along: [J], keep: [],
        names: "linalg.vector_norm(ord=0)" "numpy.linalg.norm(ord=0)" "linalg.norm(ord=0)";
    /// `(sum of |x|^p)^(1/p)`
    norm_p [f32 f64 half] (x: T [J I]) -> [I],
        call: x.norm_p(J, of(3.0)),
        loops: fold(x, 0, |x| p_norm(x.iter().copied(), 3.0) as T),
        along: [J], keep: [],
        names: "linalg.vector_norm" "numpy.linalg.norm" "linalg.norm";
    /// Euclidean distances between two sets of points: `norm over k of x[i, k] - y[j, k]`
    cdist [f32 f64] (x: T [I K], y: T [J K]) -> [J I],
        call: x.cdist(y, K, 2.0),
        loops: build(&[y.shape()[0], x.shape()[0]], |at| {
            p_norm((0..x.shape()[1]).map(|k| x[[at[1], k]] - y[[at[0], k]]), 2.0) as T
        }),
        along: [K], keep: [],
        names: "cdist" "" "scipy.spatial.distance.cdist";
    /// Distances in the `p`-norm
    cdist_p [f32 f64] (x: T [I K], y: T [J K]) -> [I J],
        call: x.cdist(y, K, 1.0),
        loops: build(&[x.shape()[0], y.shape()[0]], |at| {
            p_norm((0..x.shape()[1]).map(|k| x[[at[0], k]] - y[[at[1], k]]), 1.0) as T
        }),
        along: [K], keep: [],
        names: "cdist(p=1)" "" "scipy.spatial.distance.cdist(metric='cityblock')";
    /// The cosine of the angle between vectors
    cosine_similarity [f32 f64] (x: T [I K], y: T [J K]) -> [J I],
        call: x.cosine_similarity(y, K, 1e-8),
        loops: build(&[y.shape()[0], x.shape()[0]], |at| {
            let dot = |a: &dyn Fn(usize) -> T, b: &dyn Fn(usize) -> T| (0..x.shape()[1]).map(|k| f64::from(a(k) * b(k))).sum::<f64>();
            let (a, b) = (|k: usize| x[[at[1], k]], |k: usize| y[[at[0], k]]);
            (dot(&a, &b) / (dot(&a, &a).sqrt().max(1e-8) * dot(&b, &b).sqrt().max(1e-8))) as T
        }),
        along: [K], keep: [],
        errors: [Array2::<f32>::zeros((2, 3)).at((I, K)).try_cosine_similarity(Array2::zeros((2, 3)).at((J, K)), K, -1.0)
            => "`cosine_similarity` with the epsilon -1.0: it must be 0 or more"],
        names: "cosine_similarity" "optax.cosine_similarity" "";
    /// Vectors divided by their lengths: `x / max(norm, eps)`
    normalize [f32 f64 f16] (x: T [J I]) -> [I J],
        call: x.normalize(J, of(1e-8)),
        loops: crate::loops::along(x, 0, |x| {
            let norm = p_norm(x.iter().copied(), 2.0).max(1e-8);
            x.iter().map(|&x| (f64::from(x) / norm) as T).collect()
        }).reversed_axes(),
        along: [J], keep: [],
        errors: [Array2::<f32>::zeros((2, 3)).at((J, I)).try_normalize(J, -1.0) => "`normalize` with the epsilon -1.0: it must be 0 or more"],
        names: "nn.functional.normalize" "" "";
}
