//! First-class, statically checked tensor dimensions.
//!
//! Name the axes of arrays with Rust types, called *dims*. Operations match axes by dim, and rustc
//! checks that a tensor has each dim that you name, and that no dim is left over.
//!
//! ```
//! use typed_dims::prelude::*;
//!
//! dims! {
//!     /// Examples that are processed together.
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
//!     (x.contract(weight, Input) + bias).relu().eval()
//! }
//!
//! let x = ndarray::array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].into_tensor((Batch, Input));
//! let weight = from_fn((Input.of(3), Output), |(input, output)| if input == output { 1.0 } else { -0.1 });
//! let out = layer(&x, &weight, &full(Output, 0.5));
//! assert_eq!(out.order((Batch, Output)), ndarray::array![[1.0, 2.1], [3.4, 4.5]]);
//! ```
//!
//! `contract` multiplies and sums over a dim. `eval` computes the expression.
//!
//! Code does not compile if it forgets a dim, reduces over a dim that the tensor does not have, or
//! passes a tensor with the wrong dims:
//!
//! ```compile_fail
//! # use typed_dims::prelude::*;
//! # dims! { pub struct Batch; pub struct Input; pub struct Output = 2; }
//! fn layer(
//!     x: &Tensor<f32, (Batch, Input)>,
//!     weight: &Tensor<f32, (Input, Output)>,
//! ) -> Tensor<f32, (Batch, Output)> {
//!     (x * weight).sum(Batch) // has the dims (Input, Output)
//! }
//! ```
//!
//! # Where to find what
//!
//! | to | see |
//! |---|---|
//! | declare dims | [`dims!`]: `pub struct Batch;`, or local ones, `dims!(i, j);` |
//! | name a tensor in a signature | [`Tensor`](tensors::named::Tensor). rustc's messages show [`Named`](tensors::named::Named), the type behind the alias, with its dims sorted |
//! | bind the axes of an array | [`At::at`](pipeline::bind::At::at); [`Binder`](pipeline::bind::Binder) lists what you can pass for an axis |
//! | turn an array into a tensor without a copy | [`IntoTensor`](creation::convert::IntoTensor) |
//! | create tensors | [`creation`], such as [`from_fn`](creation::create::from_fn) and [`randn`](creation::random::randn) |
//! | compute element by element | [`Elementwise`](operators::elementwise::Elementwise), and arithmetic such as `a + b` |
//! | contract, multiply, compute norms and distances | [`LinearAlgebra`](operators::linalg::LinearAlgebra), such as [`contract`](operators::linalg::LinearAlgebra::contract) |
//! | reduce, scan, compute an expression now | [`Reductions`](pipeline::execute::reduce::Reductions), such as `sum`, `cumsum` and `eval` |
//! | get an array, or the number of a tensor without dims | [`order`](pipeline::execute::order::OrderExt::order), `order(())` |
//! | solve systems of equations, decompose matrices (feature `linalg`) | `operators::linalg::systems`, `operators::linalg::decompositions` |
//! | have two axes over one set: a covariance, a Gram matrix, a Hessian | [`Prime`](types::prime::Prime), as in `Tensor<f32, (Item, Prime<Item>)>` |
//! | rename, slice, split, flatten, join | [`Restructure`](operators::restructure::Restructure), [`concat`](operators::join::concat), [`stack`](operators::join::stack) |
//! | select by index or value | [`Selecting`](operators::select::Selecting) |
//! | shift, pad, sum windows, sort | [`Rearranging`](operators::shift::Rearranging), [`Sorting`](operators::sort::Sorting) |
//! | write into arrays | [assignment](pipeline::execute::assign) |
//! | use convolutions, pooling, normalization, losses and layers | [`nn`] |
//! | call a function of one example on a batch | [`#[batched]`](macro@batched), [`Rest`](types::brand::Rest) |
//! | differentiate and train | [`grad`], [`Parameters`](grad::Parameters), [`optim`], [`init`], `checkpoint` (with `safetensors`) |
//! | write as in NumPy, einops or loops | [`einsum!`], [`rearrange!`], [`tensor!`] |
//! | write an operator | [`operators::custom`] |
//! | handle errors | the `try_` forms, which return a [`DimError`]; the others panic with its text |
//! | target streaming hardware | [`Stream`](tensors::stream::Stream) |
//!
//! `docs/operators.md` lists the operators, with their names in PyTorch, JAX and NumPy.
//!
//! # When expressions run, and what they allocate
//!
//! Arithmetic, elementwise methods, views and comparisons build an expression. Reductions,
//! contractions, scans, sorting, `order`, `eval` and assignment compute it:
//! `((a - b).abs()).sum(k)` is one pass without a temporary. `(a * b * c).sum((j, k))` is one
//! contraction, which runs as matrix products in a cheap order.
//!
//! [`contract`](operators::linalg::LinearAlgebra::contract) requires the dim in both operands.
//! `(x * w).sum(In)` also compiles if only one operand has `In`, and then sums only that operand.
//!
//! A result is contiguous. Its axes are in the order that you passed to `order` or `eval_in`,
//! otherwise usually in the order in which their `dims!` declares them, with
//! [primes](types::prime) after all others. (Dims of different `dims!` calls have no fixed order.)
//! A matrix product may choose another order: the dims that both operands and the result have, then
//! the rows, then the columns. The memory order changes a result at most by rounding.
//!
//! [`attention`](operators::attention::attention) fuses the softmax with both products, and works
//! tile by tile:
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
//! Operators take dims instead of axis numbers. They loop over all other dims of the tensor, so a
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
//! * `gemm` (on by default): large matrix products use the crate `gemm`, which is faster than
//!   `matrixmultiply` for most shapes with AVX-512, and takes longer to build.
//! * `rayon` (on by default): large results are computed on several threads. Results do not depend
//!   on the number of threads, except for the rounding of matrix products and of decompositions of
//!   large matrices.
//! * `blas`: matrix products use a BLAS that the program links and registers: see [`blas`].
//! * `std` (on by default): kernels are chosen at run time for the processor's instructions, large
//!   results come from a memory pool (`pipeline::storage::memory`), and there are gradients,
//!   recorded programs, [`explain`](pipeline::plan::explain::explain), [modes](mode) and
//!   [`ledger`](tensors::stream::ledger()). `gemm`, `blas`, `rayon`, `linalg`, `image`, `candle`,
//!   `onnx` and the features for files need `std`. Without it the crate needs only `core` and
//!   `alloc`: see below.
//! * `approx`: tensors can be compared with `approx::assert_relative_eq!` and similar macros.
//! * `half`: elements of type `half::f16` and `half::bf16`.
//! * `linalg`: systems of equations, decompositions and functions of matrices. Large matrices use
//!   the crate `faer`.
//! * `image`, `mdarray`, `nalgebra`, `candle`: conversions from and to the images, arrays, matrices
//!   and tensors of these crates: `creation::foreign`.
//! * `safetensors`, `npy`: tensors in files, with the names of their dims: `file`. (`npy` includes
//!   npz files.) `memmap` maps files into memory. With `safetensors`, `#[derive(Load)]` loads
//!   structs of tensors from files of weights.
//! * `onnx`: `onnx_dims!`, which generates dims and structs for the inputs and outputs of an ONNX
//!   model, and a checker for the meaning of axes in a model (`onnx`).
//! * `rand`: `random`, which draws elements from a distribution of the crate `rand`. (`rand()` and
//!   `randn()` do not need it.)
//! * `serde`: tensors with the names of their dims, in any serde format. Tensors are read by these
//!   names, in any order; two dims of one name are an error.
//!
//! # Without the standard library, and on other machines
//!
//! With `default-features = false` the crate is `no_std`, and its macros work in `no_std` crates.
//! Expressions, kernels and errors are available, including errors for failed allocations. Kernels
//! use the instructions that the target guarantees, so set `-C target-cpu`. Functions of floats
//! come from the crate `libm`. (ndarray's `array!` needs `alloc::vec` in scope.)
//!
//! The crate runs on x86-64 with and without AVX2 and AVX-512, on AArch64 (NEON), and on
//! WebAssembly (with all features but `candle` and `blas`). On WebAssembly without threads, `rayon`
//! computes on the calling thread; add `-C target-feature=+simd128` for vector instructions. A size
//! that does not fit into `usize` is a [`DimError`], on 32-bit and 64-bit targets.

#![no_std]

extern crate alloc;
// Macros expand to paths such as `::typed_dims::..`.
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
#[doc(hidden)]
pub use typed_dims_core::__private;
// These re-exports are at the root, so that rustc's messages name the items by short paths.
#[cfg(feature = "blas")]
#[doc(inline)]
pub use typed_dims_core::blas;
#[doc(hidden)]
pub use typed_dims_core::macros::{comprehension, pattern};
#[cfg(feature = "std")]
#[doc(inline)]
pub use typed_dims_core::mode;
#[doc(inline)]
pub use typed_dims_core::{batch, creation::init, error::DimError, grad, operators, program, types};
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
// Re-exported by name instead of with a glob, so that rustc can name the missing feature.
#[cfg(any(feature = "safetensors", feature = "npy"))]
#[doc(inline)]
pub use typed_dims_core::file;

pub mod fallible;
#[cfg(doctest)]
mod macro_pages;
pub mod nn;

pub mod tensors {
    //! Tensors, tensors with a typed layout ([`laid`]), and streams ([`stream`]); printing and
    //! drawing.

    pub use typed_dims_core::tensors::*;
    pub use typed_dims_core::{draw, laid, stream};
}

pub mod creation {
    //! Tensors from arrays, from functions, and from a seed.

    pub use typed_dims_core::creation::*;
    #[cfg(any(feature = "candle", feature = "image", feature = "mdarray", feature = "nalgebra"))]
    pub use typed_dims_core::foreign;
}

pub mod optim {
    //! Optimizers, learning-rate schedules, and files of parameters and optimizer states.

    #[cfg(feature = "safetensors")]
    pub use typed_dims_core::training::checkpoint;
    pub use typed_dims_core::training::optim::*;
}

pub mod pipeline {
    //! The steps of an operation: **bind** the axes of arrays to dims, build an **expression**,
    //! **plan** it, **execute** the plan, and put the elements in **order**.
    //!
    //! You need these modules to write generic signatures and operators, and to inspect plans.

    pub use typed_dims_core::{bind, execute, expr, ops, plan, storage};
}

pub mod prelude {
    //! The items that most programs need: `use typed_dims::prelude::*;`
    //!
    //! Most traits with methods are imported without their names (`as _`). To name one, for example
    //! in a bound, import it from its module, such as
    //! [`elementwise::Elementwise`](crate::operators::elementwise::Elementwise). The `try_` forms
    //! of functions are in [`fallible`](crate::fallible).

    pub use crate::DimError;
    pub use crate::batch::{batched, vmap};
    pub use crate::creation::convert::IntoTensor as _;
    pub use crate::creation::create::{arange, eye, from_fn, from_vec, full, linspace, ones, zeros};
    #[cfg(any(feature = "candle", feature = "image", feature = "mdarray", feature = "nalgebra"))]
    pub use crate::creation::foreign::IntoForeign as _;
    #[cfg(feature = "candle")]
    pub use crate::creation::foreign::candle::ToTensor as _;
    #[cfg(feature = "rand")]
    pub use crate::creation::random::random;
    pub use crate::creation::random::{rand, randn};
    #[cfg(feature = "safetensors")]
    pub use crate::file::load::{Load, LoadError, Weights};
    pub use crate::grad::Parameters;
    pub use crate::nn::conv::{conv, conv_transpose};
    pub use crate::nn::dropout::Dropout as _;
    pub use crate::nn::loss::Losses as _;
    pub use crate::nn::norm::Normalization as _;
    pub use crate::nn::pool::Pooling as _;
    pub use crate::operators::attention::attention;
    pub use crate::operators::custom::{ApplyOp as _, ArrayOp, ScalarOp};
    pub use crate::operators::elementwise::{Elementwise as _, select};
    pub use crate::operators::join::{concat, stack};
    pub use crate::operators::linalg::LinearAlgebra as _;
    #[cfg(feature = "linalg")]
    pub use crate::operators::linalg::{
        decompositions::Decompositions as _, functions::MatrixFunctions as _, systems::LinearSystems as _,
    };
    pub use crate::operators::priming::Priming as _;
    pub use crate::operators::restructure::Restructure as _;
    pub use crate::operators::scan::scan;
    pub use crate::operators::select::Selecting as _;
    pub use crate::operators::shift::{Pad, Rearranging as _};
    pub use crate::operators::sort::Sorting as _;
    pub use crate::operators::window::Window;
    pub use crate::optim::Optimizer as _;
    pub use crate::pipeline::bind::{At as _, Ellipsis, UnitAxis};
    pub use crate::pipeline::execute::order::OrderExt as _;
    pub use crate::pipeline::execute::reduce::Reductions as _;
    pub use crate::pipeline::ops::Isa;
    #[cfg(feature = "std")]
    pub use crate::pipeline::plan::explain::explain;
    pub use crate::tensors::draw::Draw as _;
    pub use crate::tensors::laid::{IntoLaid as _, Laid, Lay as _};
    pub use crate::tensors::named::{Named, Tensor, TensorView};
    pub use crate::tensors::stream::{Stream, Streamed as _};
    pub use crate::tensors::tensor::AsTensor;
    pub use crate::types::brand::{After, AnyDim, Before, Brand, Rest};
    pub use crate::types::dim::{DimOf, DimRef, Each};
    pub use crate::types::prime::{Prime, prime};
    pub use crate::types::role::{DataBatch, DataChannel, DataFeature, DataTime, Plays};
    pub use crate::types::scalar::{Num, Real};
    pub use crate::types::set::{Dims, DimsOf, SetOf, Union};
    pub use ndarray::{self, Array, Array1, Array2, Array3, Array4, ArrayD, Axis, IxDyn, NewAxis, array, s};
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

/// The programs of the page on operators.
#[cfg(doctest)]
#[doc = include_str!("../docs/operators.md")]
pub struct Operators;

/// The programs of the page on einops.
#[cfg(doctest)]
#[doc = include_str!("../docs/einops.md")]
pub struct EinopsTutorial;

/// The README's programs, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The programs of the guide.
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

    #[doc = include_str!("../docs/book/src/special-values.md")]
    pub struct SpecialValues;

    #[cfg(feature = "linalg")]
    #[doc = include_str!("../docs/book/src/linear-algebra.md")]
    pub struct LinearAlgebra;

    #[cfg(feature = "safetensors")]
    #[doc = include_str!("../docs/book/src/training.md")]
    pub struct Training;

    #[cfg(all(feature = "npy", feature = "safetensors", feature = "memmap"))]
    #[doc = include_str!("../docs/book/src/files.md")]
    pub struct Files;

    #[doc = include_str!("../docs/book/src/macros.md")]
    pub struct Macros;

    #[doc = include_str!("../docs/book/src/errors.md")]
    pub struct Errors;

    #[doc = include_str!("../docs/book/src/performance.md")]
    pub struct Performance;

    #[doc = include_str!("../docs/book/src/record.md")]
    pub struct Record;

    #[doc = include_str!("../docs/book/src/modes.md")]
    pub struct Modes;

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
