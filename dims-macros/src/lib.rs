//! The macros of `typed-dims`. Use that crate, which re-exports them.

mod dims;
mod key;

use proc_macro::TokenStream;

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
/// A local dim is a `&Dim<..>` whose type no other execution of the same line shares. A tensor that has it cannot leave
/// the block, nor go from one iteration of a loop into the next.
///
/// A static size is a literal, or a constant expression of up to 1024 or a power of two.
#[proc_macro]
pub fn dims(input: TokenStream) -> TokenStream {
    let ast = syn::parse_macro_input!(input as dims::ast::Input);
    dims::expand::expand(&ast).into()
}
