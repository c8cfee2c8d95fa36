//! Operations on each element.

use crate::loops::{self, build};
use crate::table::Family;

/// Operations on one tensor.
pub fn family() -> Family {
    Family {
        title: "Elementwise",
        about: "Lazy and fused: they run where the result is reduced, ordered, assigned or evaluated. The result has the dims of the tensor.",
        operators: one::entries(),
    }
}

/// Operations on several tensors.
pub fn pairs() -> Family {
    let mut operators = two::entries();
    operators.extend(mixed::entries());
    Family {
        title: "Elementwise, on several tensors",
        about: "Lazy and fused. The result has the dims of all operands: dims of the same name are the same loop, others broadcast. One of the \
                operands can be a scalar. Both have one element type; `cast` converts.",
        operators,
    }
}

mod one {
    use super::loops;
    use crate::{I, Inner, J, Outer};
    use num_complex::Complex;
    use typed_dims::prelude::*;

    crate::pointwise! {
        /// `-x`
        neg [f32 i32] (x), -x, if x == T::default() { x } else { -x }, "neg" "lax.neg" "negative";
        /// `!x`: of integers, each bit
        not [bool u8] (x), !x, !x, "logical_not, bitwise_not" "lax.bitwise_not" "invert";
        /// `|x|`, for complex numbers the real magnitude
        abs [f32 i32] (x), x.abs(), x.abs(), "abs" "lax.abs" "abs";
        /// `e^x`
        exp [f32 f64] (x), x.exp(), x.exp(), "exp" "lax.exp" "exp";
        /// `e^x - 1`
        exp_m1 [f32 f64] (x), x.exp_m1(), x.exp_m1(), "expm1" "lax.expm1" "expm1";
        /// `2^x`
        exp2 [f32 f64] (x), x.exp2(), x.exp2(), "exp2" "lax.exp2" "exp2";
        /// The natural logarithm
        ln [f32 f64] (x in Positive), x.ln(), x.ln(), "log" "lax.log" "log";
        /// `ln(1 + x)`
        ln_1p [f32 f64] (x in Unit), x.ln_1p(), x.ln_1p(), "log1p" "lax.log1p" "log1p";
        /// The logarithm to base 2
        log2 [f32 f64] (x in Positive), x.log2(), x.log2(), "log2" "numpy.log2" "log2";
        /// The logarithm to base 10
        log10 [f32 f64] (x in Positive), x.log10(), x.log10(), "log10" "numpy.log10" "log10";
        /// The square root
        sqrt [f32 f64] (x in Positive), x.sqrt(), x.sqrt(), "sqrt" "lax.sqrt" "sqrt";
        /// The cube root
        cbrt [f32 f64] (x), x.cbrt(), x.cbrt(), "" "lax.cbrt" "cbrt";
        /// `1 / sqrt(x)`
        rsqrt [f32 f64] (x in Positive), x.rsqrt(), 1.0 / x.sqrt(), "rsqrt" "lax.rsqrt" "";
        /// `1 / x`
        recip [f32 f64] (x in Nonzero), x.recip(), 1.0 / x, "reciprocal" "numpy.reciprocal" "reciprocal";
        /// `x * x`
        square [f32 i32] (x), x.square(), x * x, "square" "lax.square" "square";
        /// `x^3`, and any other whole power
        powi [f32 f64] (x), x.powi(3), x * x * x, "pow" "lax.integer_pow" "power";
        /// The sine
        sin [f32 f64] (x), x.sin(), x.sin(), "sin" "lax.sin" "sin";
        /// The cosine
        cos [f32 f64] (x), x.cos(), x.cos(), "cos" "lax.cos" "cos";
        /// The tangent
        tan [f32 f64] (x in Unit), x.tan(), x.tan(), "tan" "lax.tan" "tan";
        /// The inverse sine
        asin [f32 f64] (x in Unit), x.asin(), x.asin(), "asin" "lax.asin" "arcsin";
        /// The inverse cosine
        acos [f32 f64] (x in Unit), x.acos(), x.acos(), "acos" "lax.acos" "arccos";
        /// The inverse tangent
        atan [f32 f64] (x), x.atan(), x.atan(), "atan" "lax.atan" "arctan";
        /// The hyperbolic sine
        sinh [f32 f64] (x), x.sinh(), x.sinh(), "sinh" "lax.sinh" "sinh";
        /// The hyperbolic cosine
        cosh [f32 f64] (x), x.cosh(), x.cosh(), "cosh" "lax.cosh" "cosh";
        /// The hyperbolic tangent
        tanh [f32 f64] (x), x.tanh(), x.tanh(), "tanh" "lax.tanh" "tanh";
        /// The inverse hyperbolic sine
        asinh [f32 f64] (x), x.asinh(), x.asinh(), "asinh" "lax.asinh" "arcsinh";
        /// The inverse hyperbolic cosine
        acosh [f32 f64] (x in Above), x.acosh(), x.acosh(), "acosh" "lax.acosh" "arccosh";
        /// The inverse hyperbolic tangent
        atanh [f32 f64] (x in Unit), x.atanh(), x.atanh(), "atanh" "lax.atanh" "arctanh";
        /// The error function
        erf [f32 f64] (x), x.erf(), loops::erf(x.into()) as T, "erf" "lax.erf" "";
        /// `1 / (1 + e^-x)`
        sigmoid [f32 f64] (x), x.sigmoid(), 1.0 / (1.0 + (-x).exp()), "sigmoid" "nn.sigmoid" "";
        /// `max(x, 0)`
        relu [f32 i32] (x), x.relu(), if x > T::default() { x } else { T::default() }, "relu" "nn.relu" "";
        /// `x / 2 * (1 + erf(x / sqrt 2))`
        gelu [f32 f64] (x), x.gelu(), (f64::from(x) / 2.0 * (1.0 + loops::erf(f64::from(x) / 2f64.sqrt()))) as T, "gelu" "nn.gelu" "";
        /// `x * sigmoid(x)`
        silu [f32 f64] (x), x.silu(), x / (1.0 + (-x).exp()), "silu" "nn.silu" "";
        /// `ln(1 + e^x)`
        softplus [f32 f64] (x), x.softplus(), (1.0 + x.exp()).ln(), "softplus" "nn.softplus" "logaddexp(x, 0)";
        /// The greatest whole number that is not greater
        floor [f32 f64] (x), x.floor(), x.floor(), "floor" "lax.floor" "floor";
        /// The least whole number that is not less
        ceil [f32 f64] (x), x.ceil(), x.ceil(), "ceil" "lax.ceil" "ceil";
        /// The nearest whole number, halves away from 0
        round [f32 f64] (x), x.round(), x.round(), "" "lax.round" "";
        /// The whole part
        trunc [f32 f64] (x), x.trunc(), x.trunc(), "trunc" "numpy.trunc" "trunc";
        /// What the whole part leaves
        fract [f32 f64] (x), x.fract(), x.fract(), "frac" "" "";
        /// -1, 0 or 1
        signum [f32 i32] (x in Ties), x.signum(), if x > T::default() { 1 as T } else if x < T::default() { 0 as T - 1 as T } else { x }, "sign" "lax.sign" "sign";
        /// Whether the element is not a number
        is_nan [f32 f64] (x in Ties), x.ln().is_nan(), x.ln().is_nan(), "isnan" "numpy.isnan" "isnan";
        /// Whether the element is neither infinite nor not-a-number
        is_finite [f32 f64] (x in Ties), x.recip().is_finite(), x != 0.0, "isfinite" "lax.is_finite" "isfinite";
        /// `min(max(x, low), high)`
        clamp [f32 i32] (x), x.clamp(0 as T, 2 as T), x.clamp(0 as T, 2 as T), "clamp" "lax.clamp" "clip";
        /// The element in another type, as Rust's `as` converts it
        cast [f32 i32 u8] (x), x.cast::<i64>(), x as i64, "to" "lax.convert_element_type" "astype";
        /// `f(x)` for any Rust closure
        map [f32 i32] (x), x.map(|x| x + x), x + x, "func.vmap" "vmap" "vectorize";
        /// A complex number's exponential
        exp_complex [Complex<f64>] (x), x.exp(), x.exp(), "exp" "lax.exp" "exp";
    }
}

mod two {
    use crate::{I, Inner, J, K, Outer};
    use typed_dims::prelude::*;

    crate::pointwise2! {
        /// `x + y`
        add [f32 i32 u8] (x, y), x + y, x + y, "add" "lax.add" "add";
        /// `x - y`
        sub [f32 i32] (x, y), x - y, x - y, "sub" "lax.sub" "subtract";
        /// `x * y`
        mul [f32 i32 u8] (x, y), x * y, x * y, "mul" "lax.mul" "multiply";
        /// `x / y`, of integers rounded towards 0
        div [f32 i32] (x, y in Nonzero), x / y, x / y, "div" "lax.div" "divide";
        /// The remainder with the sign of `x`
        rem [f32 i32] (x, y in Nonzero), x % y, x % y, "fmod" "lax.rem" "fmod";
        /// `x & y`
        and [bool u8] (x, y), x & y, x & y, "bitwise_and" "lax.bitwise_and" "bitwise_and";
        /// `x | y`
        or [bool u8] (x, y), x | y, x | y, "bitwise_or" "lax.bitwise_or" "bitwise_or";
        /// `x ^ y`
        xor [bool u8] (x, y), x ^ y, x ^ y, "bitwise_xor" "lax.bitwise_xor" "bitwise_xor";
        /// The greater one
        maximum [f32 i32] (x, y), x.maximum(y), if x > y { x } else { y }, "maximum" "lax.max" "maximum";
        /// The lesser one
        minimum [f32 i32] (x, y), x.minimum(y), if x < y { x } else { y }, "minimum" "lax.min" "minimum";
        /// `x^y`
        powf [f32 f64] (x in Positive, y), x.powf(y), x.powf(y), "pow" "lax.pow" "power";
        /// The angle of the point `(y, x)`: `x.atan2(y)` in Rust's order
        atan2 [f32 f64] (x, y), x.atan2(y), x.atan2(y), "atan2" "lax.atan2" "arctan2";
        /// `sqrt(x * x + y * y)`
        hypot [f32 f64] (x, y), x.hypot(y), x.hypot(y), "hypot" "numpy.hypot" "hypot";
        /// `x < y`
        lt [f32 i32] (x in Ties, y in Ties), x.lt(y), x < y, "lt" "lax.lt" "less";
        /// `x <= y`
        le [f32 i32] (x in Ties, y in Ties), x.le(y), x <= y, "le" "lax.le" "less_equal";
        /// `x > y`
        gt [f32 i32] (x in Ties, y in Ties), x.gt(y), x > y, "gt" "lax.gt" "greater";
        /// `x >= y`
        ge [f32 i32] (x in Ties, y in Ties), x.ge(y), x >= y, "ge" "lax.ge" "greater_equal";
        /// `x == y`
        eq [f32 i32 bool] (x in Ties, y in Ties), x.eq(y), x == y, "eq" "lax.eq" "equal";
        /// `x != y`
        ne [f32 i32 bool] (x in Ties, y in Ties), x.ne(y), x != y, "ne" "lax.ne" "not_equal";
        /// `f(x, y)` for any Rust closure
        zip_map [f32 i32] (x, y), x.zip_map(y, |x: T, y: T| x - y - y), x - y - y, "func.vmap" "vmap" "vectorize";
    }
}

mod mixed {
    use super::build;
    use crate::{I, Inner, J, K, Outer};
    use typed_dims::prelude::*;

    crate::operators! {
        /// `if c { x } else { y }`; what is not taken is not read
        select [f32 i32] (c: bool [I J], x: T [I], y: T [J K]) -> [I J K],
            call: select(c, x, y),
            loops: build(&[c.shape()[0], c.shape()[1], y.shape()[1]], |at| {
                if c[[at[0], at[1]]] { x[[at[0]]] } else { y[[at[1], at[2]]] }
            }),
            along: [], keep: [],
            names: "where" "lax.select" "where";
        /// The index along a dim: 0, 1, 2, ..
        iota [f32] (x: T [I J]) -> [I J],
            call: x.zip_map(I + J * 2, |_, at| at),
            loops: build(x.shape(), |at| (at[0] + 2 * at[1]) as isize),
            along: [I J], keep: [],
            names: "arange" "lax.iota" "indices";
    }
}
