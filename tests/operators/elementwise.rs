//! Elementwise operations.

use crate::loops::{self, build};
use crate::table::Family;

/// Operations on one tensor.
pub fn family() -> Family {
    Family {
        title: "Elementwise",
        about: "These operators are lazy: the result is computed when you call `eval` or `order`, reduce it, or assign it, in one pass with the rest of the expression. The result has the dims of the tensor.",
        operators: one::entries(),
    }
}

/// Operations on several tensors.
pub fn pairs() -> Family {
    let mut operators = two::entries();
    operators.extend(mixed::entries());
    Family {
        title: "Elementwise, on several tensors",
        about: "These are lazy, too. The result has the dims of all operands, and an operand is repeated along dims that it lacks. An operand \
                other than the first can be a scalar; with `+ - * / %`, the first operand can be a scalar instead.",
        operators,
    }
}

mod one {
    use super::loops;
    use crate::value::of;
    use crate::{I, Inner, J, Outer};
    use num_complex::Complex64;
    use typed_dims::prelude::*;

    crate::pointwise! {
        /// `-x`
        neg [f32 i32 f16] (x), -x, if x == T::default() { x } else { -x }, "neg" "lax.neg" "negative";
        /// `!x`; for integers, each bit is inverted
        not [bool u8] (x), !x, !x, "logical_not, bitwise_not" "lax.bitwise_not" "invert";
        /// `|x|`, for complex numbers the magnitude as a real number
        abs [f32 i32 f16] (x), x.abs(), x.abs(), "abs" "lax.abs" "abs";
        /// `e^x`
        exp [f32 f64 half] (x), x.exp(), x.exp(), "exp" "lax.exp" "exp";
        /// `e^x - 1`
        exp_m1 [f32 f64 f16] (x), x.exp_m1(), x.exp_m1(), "expm1" "lax.expm1" "expm1";
        /// `2^x`
        exp2 [f32 f64 f16] (x), x.exp2(), x.exp2(), "exp2" "lax.exp2" "exp2";
        /// The natural logarithm
        ln [f32 f64 f16] (x in Positive), x.ln(), x.ln(), "log" "lax.log" "log";
        /// `ln(1 + x)`
        ln_1p [f32 f64 f16] (x in Unit), x.ln_1p(), x.ln_1p(), "log1p" "lax.log1p" "log1p";
        /// The logarithm to base 2
        log2 [f32 f64 f16] (x in Positive), x.log2(), x.log2(), "log2" "numpy.log2" "log2";
        /// The logarithm to base 10
        log10 [f32 f64 f16] (x in Positive), x.log10(), x.log10(), "log10" "numpy.log10" "log10";
        /// The square root
        sqrt [f32 f64 f16] (x in Positive), x.sqrt(), x.sqrt(), "sqrt" "lax.sqrt" "sqrt";
        /// The cube root
        cbrt [f32 f64 f16] (x in Nonzero), x.cbrt(), x.cbrt(), "" "lax.cbrt" "cbrt";
        /// `1 / sqrt(x)`
        rsqrt [f32 f64 f16] (x in Positive), x.rsqrt(), 1.0 / x.sqrt(), "rsqrt" "lax.rsqrt" "";
        /// `1 / x`
        recip [f32 f64 f16] (x in Nonzero), x.recip(), 1.0 / x, "reciprocal" "numpy.reciprocal" "reciprocal";
        /// `x * x`
        square [f32 i32 half] (x), x.square(), x * x, "square" "lax.square" "square";
        /// `x^3`, and any other integer power
        powi [f32 f64 half] (x), x.powi(3), x * x * x, "pow" "lax.integer_pow" "power";
        /// The sine
        sin [f32 f64 f16] (x), x.sin(), x.sin(), "sin" "lax.sin" "sin";
        /// The cosine
        cos [f32 f64 f16] (x), x.cos(), x.cos(), "cos" "lax.cos" "cos";
        /// The tangent
        tan [f32 f64 f16] (x in Unit), x.tan(), x.tan(), "tan" "lax.tan" "tan";
        /// The inverse sine
        asin [f32 f64 f16] (x in Unit), x.asin(), x.asin(), "asin" "lax.asin" "arcsin";
        /// The inverse cosine
        acos [f32 f64 f16] (x in Unit), x.acos(), x.acos(), "acos" "lax.acos" "arccos";
        /// The inverse tangent
        atan [f32 f64 f16] (x), x.atan(), x.atan(), "atan" "lax.atan" "arctan";
        /// The hyperbolic sine
        sinh [f32 f64 f16] (x), x.sinh(), x.sinh(), "sinh" "lax.sinh" "sinh";
        /// The hyperbolic cosine
        cosh [f32 f64 f16] (x), x.cosh(), x.cosh(), "cosh" "lax.cosh" "cosh";
        /// The hyperbolic tangent
        tanh [f32 f64 f16] (x), x.tanh(), x.tanh(), "tanh" "lax.tanh" "tanh";
        /// The inverse hyperbolic sine
        asinh [f32 f64 f16] (x), x.asinh(), x.asinh(), "asinh" "lax.asinh" "arcsinh";
        /// The inverse hyperbolic cosine
        acosh [f32 f64 f16] (x in Above), x.acosh(), x.acosh(), "acosh" "lax.acosh" "arccosh";
        /// The inverse hyperbolic tangent
        atanh [f32 f64 f16] (x in Unit), x.atanh(), x.atanh(), "atanh" "lax.atanh" "arctanh";
        /// The error function
        erf [f32 f64 f16] (x), x.erf(), loops::erf(x.into()) as T, "erf" "lax.erf" "";
        /// `1 / (1 + e^-x)`
        sigmoid [f32 f64 f16] (x), x.sigmoid(), 1.0 / (1.0 + (-x).exp()), "sigmoid" "nn.sigmoid" "";
        /// `max(x, 0)`
        relu [f32 i32 f16] (x), x.relu(), if x > T::default() { x } else { T::default() }, "relu" "nn.relu" "";
        /// `x / 2 * (1 + erf(x / sqrt 2))`
        gelu [f32 f64 half] (x), x.gelu(), (f64::from(x) / 2.0 * (1.0 + loops::erf(f64::from(x) / 2f64.sqrt()))) as T, "gelu" "nn.gelu(approximate=False)" "";
        /// `x * sigmoid(x)`
        silu [f32 f64 half] (x), x.silu(), x / (1.0 + (-x).exp()), "silu" "nn.silu" "";
        /// `ln(1 + e^x)`
        softplus [f32 f64 f16] (x), x.softplus(), (1.0 + x.exp()).ln(), "softplus" "nn.softplus" "logaddexp(x, 0)";
        /// The greatest whole number `<= x`
        floor [f32 f64 f16] (x), x.floor(), x.floor(), "floor" "lax.floor" "floor";
        /// The least whole number `>= x`
        ceil [f32 f64 f16] (x), x.ceil(), x.ceil(), "ceil" "lax.ceil" "ceil";
        /// The nearest whole number, halves away from 0
        round [f32 f64 f16] (x), x.round(), x.round(), "" "lax.round" "";
        /// The integer part
        trunc [f32 f64 f16] (x), x.trunc(), x.trunc(), "trunc" "numpy.trunc" "trunc";
        /// `x - trunc(x)`
        fract [f32 f64 f16] (x), x.fract(), x.fract(), "frac" "" "";
        /// -1, 0 or 1; NaN for NaN
        signum [f32 i32] (x in Ties), x.signum(), if x > T::default() { 1 as T } else if x < T::default() { 0 as T - 1 as T } else { x }, "sign" "lax.sign" "sign";
        /// Whether the element is NaN
        is_nan [f32 f64 f16] (x in Ties), shown!(x.is_nan(); where { let x = x.ln(); }), x.ln().is_nan(), "isnan" "numpy.isnan" "isnan";
        /// Whether the element is finite
        is_finite [f32 f64 f16] (x in Ties), shown!(x.is_finite(); where { let x = x.recip(); }), x != 0.0, "isfinite" "lax.is_finite" "isfinite";
        /// `min(max(x, low), high)`
        clamp [f32 i32] (x), x.clamp(0 as T, 2 as T), x.clamp(0 as T, 2 as T), "clamp" "lax.clamp" "clip";
        /// `1 - erf(x)`
        erfc [f32 f64 f16] (x), x.erfc(), (1.0 - loops::erf(f64::from(x))) as T, "erfc" "lax.erfc" "";
        /// The logarithm of the absolute value of the gamma function
        ln_gamma [f32 f64 f16] (x in Positive), x.ln_gamma(), loops::ln_gamma(f64::from(x)) as T, "lgamma" "lax.lgamma" "scipy.special.gammaln";
        /// `ln(x / (1 - x))`
        logit [f32 f64 f16] (x in Share), x.logit(), (x / (1.0 - x)).ln(), "logit" "scipy.special.logit" "scipy.special.logit";
        /// `ln(sigmoid(x))`
        ln_sigmoid [f32 f64 f16] (x), x.ln_sigmoid(), -(1.0 + (-x).exp()).ln(), "logsigmoid" "nn.log_sigmoid" "scipy.special.log_expit";
        /// `min(max(x, 0), 6)`
        relu6 [f32 i32] (x), x.relu6(), if x < 0 as T { 0 as T } else if x > 6 as T { 6 as T } else { x }, "relu6" "nn.relu6" "";
        /// The scaled exponential linear unit
        selu [f32 f64 f16] (x), x.selu(), (1.050_700_987_355_480_5_f64 as T) * if x > 0.0 { x } else { (1.673_263_242_354_377_2_f64 as T) * (x.exp() - 1.0) }, "selu" "nn.selu" "";
        /// `x * tanh(softplus(x))`
        mish [f32 f64 f16] (x), x.mish(), x * (1.0 + x.exp()).ln().tanh(), "mish" "nn.mish" "";
        /// `min(max(x / 6 + 1/2, 0), 1)`
        hard_sigmoid [f32 f64 f16] (x), x.hard_sigmoid(), (x / 6.0 + 0.5).clamp(0.0, 1.0), "hardsigmoid" "nn.hard_sigmoid" "";
        /// `x * hard_sigmoid(x)`
        hard_swish [f32 f64 f16] (x), x.hard_swish(), x * (x / 6.0 + 0.5).clamp(0.0, 1.0), "hardswish" "nn.hard_swish" "";
        /// `x / (1 + |x|)`
        softsign [f32 f64 f16] (x), x.softsign(), x / (1.0 + x.abs()), "softsign" "nn.soft_sign" "";
        /// `x - tanh(x)`
        tanh_shrink [f32 f64 f16] (x), x.tanh_shrink(), x - x.tanh(), "tanhshrink" "" "";
        /// The approximation of `gelu` by a hyperbolic tangent
        gelu_tanh [f32 f64 f16] (x), x.gelu_tanh(), 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() as T * (x + 0.044715 * x * x * x)).tanh()), "gelu(approximate='tanh')" "nn.gelu" "";
        /// `x`, or `slope * x` where `x` is negative
        leaky_relu [f32 i32] (x), x.leaky_relu(2 as T), if x < 0 as T { 2 as T * x } else { x }, "leaky_relu" "nn.leaky_relu" "";
        /// `x`, or `alpha * (e^x - 1)` where `x` is negative
        elu [f32 f64 f16] (x), x.elu(of(0.5)), if x < 0.0 { 0.5 * (x.exp() - 1.0) } else { x }, "elu" "nn.elu" "";
        /// `x`, or `alpha * (e^(x / alpha) - 1)` where `x` is negative
        celu [f32 f64 f16] (x), x.celu(of(0.5)), if x < 0.0 { 0.5 * ((x / 0.5).exp() - 1.0) } else { x }, "celu" "nn.celu" "";
        /// `x`, or 0 where `|x| <= lambda`
        hard_shrink [f32 f64 f16] (x), x.hard_shrink(of(1.0)), if x.abs() <= 1.0 { 0.0 } else { x }, "hardshrink" "" "";
        /// `x` moved towards 0 by `lambda`, or 0 where `|x| <= lambda`
        soft_shrink [f32 f64 f16] (x), x.soft_shrink(of(1.0)), if x.abs() <= 1.0 { 0.0 } else { x - x.signum() }, "softshrink" "" "";
        /// `x`, or a constant where `x` is NaN
        nan_to [f32 f64 f16] (x), shown!(x.nan_to(of(7.0)); where { let x = x.ln(); }), if x < 0.0 { 7.0 } else { x.ln() }, "nan_to_num" "numpy.nan_to_num" "nan_to_num";
        /// `sin(pi x) / (pi x)`, 1 at 0
        sinc [f32 f64 half] (x in Ties), shown!(x.sinc(); where { let x = x * of::<T>(0.25); }), if x == 0.0 { 1.0 } else { let a = x * 0.25 * std::f64::consts::PI as T; a.sin() / a }, "sinc" "numpy.sinc" "sinc";
        /// Converts radians to degrees
        to_degrees [f32 f64 f16] (x), x.to_degrees(), x.to_degrees(), "rad2deg" "numpy.degrees" "degrees";
        /// Converts degrees to radians
        to_radians [f32 f64 f16] (x), x.to_radians(), x.to_radians(), "deg2rad" "numpy.radians" "radians";
        /// The nearest whole number, halves to the even neighbor
        round_ties_even [f32 f64 f16] (x in Ties), shown!(x.round_ties_even(); where { let x = x * of::<T>(0.5); }), (x * 0.5).round_ties_even(), "round" "numpy.round" "round";
        /// Whether the element is infinite
        is_infinite [f32 f64 f16] (x in Ties), shown!(x.is_infinite(); where { let x = x.recip(); }), x == 0.0, "isinf" "numpy.isinf" "isinf";
        /// Whether the sign is negative
        signbit [f32 f64 f16] (x), x.signbit(), x < 0.0, "signbit" "numpy.signbit" "signbit";
        /// The element in another type, as Rust's `as` converts it. Between float types, the
        /// derivative is not 0
        cast [f32 i32 u8] (x), x.cast::<i64>(), x as i64, "to" "lax.convert_element_type" "astype";
        /// `f(x)` for a closure `f`
        map [f32 i32] (x), x.map(|x| x + x), x + x, "func.vmap" "vmap" "vectorize";
        /// `e^x` of complex numbers
        exp_complex [Complex64] (x), x.exp(), x.exp(), "exp" "lax.exp" "exp";
    }
}

mod two {
    use crate::value::of;
    use crate::{I, Inner, J, K, Outer};
    use typed_dims::prelude::*;

    crate::pointwise2! {
        /// `x + y`
        add [f32 i32 u8 half] (x, y), x + y, x + y, "add" "lax.add" "add";
        /// `x - y`
        sub [f32 i32 f16] (x, y), x - y, x - y, "sub" "lax.sub" "subtract";
        /// `x * y`
        mul [f32 i32 u8 half] (x, y), x * y, x * y, "mul" "lax.mul" "multiply";
        /// `x / y`; for integers, rounded towards 0
        div [f32 i32 half] (x, y in Nonzero), x / y, x / y, "div" "lax.div" "divide";
        /// The remainder with the sign of `x`
        rem [f32 i32 f16] (x, y in Nonzero), x % y, x % y, "fmod" "lax.rem" "fmod";
        /// `x & y`
        and [bool u8] (x, y), x & y, x & y, "bitwise_and" "lax.bitwise_and" "bitwise_and";
        /// `x | y`
        or [bool u8] (x, y), x | y, x | y, "bitwise_or" "lax.bitwise_or" "bitwise_or";
        /// `x ^ y`
        xor [bool u8] (x, y), x ^ y, x ^ y, "bitwise_xor" "lax.bitwise_xor" "bitwise_xor";
        /// The greater element; NaN if either is NaN
        maximum [f32 i32 f16] (x, y), x.maximum(y), if x > y { x } else { y }, "maximum" "lax.max" "maximum";
        /// The lesser element; NaN if either is NaN
        minimum [f32 i32 f16] (x, y), x.minimum(y), if x < y { x } else { y }, "minimum" "lax.min" "minimum";
        /// `x^y`
        powf [f32 f64 f16] (x in Positive, y), x.powf(y), x.powf(y), "pow" "lax.pow" "power";
        /// `atan(x / y)`, in the quadrant of the point `(y, x)`
        atan2 [f32 f64 f16] (x, y), x.atan2(y), x.atan2(y), "atan2" "lax.atan2" "arctan2";
        /// `sqrt(x * x + y * y)`
        hypot [f32 f64 f16] (x, y), x.hypot(y), x.hypot(y), "hypot" "numpy.hypot" "hypot";
        /// The remainder with the sign of `y`
        remainder [f32 i32 f16] (x, y in Nonzero), x.remainder(y), { let r = x % y; if r != 0 as T && (r < 0 as T) != (y < 0 as T) { r + y } else { r } }, "remainder" "numpy.remainder" "mod";
        /// `x / y` of integers, rounded down
        floor_div [i32 i64] (x, y in Nonzero), x.floor_div(y), (f64::from(x as i32) / f64::from(y as i32)).floor() as T, "floor_divide" "numpy.floor_divide" "floor_divide";
        /// `x` with the sign of `y`
        copysign [f32 f64 f16] (x, y), x.copysign(y), x.copysign(y), "copysign" "numpy.copysign" "copysign";
        /// The greater element; ignores NaN
        fmax [f32 f64 f16] (x, y), shown!(x.fmax(y); where { let x = x.ln(); }), x.ln().max(y), "fmax" "numpy.fmax" "fmax";
        /// The lesser element; ignores NaN
        fmin [f32 f64 f16] (x, y), shown!(x.fmin(y); where { let y = y.ln(); }), x.min(y.ln()), "fmin" "numpy.fmin" "fmin";
        /// `ln(e^x + e^y)`
        logaddexp [f32 f64 f16] (x, y), x.logaddexp(y), (x.exp() + y.exp()).ln(), "logaddexp" "numpy.logaddexp" "logaddexp";
        /// `x * ln(y)`, 0 where `x` is 0 (unless `y` is NaN)
        xlogy [f32 f64 f16] (x in Ties, y in Positive), x.xlogy(y), x * y.ln(), "xlogy" "scipy.special.xlogy" "scipy.special.xlogy";
        /// 0 where `x < 0`, `y` where `x` is 0 (the derivative with respect to `y` is 1 there), 1
        /// where `x > 0`
        heaviside [f32 i32] (x in Ties, y), x.heaviside(y), if x < 0 as T { 0 as T } else if x > 0 as T { 1 as T } else { y }, "heaviside" "numpy.heaviside" "heaviside";
        /// `x + (y - x) * weight`
        lerp [f32 f64 half] (x, y), x.lerp(y, of(0.25)), x * 0.75 + y * 0.25, "lerp" "" "";
        /// `x < y`
        lt [f32 i32 f16] (x in Ties, y in Ties), x.lt(y), x < y, "lt" "lax.lt" "less";
        /// `x <= y`
        le [f32 i32 f16] (x in Ties, y in Ties), x.le(y), x <= y, "le" "lax.le" "less_equal";
        /// `x > y`
        gt [f32 i32 f16] (x in Ties, y in Ties), x.gt(y), x > y, "gt" "lax.gt" "greater";
        /// `x >= y`
        ge [f32 i32 f16] (x in Ties, y in Ties), x.ge(y), x >= y, "ge" "lax.ge" "greater_equal";
        /// `x == y`
        eq [f32 i32 bool] (x in Ties, y in Ties), x.eq(y), x == y, "eq" "lax.eq" "equal";
        /// `x != y`
        ne [f32 i32 bool] (x in Ties, y in Ties), x.ne(y), x != y, "ne" "lax.ne" "not_equal";
        /// `f(x, y)` for a closure `f`; `x` and `y` can have different element types
        zip_map [f32 i32] (x, y), x.zip_map(y, |x: T, y: T| x - y - y), x - y - y, "func.vmap" "vmap" "vectorize";
    }
}

mod mixed {
    use super::build;
    use crate::{I, Inner, J, K, Outer};
    use typed_dims::prelude::*;

    crate::operators! {
        /// `if c { x } else { y }`; if `x` or `y` looks up elements by index, an index is checked only where its element is selected, except in calls to recorded programs
        select [f32 i32] (c: bool [I J], x: T [I], y: T [J K]) -> [I J K],
            call: select(c, x, y),
            loops: build(&[c.shape()[0], c.shape()[1], y.shape()[1]], |at| {
                if c[[at[0], at[1]]] { x[[at[0]]] } else { y[[at[1], at[2]]] }
            }),
            along: [], keep: [],
            names: "where" "lax.select" "where";
        /// Dims as values: the indices along them
        iota [f32] (x: T [I J]) -> [I J],
            call: x.zip_map(I + J * 2, |_, at| at),
            loops: build(x.shape(), |at| (at[0] + 2 * at[1]) as isize),
            along: [I J], keep: [],
            names: "arange" "lax.iota" "indices";
    }
}
