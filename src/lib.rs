//! First-class, statically checked tensor dimensions.
//!
//! A *dim* is a Rust item. When you bind it to an axis of an array, it becomes part of the tensor's type. Every operation loops over
//! it, and rustc checks that the tensor has each dim that you name, and that no dim is left over.
//!
//! ```
//! use typed_dims::prelude::*;
//!
//! dims! {
//!     /// Samples that are looked at together.
//!     pub struct Batch;
//!     pub struct Input;
//!     pub struct Output = 2;
//! }
//!
//! /// `out[batch, output] = max(sum over input of x[batch, input] * weight[input, output] + bias[output], 0)`
//! fn layer(
//!     x: &Tensor<f32, (Batch, Input)>,
//!     weight: &Tensor<f32, (Input, Output)>,
//!     bias: &Tensor<f32, (Output,)>,
//! ) -> Tensor<f32, (Batch, Output)> {
//!     ((x * weight).sum(Input) + bias).relu().eval()
//! }
//!
//! let x = ndarray::array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].into_tensor((Batch, Input));
//! let weight = from_fn((Input.of(3), Output), |(input, output)| if input == output { 1.0 } else { -0.1 });
//! let out = layer(&x, &weight, &full(Output, 0.5));
//! assert_eq!(out.order((Batch, Output)), ndarray::array![[1.0, 2.1], [3.4, 4.5]]);
//! ```
//!
//! A line does not compile if it forgets a dim, reduces a dim that the tensor does not have, or passes a tensor with other dims:
//!
//! ```compile_fail
//! # use typed_dims::prelude::*;
//! # dims! { pub struct Batch; pub struct Input; pub struct Output = 2; }
//! fn layer(
//!     x: &Tensor<f32, (Batch, Input)>,
//!     weight: &Tensor<f32, (Input, Output)>,
//! ) -> Tensor<f32, (Batch, Output)> {
//!     (x * weight).sum(Batch) // this has the dims (Input, Output)
//! }
//! ```
//!
//! # Finding one's way
//!
//! * [`dims!`] makes dims, declared ones (`pub struct Batch;`) and local ones (`dims!(i, j);`).
//! * [`tensor!`] and [`einsum!`] take loops as a paper writes them, and build the expressions below.
//! * [`At::at`](bind::At::at) binds the axes of an array, a slice or a tensor to dims; [`Binder`](bind::Binder) lists
//!   what can stand for an axis. [`IntoTensor`](convert::IntoTensor) makes a tensor that owns the elements of an array, without a copy;
//!   [`create`] makes tensors of constants, ranges and functions.
//! * [`Elementwise`](elementwise::Elementwise) and the operators build lazy expressions.
//! * [`Reductions`](reduce::Reductions), [`order`](order::OrderExt::order), `eval` and [assignment](assign) compute them, each in one
//!   pass or as matrix products.
//! * [`Restructure`](restructure::Restructure) renames, slices, splits and flattens dims; [`concat`](join::concat) and
//!   [`stack`](join::stack) join tensors.
//! * [`Selecting`](select::Selecting) and [`Dynamic`](dynamic::Dynamic) select by value, [`Rearranging`](shift::Rearranging) moves and pads,
//!   [`Sorting`](sort::Sorting) and [`Scans`](scans::Scans) run along a dim, [`LinearAlgebra`](linalg::LinearAlgebra) has products and
//!   norms, and [`nn`] has convolutions, pooling, normalisation and losses. `docs/operators.md` lists all operators, with their names
//!   in PyTorch, JAX and NumPy; with [`custom`] you define operators of your own.
//! * `#[derive(Parameters)]` makes [`Parameters`](grad::Parameters) of a struct of tensors: their names, elements and zeros at once.
//!   [`optim`] changes them by their gradient, [`init`] makes their first values, and `checkpoint` (with `safetensors`) saves and loads them.
//! * [`Stream`](stream::Stream) is a tensor with a data dimension, for hardware that streams one dim.
//! * [`Tensor`](named::Tensor) is the type to write in signatures, [`Named`](named::Named) the one that messages show.
//!   A function that takes a tensor with further dims of its caller says `Tensor<f32, (Seq, Rest<B>)>`: see
//!   [`Rest`].
//! * [`DimError`](error::DimError) is what the `try_` form of an operation returns; the short form panics with its text.
//!
//! # When things run, and what they allocate
//!
//! Operators, elementwise methods, views and comparisons compute nothing by themselves. `((a - b).abs()).sum(k)` is one pass without a
//! temporary. `(a * b * c).sum((j, k))` is one contraction, which runs as matrix products along the cheapest path.
//!
//! A result is contiguous. Its axes are in the order that you passed to `order`, or else in the order in which the dims were declared. There is one
//! exception: if the last dim is one that both factors of a matrix product have, such dims come first, so that each product is contiguous. Softmax and
//! scans keep that order. The layout never changes the result.
//!
//! [`attention`](attention::attention) fuses the softmax with both products, and works tile by tile:
//!
//! ```
//! use typed_dims::prelude::*;
//! # let (q, k, v) = (Array2::<f32>::ones((5, 8)), Array2::<f32>::ones((5, 8)), Array2::<f32>::eye(5));
//! dims!(i, j, d, e);
//! let causal = i.ge(j);
//! let out = attention(q.at((i, d)), k.at((j, d)), v.at((j, e)), d, j, 8f32.powf(-0.5), causal).order((i, e));
//! assert_eq!(out.row(1), ndarray::arr1(&[0.5, 0.5, 0.0, 0.0, 0.0]));
//! ```
//!
//! # The operator library
//!
//! Where other libraries take the number of an axis, operators here take a dim. They loop over all other dims of the tensor, so a
//! convolution of one image is also a convolution of a batch.
//!
//! ```
//! use typed_dims::prelude::*;
//!
//! dims! {
//!     pub struct Batch;
//!     pub struct Channel;
//!     pub struct Height;
//!     pub struct Width;
//!     /// Rows of the window.
//!     pub struct Kh = 3;
//!     pub struct Kw = 3;
//!     pub struct Class;
//! }
//!
//! fn logits<B: Dims>(
//!     image: &Tensor<f32, (Channel, Height, Width, Rest<B>)>,
//!     weight: &Tensor<f32, (Channel, Kh, Kw, Class)>,
//! ) -> Tensor<f32, (Class, Rest<B>)> {
//!     let same = Window::new().padding(1);
//!     conv(image, weight, Channel, (Height, Width), (Kh, Kw), &same).relu().mean((Height, Width))
//! }
//!
//! let images = rand::<f32, _>((Batch.of(2), Channel.of(3), Height.of(8), Width.of(8)), 1);
//! let weight = randn::<f32, _>((Channel.of(3), Kh, Kw, Class.of(10)), 2);
//! let labels = ndarray::array![7usize, 1];
//! let logits = logits(&images.seal((Channel, Height, Width)), &weight).unseal();
//! let loss = logits.cross_entropy(Class, labels.at(Batch)).mean(Batch).order(());
//! assert!(loss > 0.0);
//! ```
//!
//! # Features
//!
//! * `gemm` (on by default): matrix products run on the crate `gemm`, which measures 15 to 45 % faster than `matrixmultiply` at most
//!   shapes with AVX-512. It takes longer to build.
//! * `rayon` (on by default): large results are computed on several threads. What is computed does not depend on how many,
//!   except for the rounding of matrix products.
//! * `blas`: matrix products run by a BLAS that the program links and installs: [`blas`].
//! * `std` (on by default): the standard library. With it kernels are chosen at run time for the processor's instructions, memory is recycled
//!   (`storage::memory`), and there are [`explain`](plan::explain::explain) and [`ledger`](stream::ledger()). `gemm`, `rayon`, `image`, `onnx` and the
//!   features for files need it. Without it the crate needs `core` and `alloc`: see below.
//! * `approx`: tensors can be compared with `approx::assert_relative_eq!` and the like.
//! * `half`: elements of type `half::f16` and `half::bf16`.
//! * `image`, `mdarray`, `nalgebra`: images, arrays and matrices of these crates are bound as arrays are, and made from tensors; `candle`: tensors
//!   of candle become ours and the other way round: [`foreign`].
//! * `safetensors`, `npy`, `memmap`: tensors in files, with the names of their dims (`file`; npz belongs to `npy`); with the last,
//!   files are looked at in place. With `safetensors` there is `#[derive(Load)]`: structs of tensors from files of weights.
//! * `onnx`: `onnx_dims!`, which makes dims and structs of the inputs and outputs of an ONNX model, and a checker of what the axes in a
//!   model mean (`onnx`).
//! * `rand`: `random`, tensors of random elements.
//! * `serde`: tensors with the names of their dims, in any format of serde's; reading checks the names.
//!
//! # Without the standard library, and on other machines
//!
//! With `default-features = false` the crate is `no_std`, and its macros work in `no_std` crates. Everything but files and threads is available,
//! including errors and allocation failures. Kernels use the instructions that the target guarantees, so `-C target-cpu` matters. Functions of floats
//! come from the crate `libm`. (ndarray's `array!` needs `alloc::vec` in scope.)
//!
//! x86-64 with or without AVX2 and AVX-512, AArch64 (NEON) and WebAssembly (with all features but `candle` and `blas`) are built for each change. On WebAssembly without
//! threads, `rayon` computes on the calling thread; `-C target-feature=+simd128` makes loops use vectors. A size that does not fit into `usize` is a
//! [`DimError`](error::DimError), on targets of 32 bits and of 64.

#![no_std]

extern crate alloc;
// Derives write `::typed_dims::..`.
extern crate self as typed_dims;

#[cfg(feature = "candle")]
pub use candle_core;
#[cfg(feature = "image")]
pub use image;
#[cfg(feature = "mdarray")]
pub use mdarray;
#[cfg(feature = "nalgebra")]
pub use nalgebra;
pub use ndarray;
pub use typed_dims_core::*;
#[cfg(feature = "safetensors")]
pub use typed_dims_macros::Load;
#[cfg(feature = "onnx")]
pub use typed_dims_macros::onnx_dims;
pub use typed_dims_macros::{
    Parameters, batched, dims, einsum, einsum_path, gather, pack, parse_shape, rearrange, rearrange_view,
    reduce, repeat, roles, tensor, try_einsum, try_gather, try_pack, try_parse_shape, try_rearrange,
    try_rearrange_view, try_reduce, try_repeat, try_tensor, try_unpack, unpack,
};
#[cfg(feature = "onnx")]
pub use typed_dims_onnx as onnx;

pub mod fallible;
pub mod nn;

pub mod prelude {
    //! What most programs name: `use typed_dims::prelude::*;`
    //!
    //! Traits that are there for their methods come without their names (`as _`): in a bound or a call by its full name, import
    //! the trait from its module, such as [`elementwise::Elementwise`](crate::elementwise::Elementwise). The `try_` forms of functions are in
    //! [`fallible`](crate::fallible).

    pub use crate::assign::OrderInto as _;
    pub use crate::attention::attention;
    pub use crate::batch::{batched, vmap, whole};
    pub use crate::bind::{At as _, AtMut as _, Ellipsis, UnitAxis};
    pub use crate::brand::{After, AnyDim, Before, Brand, Rest};
    pub use crate::convert::IntoTensor as _;
    pub use crate::create::{arange, eye, from_fn, from_vec, full, linspace, ones, zeros};
    pub use crate::custom::{ApplyOp as _, ArrayOp, ArraysOp, ScalarOp};
    pub use crate::dim::{DimOf, DimRef, Each};
    pub use crate::draw::Draw as _;
    pub use crate::dynamic::Dynamic as _;
    pub use crate::elementwise::{Elementwise as _, select};
    pub use crate::error::DimError;
    #[cfg(feature = "safetensors")]
    pub use crate::file::load::{Load, LoadError, Weights};
    #[cfg(feature = "candle")]
    pub use crate::foreign::candle::{IntoCandle as _, ToTensor as _};
    #[cfg(feature = "image")]
    pub use crate::foreign::image::IntoImage as _;
    #[cfg(feature = "mdarray")]
    pub use crate::foreign::mdarray::IntoMdarray as _;
    #[cfg(feature = "nalgebra")]
    pub use crate::foreign::nalgebra::IntoMatrix as _;
    pub use crate::grad::Parameters;
    pub use crate::join::{concat, stack};
    pub use crate::laid::{IntoLaid as _, Laid, Lay as _};
    pub use crate::linalg::LinearAlgebra as _;
    pub use crate::named::{Named, Tensor, TensorView};
    pub use crate::nn::conv::{conv, conv_transpose};
    pub use crate::nn::dropout::Dropout as _;
    pub use crate::nn::loss::Losses as _;
    pub use crate::nn::norm::Normalization as _;
    pub use crate::nn::pool::Pooling as _;
    pub use crate::ops::Isa;
    pub use crate::optim::Optimizer as _;
    pub use crate::order::OrderExt as _;
    #[cfg(feature = "std")]
    pub use crate::plan::explain::explain;
    #[cfg(feature = "rand")]
    pub use crate::random::random;
    pub use crate::random::{rand, randn};
    pub use crate::reduce::Reductions as _;
    pub use crate::restructure::Restructure as _;
    pub use crate::role::{DataBatch, DataChannel, DataFeature, DataTime, Plays};
    pub use crate::scalar::{Num, Real};
    pub use crate::scan::scan;
    pub use crate::scans::Scans as _;
    pub use crate::select::Selecting as _;
    pub use crate::set::{Dims, DimsOf, SetOf, Union};
    pub use crate::shift::{Pad, Rearranging as _};
    pub use crate::sort::Sorting as _;
    pub use crate::stream::{Stream, Streamed as _};
    pub use crate::tensor::AsTensor;
    pub use crate::window::Window;
    pub use ndarray::{self, Array, Array1, Array2, Array3, Array4, ArrayD, NewAxis};
    #[cfg(feature = "safetensors")]
    pub use typed_dims_macros::Load;
    #[cfg(feature = "onnx")]
    pub use typed_dims_macros::onnx_dims;
    pub use typed_dims_macros::{
        Parameters, batched, dims, einsum, gather, pack, parse_shape, rearrange, rearrange_view, reduce,
        repeat, roles, tensor, try_einsum, try_gather, try_pack, try_parse_shape, try_rearrange,
        try_rearrange_view, try_reduce, try_repeat, try_tensor, try_unpack, unpack,
    };
    pub use typenum::{U1, U2, U3, U4};
}

/// The programs of the page on custom operators, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/custom-operators.md")]
pub struct CustomOperators;

/// Those of the page on operators.
#[cfg(doctest)]
#[doc = include_str!("../docs/operators.md")]
pub struct Operators;

/// The README's programs, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// Those of the guide.
#[cfg(doctest)]
pub mod guide {
    #[doc = include_str!("../docs/book/src/tour.md")]
    pub struct Tour;

    #[doc = include_str!("../docs/book/src/rules.md")]
    pub struct Rules;

    #[doc = include_str!("../docs/book/src/owned.md")]
    pub struct Owned;

    #[doc = include_str!("../docs/book/src/layers.md")]
    pub struct Layers;

    #[doc = include_str!("../docs/book/src/meanings.md")]
    pub struct Meanings;

    #[doc = include_str!("../docs/book/src/streams.md")]
    pub struct Streams;

    #[doc = include_str!("../docs/book/src/batching.md")]
    pub struct Batching;

    #[doc = include_str!("../docs/book/src/gradients.md")]
    pub struct Gradients;

    #[cfg(feature = "safetensors")]
    #[doc = include_str!("../docs/book/src/training.md")]
    pub struct Training;

    #[doc = include_str!("../docs/book/src/macros.md")]
    pub struct Macros;

    #[doc = include_str!("../docs/book/src/errors.md")]
    pub struct Errors;

    #[doc = include_str!("../docs/book/src/performance.md")]
    pub struct Performance;

    #[cfg(all(feature = "image", feature = "nalgebra"))]
    #[doc = include_str!("../docs/book/src/ecosystem.md")]
    pub struct Ecosystem;

    #[doc = include_str!("../docs/book/src/coming-from/torchdim.md")]
    pub struct Torchdim;

    #[doc = include_str!("../docs/book/src/coming-from/einops.md")]
    pub struct Einops;

    #[doc = include_str!("../docs/book/src/coming-from/numpy.md")]
    pub struct NumPy;

    #[doc = include_str!("../docs/book/src/coming-from/ndarray.md")]
    pub struct NdArray;

    #[doc = include_str!("../docs/book/src/coming-from/candle.md")]
    pub struct Candle;
}
