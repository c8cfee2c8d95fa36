//! Checks of the operands of layers.

use crate::error::DimError;
use crate::execute::loops::check_taken;
use crate::expr::Expr;
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::types::brand::Text;
use crate::types::rank::Rank0;
use crate::types::set::Dims;
use kernels::loops::axes::Sizes;
use kernels::loops::nest::Odometer;
use kernels::memory::axes::Axis;
use smallvec::SmallVec;
use twins::panicking_twin;

/// Checks that the dims `I` and `O` of a layer's weights have no dim in common. Methods of layers
/// call it in a constant, so a failure is a compile error. Its note names the user's call.
///
/// It is not a bound, because code that is generic over the dims would have to repeat it.
///
/// # Panics
///
/// If they have a dim in common.
#[doc(hidden)]
#[track_caller]
pub const fn check_distinct<I: Dims, O: Dims>(layer: &str) {
    let (inputs, outputs) = (I::KEYS.as_slice(), O::KEYS.as_slice());
    let mut i = 0;
    while i < inputs.len() {
        let mut j = 0;
        while j < outputs.len() {
            if inputs[i].same(&outputs[j]) {
                let text = Text::<1024>::EMPTY
                    .and("dimension `")
                    .and(inputs[i].name)
                    .and("` is named twice in `")
                    .and(layer)
                    .and("`: name another dim, and `rename` it where the layer is applied");
                panic!("{}", text.as_str());
            }
            j += 1;
        }
        i += 1;
    }
}

/// Checks that the lengths of sequences along the dim `time` are at most `count`, the number of
/// positions.
///
/// Lengths that are an input of a recorded program, or computed in it, can differ in each call of
/// the program, so they are not checked.
#[doc(hidden)]
#[panicking_twin]
pub fn try_check_lengths<L: Dims>(
    lengths: &Named<usize, L>,
    time: &'static str,
    count: usize,
) -> Result<(), DimError> {
    if check_taken(lengths.expr.all(), "a check of lengths").is_err() {
        return Ok(());
    }
    let axes: SmallVec<[Axis; 4]> = lengths.expr.axes().collect();
    let sizes: Sizes = axes.iter().map(|axis| axis.size).collect();
    let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, axes.len());
    let mut odometer = Odometer::new(&sizes);
    while !odometer.is_done() {
        let offset: isize = axes.iter().zip(&at).map(|(axis, &at)| at as isize * axis.stride).sum();
        let length = lengths.expr.all()[lengths.expr.start().wrapping_add_signed(offset)];
        if length > count {
            let what =
                format!("a sequence of length {length}, but there are {count} positions along `{time}`");
            return Err(DimError::Shape { what });
        }
        odometer.advance(&mut at);
    }
    Ok(())
}

/// Checks that two tensors have the same size along each dim that they share. A dim of one tensor
/// and its prime in the other are not compared.
///
/// Layers that look up elements by index along such a dim need this check, because the lookup
/// itself only checks that the indices are within the size. Recurrent layers need it because they
/// combine results computed from the tensors, and a message would only say where these results were
/// made.
#[doc(hidden)]
#[panicking_twin]
pub fn try_check_sizes<T, X: Dims, Y: Dims, A: Expr, B: Expr>(
    first: &Named<T, X, Rank0, A>,
    second: &Named<T, Y, Rank0, B>,
) -> Result<(), DimError> {
    let (mut shape, mut other) = (Shape::new::<X, Rank0>(), Shape::new::<Y, Rank0>());
    first.expr.unify::<X, Rank0>(&mut shape)?;
    second.expr.unify::<Y, Rank0>(&mut other)?;
    for (at, key) in Y::KEYS.as_slice().iter().enumerate() {
        if let Some(own) = shape.position(key) {
            let (size, origin) = other.known(at);
            shape.unify(own, size, origin)?;
        }
    }
    shape.finish()
}

/// The tensor, but messages say that its sizes come from the tensor `from`.
#[doc(hidden)]
pub fn with_origin_of<T, X: Dims, Y: Dims>(tensor: Named<T, X>, from: &Named<T, Y>) -> Named<T, X> {
    Named::from_expr(tensor.expr.with_origin(from.expr.origin()))
}
