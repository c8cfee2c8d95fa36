//! The meanings that each operator expects of its inputs' axes, and the meanings of its results'
//! axes.

mod joint;
mod moving;
mod passing;
mod products;
mod shapes;
mod windows;

use super::node::{Call, Results};

/// Operators with one result, which has the axes of the first input.
const AS_THEY_ARE: &str = "
    Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli BitCast BitwiseNot CastLike Ceil Celu Clip Cos Cosh
    CumProd CumSum DequantizeLinear Elu Erf Exp EyeLike Floor Gelu HardSigmoid HardSwish Hardmax IsInf
    IsNaN LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg Not QuantizeLinear
    RandomNormalLike RandomUniformLike Reciprocal Relu ReverseSequence RotaryEmbedding Round Scatter
    ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan
    Tanh TensorScatter ThresholdedRelu Trilu
";

/// The results of the node, or an error that says why they cannot be found. `None` for operators
/// that are unknown or contain graphs.
pub fn run(call: &mut Call<'_>) -> Option<Results> {
    let operator = call.node.op_type.as_str();
    Some(match operator {
        // Windows.
        "AveragePool" | "MaxPool" | "LpPool" | "MaxUnpool" | "GridSample" => windows::pool(call, false),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => windows::pool(call, true),
        "Conv" | "ConvInteger" | "DeformConv" => windows::conv(call, 0, 1, false),
        "QLinearConv" => windows::conv(call, 0, 3, false),
        "ConvTranspose" => windows::conv(call, 0, 1, true),
        "BatchNormalization" => windows::batch_norm(call),
        "GroupNormalization" => windows::group_norm(call),
        "InstanceNormalization" => windows::instance_norm(call),
        "LRN" => windows::images(call),
        "DepthToSpace" | "SpaceToDepth" => windows::images_resized(call),
        "RNN" | "GRU" | "LSTM" => windows::recurrent(call),
        // Products.
        "MatMul" | "MatMulInteger" => products::matmul(call, 0, 1),
        "QLinearMatMul" => products::matmul(call, 0, 3),
        "Gemm" => products::gemm(call),
        "Einsum" => products::einsum(call),
        // Operands that must agree.
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "And" | "Or" | "Xor" | "Equal" | "Greater"
        | "Less" | "GreaterOrEqual" | "LessOrEqual" | "BitShift" | "BitwiseAnd" | "BitwiseOr"
        | "BitwiseXor" | "Sum" | "Max" | "Min" | "Mean" | "Where" | "PRelu" => joint::elementwise(call),
        "Concat" => joint::concat(call),
        // Axes that move.
        "Transpose" => moving::transpose(call),
        "Reshape" => moving::reshape(call),
        "Flatten" => moving::flatten(call),
        "Squeeze" => moving::squeeze(call),
        "Unsqueeze" => moving::unsqueeze(call),
        "Expand" => moving::expand(call),
        "Gather" => moving::gather(call),
        "OneHot" => moving::one_hot(call),
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1" | "ReduceL2"
        | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceSumSquare" => moving::reduce(call),
        "ArgMax" | "ArgMin" => moving::arg_reduce(call),
        // Integers that are shapes.
        "Constant" => shapes::constant(call),
        "ConstantOfShape" | "RandomNormal" | "RandomUniform" => shapes::of_shape(call),
        "Shape" => shapes::shape(call),
        "Size" => shapes::size(),
        "Range" => shapes::range(),
        // Axes that are passed on.
        "Identity" => passing::as_it_is(call),
        "Cast" => passing::cast(call),
        _ if AS_THEY_ARE.split_whitespace().any(|name| name == operator) => passing::same(call, 1),
        "Dropout" => passing::same(call, 2),
        "LayerNormalization" | "RMSNormalization" | "SimplifiedLayerNormalization" => {
            passing::layer_norm(call)
        }
        "DynamicQuantizeLinear" => passing::quantized(call),
        "Pad" | "Tile" | "Upsample" | "Resize" => passing::resized(call, 1),
        "Slice" => shapes::slice(call),
        "Compress" => passing::compress(call),
        "TopK" => passing::resized(call, 2),
        "CenterCropPad" | "Attention" | "GatherElements" => passing::resized(call, 1),
        "Split" => passing::resized(call, call.node.output.len()),
        _ => return None,
    })
}
