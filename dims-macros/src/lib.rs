//! The macros of `typed-dims`. Use that crate, which re-exports them.

mod batched;
mod comprehension;
mod depth;
mod dims;
mod einsum;
mod fields;
mod gather;
mod groups;
mod key;
mod library;
mod load;
#[cfg(feature = "onnx")]
mod onnx;
mod packing;
mod parameters;
mod pattern;
mod roles;
mod shape;
mod transform;

use groups::visible;
use library::found;
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use transform::TransformKind;

/// The expansion of a macro, or the error about its input. Input that is nested too deep for syn is not parsed.
fn read(input: Tokens, expand: impl FnOnce(Tokens) -> syn::Result<Tokens>) -> TokenStream {
    let expansion = depth::check(input.clone()).and_then(|()| expand(input));
    expansion.map_or_else(syn::Error::into_compile_error, found).into()
}

/// The same for macros that are called among other code, and report their errors themselves.
fn call(input: TokenStream, expand: impl FnOnce(Tokens) -> Tokens) -> TokenStream {
    read(input.into(), |input| Ok(expand(visible(input))))
}

/// Makes dims: types that stand for dimensions, unique to the place (and for local dims to the execution) that made them.
///
/// **Declared dims** can be named in signatures and struct fields. They may carry a static size:
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! {
///     /// Examples in a mini-batch.
///     pub struct Batch;
///     pub struct Heads = 12;
/// }
///
/// assert_eq!(Heads::SIZE, 12);
/// let x = zeros::<f32, _>((Batch.of(2), Heads));
/// assert_eq!(x.size(Batch), 2);
/// ```
///
/// **Local dims** live in a block, and take their size from the first axis they are bound to, unless one is given:
///
/// ```
/// use typed_dims::prelude::*;
///
/// let n = 3;
/// dims!(i, j = 2, k = n);
/// let a = ndarray::array![1.0, 2.0];
/// let a = a.at(i);
/// assert_eq!((i.size(), j.size(), k.size()), (2, 2, 3));
/// # let _ = a;
/// ```
///
/// `l: [3]` makes three dims, `l0`, `l1` and `l2`, and `l`, which stands for all of them: each is bound to an axis of its own, or becomes one.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let images = ndarray::Array4::<f32>::ones((2, 3, 4, 5));
/// dims!(b, c, space: [2]);
/// let x = images.at((b, c, space));
/// assert_eq!(x.sum(space).order((c, b)), ndarray::Array2::from_elem((3, 2), 20.0));
/// assert_eq!((space0.size(), space1.size()), (4, 5));
/// ```
///
/// A dim can have a role, which says what it means; operations that expect a role refuse dims of others. Dims without are taken everywhere.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! {
///     pub struct Batch: DataBatch;
///     pub struct Channel: DataChannel = 64;
/// }
/// dims!(t: DataTime, h: DataFeature = 3);
/// assert_eq!(h.size(), 3);
/// # let _ = t;
/// ```
///
/// A local dim is a `&Dim<..>` whose type no other execution of the same line shares. A tensor that has it cannot leave
/// the block, nor go from one iteration of a loop into the next.
///
/// A static size is a literal, or a constant expression of up to 1024 or a power of two.
#[proc_macro]
pub fn dims(input: TokenStream) -> TokenStream {
    read(input.into(), |input| Ok(dims::expand::expand(&syn::parse2(input)?)))
}

/// Declares roles, what dims can mean, besides those of ONNX. A role can refine another: it is accepted where that one is expected. Roles refine
/// one another in no circle, and at most 16 one after the other.
///
/// In a module with `#![no_implicit_prelude]`, import roles that another module declares: there rustc does not know the attribute `#[diagnostic::..]` that roles have.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::set::DimsOf;
///
/// roles! {
///     /// A position in a picture.
///     pub struct Pixel: DataFeature;
///     pub struct Sensor;
/// }
/// dims! {
///     pub struct Row: Pixel;
///     pub struct Probe: Sensor = 4;
/// }
///
/// /// The mean over the pixels, whatever they are called.
/// fn brightness<D: Plays<Pixel> + DimsOf<(Row, Probe), X>, X: Dims>(
///     x: &Tensor<f32, (Row, Probe)>,
///     pixels: D,
/// ) -> Named<f32, X> {
///     x.mean(pixels)
/// }
///
/// let x = ones::<f32, _>((Row.of(2), Probe));
/// assert_eq!(brightness(&x, Row).dims(), [("Probe", 4)]);
/// ```
#[proc_macro]
pub fn roles(input: TokenStream) -> TokenStream {
    read(input.into(), |input| Ok(roles::expand(&syn::parse2(input)?)))
}

/// A function that is written for one example, and called with any further dims bound.
///
/// The dims and the positional axes of the signature are those of one example. A caller's tensors may have any dims besides, each argument
/// different ones; the result has those of all arguments:
///
/// ```
/// use typed_dims::prelude::*;
///
/// #[batched]
/// fn mm(a: Tensor<f32, (), U2>, b: Tensor<f32, (), U2>) -> Tensor<f32, (), U2> {
///     dims!(i, j, k);
///     (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
/// }
///
/// let (a, b) = (Array3::<f32>::ones((5, 2, 3)), Array3::<f32>::ones((5, 3, 4)));
/// dims!(n);
/// let (c, plan) = explain(|| mm(a.at((n, .., ..)), b.at((n, .., ..)))); // five products
/// assert_eq!(c.order(n).shape(), [5, 2, 4]);
/// assert_eq!(plan.steps.len(), 1); // in one contraction
/// ```
#[doc = include_str!("../docs/batched.md")]
#[proc_macro_attribute]
pub fn batched(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let (attribute, item) = (attribute.into(), Tokens::from(item));
    match depth::check(item.clone()) {
        Ok(()) => found(batched::expand(attribute, item)).into(),
        Err(error) => batched::unread(&error, item).into(),
    }
}

/// A comprehension: an array from what is in each of its places, as loops would compute it.
///
/// ```
/// use typed_dims::prelude::*;
/// use ndarray::array;
///
/// let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![[0.0, 1.0], [1.0, 0.0]]);
/// let product = tensor!([i, j] => sum[k](a[i, k] * b[k, j]));
/// assert_eq!(product, array![[2.0, 1.0], [4.0, 3.0]]);
/// ```
///
/// ```text
/// for i { for j { product[i, j] = sum over k of a[i, k] * b[k, j] } }
/// ```
///
/// ```text
/// tensor!( [ axis, .. ] => body )
/// axis := loop | "(" loop, .. ")"          loop := name | name "in" range | "$" dim
/// body := any expression of Rust's, with   array "[" index, .. "]"   and   reduction "[" loop, .. "]" "(" body ")"
/// ```
///
/// The list names the axes of the result, an ndarray array; without any, `[] =>`, the result is a single value. What
/// follows is Rust, with indices for as many axes as an array has. It is lowered to the typed operations of this crate, so the
/// line above *is* a matrix product, `x[h + kh, w + kw]` is a strided view and not a copy, and all else is one fused pass.
/// Where more than 32 operations stand within one another, the first of them are computed on their own, as an array over all loops around them.
///
/// # Loops and their sizes
///
/// A loop variable is `i`, `i in 0..n`, or `$i`, which is a dim of the surrounding scope. Two neighbours in parentheses,
/// `[b, (h, w)]`, become one axis. The size of a loop is
///
/// 1. that of its range, if it has one; then indices may run over a part of an axis, and may not leave it;
/// 2. else that of each axis of which it alone is the index (all must agree);
/// 3. else the greatest with which an index like `x[2 * i + k]` stays within its axis, the sizes of the other loops being known;
///    a window that does not fit into its axis is an error.
///
/// ```
/// # use typed_dims::prelude::*;
/// # use ndarray::array;
/// let (x, n) = (array![1, 2, 4, 8], 4);
/// let rolled = tensor!([i in 0..n] => x[(i + 1) % n]);
/// let window = array![1, 10];
/// let convolved = tensor!([i] => sum[k](x[i + k] * window[k]));
/// assert_eq!((rolled, convolved), (array![2, 4, 8, 1], array![21, 42, 84]));
/// ```
///
/// # What the body can be
///
/// | written | meaning |
/// |---|---|
/// | `a[i, 0]`, `self.w[i, j]`, `(a.t())[i, j]`, `a[i][j]` | an element; the array is borrowed, and evaluated once, outside of the loops; a literal `-1` is the last one |
/// | `w[ids[b, s], f]` | an element whose index is looked up |
/// | `+ - * / %`, `& \| ^ !`, `-x` | arithmetic on elements, loop variables, and captured values |
/// | `== != < <= > >=`, `&&`, `\|\|` | comparisons and logic; the right side of `&&` and `\|\|` is read only where the left one does not decide |
/// | `if i <= j { .. } else if .. { .. } else { .. }` | a choice; what is not taken is not read, and may be out of range |
/// | `let x = a[i]; ..` | a name for a part, in a block or at the start |
/// | `x as f32` | a cast |
/// | `x.exp()`, `x.max(0.0)`, `x.powi(2)` | the methods of `Elementwise`, fused; any other method of Rust's, called for each element |
/// | `f(a[i], b[j])`, `match a[i] { .. }` | a function or a closure, called for each element |
/// | `sum[k](..)`, `max[k in 0..n, l](..)` | a reduction over loops of its own: `sum`, `prod`, `mean`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, `count`, `var`, `std`, `norm`, `logsumexp` |
/// | all other code | Rust, evaluated once |
///
/// A loop variable is an integer. It takes the integer type of the elements and values that it is combined with, and is `isize` on its own;
/// what is a float wants `i as f32`.
///
/// ```
/// # use typed_dims::prelude::*;
/// # use ndarray::array;
/// let a = array![3, 1, 4];
/// let n = a.len();
/// let differences = tensor!([i] => if i > 0 { a[i] - a[i - 1] } else { a[i] });
/// let table = array![[0.0, 0.5], [1.0, 1.5]];
/// let ids = array![[1usize, 0], [1, 1]];
/// let bags = tensor!([b, f] => sum[s](table[ids[b, s], f]));
/// let identity = tensor!([i in 0..n, j in 0..n] => if i == j { 1.0 } else { 0.0 });
/// assert_eq!(differences, array![3, -2, 3]);
/// assert_eq!(bags, array![[1.0, 2.0], [2.0, 3.0]]);
/// assert_eq!(identity.sum(), 3.0);
/// ```
///
/// # From numpy and torch
///
/// | there | here |
/// |---|---|
/// | `a @ b` | `tensor!([i, j] => sum[k](a[i, k] * b[k, j]))` |
/// | `np.triu(a)` | `tensor!([i, j] => if i <= j { a[i, j] } else { 0.0 })` |
/// | `np.eye(n)` | `tensor!([i in 0..n, j in 0..n] => if i == j { 1.0 } else { 0.0 })` |
/// | `np.roll(a, -1)` | `tensor!([i in 0..n] => a[(i + 1) % n])` |
/// | `np.flip(a)` | `tensor!([i in 0..n] => a[n - 1 - i])` |
/// | `np.cumsum(a)` | `tensor!([i in 0..n] => sum[j](if j <= i { a[j] } else { 0.0 }))` |
/// | `np.bincount(a, minlength=n)` | `tensor!([v in 0..n] => sum[i](if a[i] == v { 1 } else { 0 }))` |
/// | `a[idx]`, `np.take(a, idx, 0)` | `tensor!([i, j] => a[idx[i], j])` |
/// | `F.embedding_bag(ids, w)` | `tensor!([b, f] => sum[s](w[ids[b, s], f]))` |
/// | `F.conv1d(x, w)` | `tensor!([b, o, t] => sum[c, k](x[b, c, t + k] * w[o, c, k]))` |
/// | `np.outer(a, b)` | `tensor!([i, j] => a[i] * b[j])` |
/// | `np.where(c, a, b)` | `tensor!([i] => if c[i] { a[i] } else { b[i] })` |
/// | `np.trace(a)` | `tensor!([] => sum[i](a[i, i]))` |
///
/// # Panics
///
/// Where [`try_tensor!`] returns an error.
#[proc_macro]
pub fn tensor(input: TokenStream) -> TokenStream {
    call(input, |input| comprehension::expand(input, comprehension::LoopNotation::Tensor, false))
}

/// As [`tensor!`], but what sizes decide is an error: a `Result<_, DimError>`.
///
/// The error is that of a loop with two sizes, of an index out of range, of a reduction like `max` with nothing to choose from,
/// or of a result that does not fit into memory. It names the loop.
///
/// ```
/// use typed_dims::prelude::*;
/// use ndarray::array;
///
/// let (a, b) = (array![1, 2, 3], array![1, 2]);
/// let error = try_tensor!([i] => a[i] + b[i]).unwrap_err();
/// assert!(error.to_string().starts_with("dim `i` has size 3"));
/// let error = try_tensor!([i in 0..3] => b[i]).unwrap_err();
/// assert!(error.to_string().starts_with("index 2 of axis 0, computed from dim `i`, is out of range"));
/// ```
#[proc_macro]
pub fn try_tensor(input: TokenStream) -> TokenStream {
    call(input, |input| comprehension::expand(input, comprehension::LoopNotation::Tensor, true))
}

/// Sums of products, in numpy's notation: `einsum!("ik,kj->ij", a, b)`.
///
#[doc = include_str!("../docs/einsum.md")]
///
/// # With the indices at their operands
///
#[doc = include_str!("../docs/einsum_indexed.md")]
#[proc_macro]
pub fn einsum(input: TokenStream) -> TokenStream {
    call(input, |input| einsum::expand(input, einsum::What::Value { fallible: false }))
}

/// As [`einsum!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_einsum(input: TokenStream) -> TokenStream {
    call(input, |input| einsum::expand(input, einsum::What::Value { fallible: true }))
}

/// In which order [`einsum!`] multiplies its operands, and what that costs: an `EinsumPath`, which prints.
///
/// The call is that of `einsum!`; the operands are looked at for their sizes alone.
///
/// ```
/// use typed_dims::einsum_path;
/// use typed_dims::prelude::*;
///
/// let (a, b, c) = (Array2::<f64>::ones((2, 100)), Array2::ones((100, 90)), Array2::ones((90, 3)));
/// let path = einsum_path!("ij,jk,kl->il", a, b, c);
/// assert_eq!(path.steps[0].pattern, "ij,jk->ik");
/// println!("{path}");
/// ```
#[proc_macro]
pub fn einsum_path(input: TokenStream) -> TokenStream {
    call(input, |input| einsum::expand(input, einsum::What::Path))
}

/// The axes of an array in another order, split, merged, joined: `rearrange!(x, b h w c -> b (c h w))`.
///
#[doc = include_str!("../docs/rearrange.md")]
#[proc_macro]
pub fn rearrange(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Rearrange, false))
}

/// As [`rearrange!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_rearrange(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Rearrange, true))
}

/// As [`rearrange!`], but a view: nothing is copied.
///
/// Every permutation, split and diagonal has a view. Axes are merged into one where they lie one within the other in memory; else there is no view,
/// and `rearrange!` copies. The operand is one array, not a list and no tensor. The notation is that of `rearrange!`, without sums of axes.
/// The view borrows it: what is made in the call, as `x.slice(..)`, needs a name first if the view is to outlive the statement.
///
/// | torch, numpy | here |
/// |---|---|
/// | `x.view(b, h, w)`, `x.permute(1, 0)` | `rearrange_view!(x, b (h w) -> b h w, h = 2)`, `rearrange_view!(x, i j -> j i)` |
/// | `np.diagonal(x)`, `x.unsqueeze(0)` | `rearrange_view!(x, i i -> i)`, `rearrange_view!(x, i j -> 1 i j)` |
///
/// ```
/// use typed_dims::prelude::*;
///
/// let x = Array::from_iter(0..12).into_shape_with_order((2, 6)).unwrap();
/// let y = rearrange_view!(x, h (w c) -> c h w, c = 2);
/// assert_eq!(y.shape(), [2, 2, 3]);
/// assert_eq!(y[(1, 0, 2)], x[(0, 5)]);
///
/// let trace: i32 = rearrange_view!(x.slice(ndarray::s![.., ..2]), i i -> i).sum();
/// assert_eq!(trace, 0 + 7);
/// assert!(try_rearrange_view!(x.t(), w h -> (w h)).is_err());
/// ```
///
/// # Panics
///
/// Where [`try_rearrange_view!`] returns an error.
#[proc_macro]
pub fn rearrange_view(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::View, false))
}

/// As [`rearrange_view!`], but what sizes and strides decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_rearrange_view(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::View, true))
}

/// The elements along some axes combined into one: `reduce!(x, b c (h h2) (w w2) -> b c h w, max, h2 = 2, w2 = 2)`.
///
#[doc = include_str!("../docs/reduce.md")]
#[proc_macro]
pub fn reduce(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Reduce, false))
}

/// As [`reduce!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_reduce(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Reduce, true))
}

/// An array repeated along new axes: `repeat!(x, h w -> h (w r), r = 3)`.
///
#[doc = include_str!("../docs/repeat.md")]
#[proc_macro]
pub fn repeat(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Repeat, false))
}

/// As [`repeat!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_repeat(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Repeat, true))
}

/// Arrays of different ranks joined into one, as by `einops.pack`: `let (packed, shape) = pack!([x0, x1], h w *);`
///
#[doc = include_str!("../docs/pack.md")]
#[proc_macro]
pub fn pack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::pack(input, false))
}

/// As [`pack!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_pack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::pack(input, true))
}

/// The arrays that [`pack!`] joined: `let [x0, x1] = unpack!(packed, shape, h w *);`
///
/// ```text
/// unpack!( packed, shape, axes )      axes  := { name } "*" { name }, as for pack!
///                                     shape := an expression | "[" part, .. "]"      part := "[" size, .. "]"
/// ```
///
/// | einops | here |
/// |---|---|
/// | `image, mask = unpack(packed, ps, "h w *")` | `let [image, mask] = unpack!(packed, shape, h w *);` |
/// | `unpack(packed, [[3], []], "h w *")` | `unpack!(packed, [[3], []], h w *)` |
/// | `unpack(packed, [[1], [-1]], "b * c")` | `unpack!(packed, [[1], [-1]], b * c)`: `-1` is what the others leave |
///
/// Of a list that was written out, `[x0, x1]`, these are an array of arrays; of a vector or slice a vector. Their rank is that of what was packed; if
/// ranks differed, it is dynamic. The shape may also be written out, the sizes of the axes `*` for each array, or be made of them at run time:
/// `PackedShape::from(vec![vec![2, 3], vec![]])`.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let packed = Array2::<f32>::zeros((4, 7));
/// let parts = unpack!(packed, [[2, 3], []], batch *);
/// assert_eq!((parts[0].shape(), parts[1].shape()), (&[4, 2, 3][..], &[4][..]));
///
/// let [class, patches] = unpack!(packed, [[1], [-1]], batch *);
/// assert_eq!((class.dim(), patches.dim()), ((4, 1), (4, 6)));
/// ```
///
/// # Panics
///
/// Where [`try_unpack!`] returns an error: if the sizes do not add up to the axis `*`.
#[proc_macro]
pub fn unpack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::unpack(input, false))
}

/// As [`unpack!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_unpack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::unpack(input, true))
}

/// The sizes of an array's axes by name: `let s = parse_shape!(x, b _ h w);` has the fields `s.b`, `s.h` and `s.w`.
///
/// ```text
/// parse_shape!( array, axes [, name = size, ..] )      axes := { name | number | "_" | "..." | "(" axes ")" }
/// ```
///
/// `_` is an axis whose size does not matter, `...` any number of them; a number must be the size of its axis, and groups are split, with sizes given
/// behind the pattern, as in [`rearrange!`].
///
/// | einops | here |
/// |---|---|
/// | `parse_shape(x, "b _ h w")` | `parse_shape!(x, b _ h w)`, or the pattern as a string |
/// | `rearrange(y, "(b h w) c -> b c h w", **parse_shape(x, "b _ h w"))` | `rearrange!(y, (b h w) c -> b c h w, b = s.b, h = s.h)` |
///
/// ```
/// use typed_dims::prelude::*;
///
/// let x = Array4::<f32>::zeros((2, 3, 5, 7));
/// let s = parse_shape!(x, b _ h w);
/// assert_eq!((s.b, s.h, s.w), (2, 5, 7));
/// assert_eq!(parse_shape!(x, "... channels h w").channels, 3);
///
/// let flat = Array2::<f32>::zeros((2 * 5 * 7, 10));
/// let y = rearrange!(flat, (b h w) c -> b c h w, b = s.b, h = s.h);
/// assert_eq!(y.shape(), [2, 10, 5, 7]);
/// ```
///
/// # Panics
///
/// Where [`try_parse_shape!`] returns an error: if a number is not the size of its axis, a group does not fit, or an array of dynamic rank has another number
/// of axes.
#[proc_macro]
pub fn parse_shape(input: TokenStream) -> TokenStream {
    call(input, |input| shape::expand(input, false))
}

/// As [`parse_shape!`], but what sizes decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_parse_shape(input: TokenStream) -> TokenStream {
    call(input, |input| shape::expand(input, true))
}

/// Elements at computed positions: `gather!(table[_ feat], words[batch seq] => batch seq feat)`.
///
/// ```text
/// gather!( array[axes], positions[axes], .. => axes [, name = size, ..] )
/// axes := { name | "_" | "..." | "(" axes ")" | "[" number "]" }                            as tokens or in a string
/// ```
///
/// The first array has an axis `_` for each array of positions that follows, in this order. An array of positions with an axis `[2]` has two
/// coordinates for each position, and stands for two axes `_`. `...` are further axes of the first array, which end the result. An axis that several
/// arrays have is one axis:
///
/// ```text
/// gather!(w[_ f], ids[b s] => b s f)          out[b, s, f] = w[ids[b, s], f]
/// gather!(x[b _], ids[b k] => b k)            out[b, k] = x[b, ids[b, k]]
/// gather!(x[_ _ c], y[p], x[p] => p c)        out[p, c] = x[y[p], x[p], c]
/// gather!(x[_ _ c], yx[p [2]] => p c)         out[p, c] = x[yx[p, 0], yx[p, 1], c]
/// gather!(x[_ ...], ids[k] => k ...)          out[k, ..] = x[ids[k], ..]
/// ```
///
/// | torch, numpy, einx | here |
/// |---|---|
/// | `w[ids]`, `torch.nn.functional.embedding(ids, w)` | `gather!(w[_ f], ids[b s] => b s f)` |
/// | `torch.gather(x, 1, ids)`, `np.take_along_axis(x, ids, 1)` | `gather!(x[b _], ids[b k] => b k)` |
/// | `image[ys, xs]` | `gather!(image[_ _ c], ys[p], xs[p] => p c)` |
/// | `einx.get_at("b [h w] c, b p, b p -> b p c", ..)` | `gather!(image[b _ _ c], ys[b p], xs[b p] => b p c)` |
/// | `einx.get_at("b [h w] c, b p [2] -> b p c", ..)` | `gather!(image[b _ _ c], yx[b p [2]] => b p c)` |
/// | `np.take(x, ids, 0)`, `x[ids]` | `gather!(x[_ ...], ids[k] => k ...)` |
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::ndarray::array;
///
/// let table = array![[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]];
/// let words = array![[2, 0], [1, 1]];
/// let embedded = gather!(table[_ feat], words[batch seq] => batch seq feat);
/// assert_eq!(embedded, array![[[2.0, 2.5], [0.0, 0.5]], [[1.0, 1.5], [1.0, 1.5]]]);
/// assert_eq!(gather!(table[_ f], words[b s] => (b s) f).shape(), [4, 2]);
///
/// let places = array![[0, 1], [2, 0]]; // (row, column) of each
/// assert_eq!(gather!(table[_ _], places[p [2]] => p), array![0.5, 2.0]);
/// assert_eq!(gather!(table[_ ...], places[p k] => p k ...).shape(), [2, 2, 2]);
///
/// let error = try_gather!(table[_ feat], array![3][word] => word feat).unwrap_err();
/// assert!(error.to_string().contains("index 3 of axis 0, computed from dim `word`"), "{error}");
/// ```
///
/// # Panics
///
/// Where [`try_gather!`] returns an error: if a position is out of range, or an axis has two sizes.
#[proc_macro]
pub fn gather(input: TokenStream) -> TokenStream {
    call(input, |input| gather::expand(input, false))
}

/// As [`gather!`], but what sizes and positions decide is an error: a `Result<_, DimError>`.
#[proc_macro]
pub fn try_gather(input: TokenStream) -> TokenStream {
    call(input, |input| gather::expand(input, true))
}

#[cfg(feature = "onnx")]
#[doc = include_str!("../docs/onnx_dims.md")]
#[proc_macro]
pub fn onnx_dims(input: TokenStream) -> TokenStream {
    call(input, onnx::expand)
}

// (Its example reads a file of safetensors.)
#[cfg_attr(any(not(doctest), feature = "safetensors"), doc = include_str!("../docs/load.md"))]
#[proc_macro_derive(Load, attributes(load))]
pub fn load(input: TokenStream) -> TokenStream {
    read(input.into(), |input| Ok(load::expand(&load::LoadInput::new(syn::parse2(input)?)?)))
}

#[doc = include_str!("../docs/parameters.md")]
#[proc_macro_derive(Parameters, attributes(parameters))]
pub fn parameters(input: TokenStream) -> TokenStream {
    read(input.into(), |input| parameters::expand(&syn::parse2(input)?))
}
