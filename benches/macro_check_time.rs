//! The time that `cargo check` takes for a file with 500 macro calls: once with a mix of
//! several macros, and once with `tensor!` alone.

mod generated;

const CALLS: usize = 500;

/// Functions with one call each. `N` is replaced by a unique number.
const TENSOR: &[&str] = &[
    "fn fN(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> { tensor!([i, j] => sum[k](a[i, k] * b[k, j])) }",
    "fn fN(a: &Array2<f32>) -> Array2<f32> { tensor!([i, j] => if i <= j { a[i, j] } else { 0.0 }) }",
    "fn fN(a: &Array1<f32>, n: usize) -> Array1<f32> { tensor!([i in 0..n] => a[(i + 1) % n]) }",
    "fn fN(w: &Array2<f32>, ids: &Array2<usize>) -> Array2<f32> { tensor!([b, f] => sum[s](w[ids[b, s], f])) }",
    "fn fN(x: &Array2<f32>, g: &Array1<f32>) -> Array2<f32> { tensor!([i, j] => (x[i, j] * g[j]).exp() + 1.0) }",
];

const OTHERS: &[&str] = &[
    "fn fN(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> { einsum!(\"ik,kj->ij\", a, b) }",
    "fn fN(x: &Array4<f32>, y: &Array4<f32>) -> Array4<f32> { einsum!(x[b, h, q, d] * y[b, h, k, d] => [b, h, q, k]) }",
    "fn fN(x: &Array4<f32>) -> Array4<f32> { rearrange!(x, b (c h2 w2) h w -> b c (h h2) (w w2), h2 = 2, w2 = 2) }",
    "fn fN(x: &Array4<f32>) -> Array4<f32> { reduce!(x, b c (h h2) (w w2) -> b c h w, max, h2 = 2, w2 = 2) }",
    "fn fN(x: &Array2<f32>) -> Array3<f32> { repeat!(x, h w -> h w c, c = 3) }",
    "fn fN(x: &Array3<f32>, y: &Array2<f32>) -> Array3<f32> { pack!([x, y], h w *).0 }",
    "fn fN(x: &Array3<f32>) -> (Array3<f32>, Array3<f32>) { rearrange!(x, h (a + b) c -> h a c, h b c, a = 2) }",
    "fn fN(w: &Array2<f32>, ids: &Array2<usize>) -> Array3<f32> { gather!(w[_ f], ids[b s] => b s f) }",
];

fn source(functions: &[&str]) -> String {
    let function =
        |at: usize| format!("pub {}\n", functions[at % functions.len()].replace("fN", &format!("f{at}")));
    let calls: String = (0..CALLS).map(function).collect();
    format!("use typed_dims::prelude::*;\n{calls}")
}

fn main() {
    let mixed = source(&[TENSOR, OTHERS].concat());
    let texts = [
        (&*format!("{CALLS} calls of several macros"), mixed),
        (&*format!("{CALLS} calls of `tensor!`"), source(TENSOR)),
    ];
    generated::print_check_times("macro_check_time", &texts);
}
