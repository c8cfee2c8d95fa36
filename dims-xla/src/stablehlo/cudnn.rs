//! Attention by cuDNN's fused kernels, which XLA calls on CUDA.
//!
//! The operands have the axes batch, sequence, head, feature. The calls and their settings are
//! those of JAX for `jax.nn.dot_product_attention(.., implementation="cudnn")`.

use super::Lower;
use super::field::varied;
use super::text::{Value, element, tensor_type};
use crate::error::XlaError;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedAttention, SavedField, SavedInstruction, SavedOperand};

/// The implementation of attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttentionKernel {
    /// As products and a softmax.
    #[default]
    Operations,
    /// By cuDNN, if cuDNN supports the attention. Use this only with CUDA: other plugins do not
    /// have cuDNN's kernels. cuDNN needs a single device, `f16` or `bf16`, and one dim each for
    /// queries, keys, the features of keys and the features of values. The two feature dims must
    /// have the same size, a multiple of 8 and at most 128. The numbers of queries and keys must be
    /// even. Queries, keys and values must be tensors, not unevaluated expressions, and must have
    /// the same other dims. There may be no bias, and no mask except a causal one over as many keys
    /// as queries. All other attention is computed as products and a softmax.
    Cudnn,
}

/// The greatest head size that cuDNN's kernels support on all devices.
const LARGEST_HEAD: usize = 128;

/// The roles of an attention's loops.
struct AttentionLoops {
    /// Loops of batches. The first one is cuDNN's batch, the others are its heads.
    batch: Vec<usize>,
    query: usize,
    key: usize,
    /// The features of queries and keys, and the features of values.
    features: [usize; 2],
    is_causal: bool,
}

impl AttentionLoops {
    /// The loops of an operand or the result, in the order batch, sequence, heads, features.
    fn order(&self, sequence: usize, feature: usize) -> Vec<usize> {
        let (outer, heads) = self.batch.split_at(self.batch.len().min(1));
        outer.iter().copied().chain([sequence]).chain(heads.iter().copied()).chain([feature]).collect()
    }

    /// The sizes of cuDNN's batch and heads.
    fn batch_sizes(&self, sizes: &[usize]) -> [usize; 2] {
        let (outer, heads) = self.batch.split_at(self.batch.len().min(1));
        [outer, heads].map(|loops| loops.iter().map(|&axis| sizes[axis]).product())
    }
}

fn only(of: Vec<usize>) -> Option<usize> {
    match of[..] {
        [one] => Some(one),
        _ => None,
    }
}

impl Lower<'_> {
    /// The roles of the loops, if cuDNN supports this attention.
    fn roles(&self, own: &SavedAttention) -> Option<AttentionLoops> {
        if self.attention != AttentionKernel::Cudnn
            || self.is_sharded
            || !matches!(own.dtype, DType::F16 | DType::Bf16)
            || own.bias.is_some()
        {
            return None;
        }
        let sizes = &own.operands[0].sizes;
        for field in &own.operands {
            let operand = self.plain_half(field, field.program.result)?;
            (self.values[operand.value?].dtype == own.dtype).then_some(())?;
        }
        let [q, k, v] = own.operands.each_ref().map(|field| varied(field, field.program.result));
        let large = |loops: &[usize]| -> Vec<usize> {
            loops.iter().copied().filter(|&axis| sizes[axis] > 1).collect()
        };
        let (feature, key) = (only(large(&own.features))?, only(large(&own.over))?);
        let (batch, queries): (Vec<usize>, Vec<usize>) =
            large(&own.scores).into_iter().filter(|&axis| axis != key).partition(|axis| k.contains(axis));
        let query = only(queries)?;
        let kept = large(&own.kept).into_iter().filter(|axis| !own.scores.contains(axis)).collect();
        let of_values = only(kept)?;
        // Each operand must vary along the batch loops, its sequence and its feature, and along no
        // other loops.
        let is = |of: &[usize], sequence: usize, feature: usize| {
            let all: Vec<usize> = batch.iter().copied().chain([sequence, feature]).collect();
            of.len() == all.len() && all.iter().all(|axis| of.contains(axis))
        };
        let fits = is(&q, query, feature) && is(&k, key, feature) && is(&v, key, of_values);
        let head = sizes[feature];
        let is_known = head == sizes[of_values] && head.is_multiple_of(8) && head <= LARGEST_HEAD;
        let is_even = sizes[query].is_multiple_of(2) && sizes[key].is_multiple_of(2);
        let is_causal = match &own.mask {
            None => false,
            Some(mask) => (is_causal(mask, query, key) && sizes[query] == sizes[key]).then_some(true)?,
        };
        (fits && is_known && is_even).then_some(AttentionLoops {
            batch,
            query,
            key,
            features: [feature, of_values],
            is_causal,
        })
    }

    /// Queries, keys and values in cuDNN's layout.
    fn cudnn_operands(
        &mut self,
        own: &SavedAttention,
        roles: &AttentionLoops,
    ) -> Result<[Value; 3], XlaError> {
        let [feature, of_values] = roles.features;
        let mut operand = |at: usize, sequence: usize, feature: usize| -> Result<Value, XlaError> {
            let field = &own.operands[at];
            let operand: SavedOperand =
                self.plain_half(field, field.program.result).expect("`roles` found the operand").clone();
            let value = self.operand_elements(field, &operand, &roles.order(sequence, feature))?;
            Ok(self.as_cudnn(&value, &own.operands[0].sizes, roles, sequence, feature))
        };
        Ok([
            operand(0, roles.query, feature)?,
            operand(1, roles.key, feature)?,
            operand(2, roles.key, of_values)?,
        ])
    }

    /// A value along the loops of [`AttentionLoops::order`], reshaped to four axes.
    fn as_cudnn(
        &self,
        value: &Value,
        sizes: &[usize],
        roles: &AttentionLoops,
        sequence: usize,
        feature: usize,
    ) -> Value {
        let [batch, heads] = roles.batch_sizes(sizes);
        self.body.reshape(value, &[batch, sizes[sequence], heads, sizes[feature]])
    }

    /// The output with axes for batch, head, query and feature, and the statistics that its
    /// gradient needs.
    fn cudnn_forward(
        &self,
        own: &SavedAttention,
        roles: &AttentionLoops,
        operands: &[Value; 3],
    ) -> [Value; 2] {
        let sizes = &own.operands[0].sizes;
        let [batch, heads] = roles.batch_sizes(sizes);
        let (queries, head) = (sizes[roles.query], sizes[roles.features[1]]);
        let products = concat!(
            r#""bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},"#,
            r#""bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]}"#
        );
        let results = [
            (own.dtype, vec![batch, heads, queries, head], "[3, 1, 2, 0]"),
            (DType::F32, vec![batch, heads, queries], "[2, 1, 0]"),
            (DType::U8, vec![0], "0"),
        ];
        let [output, statistics, _] =
            self.cudnn_call("__cudnn$fmhaSoftmax", own, roles, products, &operands.each_ref(), results);
        [output, statistics]
    }

    fn cudnn_call<const N: usize>(
        &self,
        name: &str,
        own: &SavedAttention,
        roles: &AttentionLoops,
        products: &str,
        operands: &[&Value],
        results: [(DType, Vec<usize>, &str); N],
    ) -> [Value; N] {
        let sizes = &own.operands[0].sizes;
        let [batch, heads] = roles.batch_sizes(sizes);
        let scale = f64::from_bits(own.scale);
        let mask = if roles.is_causal { "CAUSAL" } else { "NO_MASK" };
        let settings = format!(
            r#"{{"operation_queue_id":"0","cudnn_fmha_backend_config":{{"algorithm":{{"algo_id":"0","math_type":"TENSOR_OP_MATH","tuning_knobs":{{"17":"1","24":"0"}},"is_cudnn_frontend":true,"workspace_size":"0"}},"fmha_scale":{scale:?},"intermediate_tensor_shape":{{"element_type":"{}","dimensions":["{batch}","{heads}","{}","{}"],"tuple_shapes":[],"layout":{{"dim_level_types":[],"dim_unique":[],"dim_ordered":[],"minor_to_major":["3","2","1","0"],"tiles":[],"element_size_in_bits":"0","memory_space":"0","index_primitive_type":"PRIMITIVE_TYPE_INVALID","pointer_primitive_type":"PRIMITIVE_TYPE_INVALID","dynamic_shape_metadata_prefix_bytes":"0"}},"is_dynamic_dimension":[false,false,false,false]}},"is_flash_attention":true,"mask_type":"{mask}",{products},"dropout_rate":0.0,"seed":42,"sliding_window_length":0,"max_seg_per_batch":1,"is_paged_attention":false}}}}"#,
            element(own.dtype).to_uppercase(),
            sizes[roles.query],
            sizes[roles.key],
        );
        let row_major = |rank: usize| {
            let axes: Vec<String> = (0..rank).rev().map(|axis| axis.to_string()).collect();
            format!("[{}]", axes.join(", "))
        };
        let layout = |axes: &str, rank: usize| format!("dense<{axes}> : tensor<{rank}xindex>");
        let names: Vec<&str> = operands.iter().map(|own| &*own.name).collect();
        let types: Vec<String> = operands.iter().map(|own| own.ty()).collect();
        let of_operands: Vec<String> =
            operands.iter().map(|own| layout(&row_major(own.rank()), own.rank())).collect();
        let of_results: Vec<String> =
            results.iter().map(|(_, shape, axes)| layout(axes, shape.len())).collect();
        let result_types: Vec<String> =
            results.iter().map(|(dtype, shape, _)| tensor_type(*dtype, shape)).collect();
        let text = format!(
            "\"stablehlo.custom_call\"({}) {{call_target_name = \"{name}\", api_version = 2 : i32, backend_config = \"{}\", operand_layouts = [{}], result_layouts = [{}]}} : ({}) -> ({})",
            names.join(", "),
            settings.replace('"', "\\22"),
            of_operands.join(", "),
            of_results.join(", "),
            types.join(", "),
            result_types.join(", "),
        );
        self.body.several(text, results.each_ref().map(|(dtype, shape, _)| (*dtype, shape)))
    }

    /// A result with axes for batch, head, sequence and feature, rearranged to the axes `loops`.
    fn along_loops(
        &self,
        value: &Value,
        sizes: &[usize],
        roles: &AttentionLoops,
        [sequence, feature]: [usize; 2],
        loops: &[usize],
    ) -> Value {
        let own: Vec<usize> = roles.batch.iter().copied().chain([sequence, feature]).collect();
        let shape: Vec<usize> = own.iter().map(|&axis| sizes[axis]).collect();
        let value = self.body.reshape(value, &shape);
        let order: Vec<usize> =
            loops.iter().filter_map(|axis| own.iter().position(|own| own == axis)).collect();
        let value = self.body.transpose(&value, &order);
        let shape: Vec<usize> = loops.iter().map(|&axis| sizes[axis]).collect();
        self.body.reshape(&value, &shape)
    }

    /// Attention by cuDNN. `None` if cuDNN does not support this attention.
    pub(super) fn cudnn_attention(&mut self, own: &SavedAttention) -> Result<Option<Value>, XlaError> {
        let Some(roles) = self.roles(own) else { return Ok(None) };
        let operands = self.cudnn_operands(own, &roles)?;
        let [output, _] = self.cudnn_forward(own, &roles, &operands);
        let axes = [roles.query, roles.features[1]];
        Ok(Some(self.along_loops(&output, &own.operands[0].sizes, &roles, axes, &own.kept)))
    }

    /// The gradients with respect to queries, keys and values, in registers, if cuDNN supports this
    /// attention. Each has an axis for each loop along which its operand varies.
    pub(super) fn cudnn_gradients(
        &mut self,
        own: &SavedAttention,
        dy: &SavedField,
    ) -> Result<Option<[Value; 3]>, XlaError> {
        let Some(roles) = self.roles(own) else { return Ok(None) };
        let sizes = &own.operands[0].sizes;
        let operands = self.cudnn_operands(own, &roles)?;
        let [output, statistics] = self.cudnn_forward(own, &roles, &operands);
        let of_output = [roles.query, roles.features[1]];
        let dy = self.field_of(dy, &roles.order(of_output[0], of_output[1]), own.dtype)?;
        let dy = self.as_cudnn(&dy, sizes, &roles, of_output[0], of_output[1]);
        let output = self.body.transpose(&output, &[0, 2, 1, 3]);
        let products = concat!(
            r#""bmm1_grad_gemm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]},"#,
            r#""bmm1_grad_gemm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]},"#,
            r#""bmm2_grad_gemm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]},"#,
            r#""bmm2_grad_gemm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]}"#
        );
        let axes = [
            [roles.query, roles.features[0]],
            [roles.key, roles.features[0]],
            [roles.key, roles.features[1]],
        ];
        let [batch, heads] = roles.batch_sizes(sizes);
        let [q, k, v] = axes.map(|[sequence, feature]| {
            (own.dtype, vec![batch, heads, sizes[sequence], sizes[feature]], "[3, 1, 2, 0]")
        });
        let [q, k, v, _] = self.cudnn_call(
            "__cudnn$fmhaSoftmaxBackward",
            own,
            &roles,
            products,
            &[&operands[0], &operands[1], &operands[2], &statistics, &dy, &output],
            [q, k, v, (DType::U8, vec![0], "0")],
        );
        let found = [(q, 0), (k, 1), (v, 2)].map(|(value, at)| {
            let loops = varied(&own.operands[at], own.operands[at].program.result);
            let value = self.along_loops(&value, sizes, &roles, axes[at], &loops);
            self.body.loaded(&value)
        });
        Ok(Some(found))
    }
}

/// Whether a mask is a comparison that keeps exactly the keys up to the query's position.
fn is_causal(mask: &SavedField, query: usize, key: usize) -> bool {
    let position = |of: u32| match &mask.program.instructions[of as usize].0 {
        SavedInstruction::Position(operand) => {
            let operand = &mask.operands[*operand as usize];
            let strides = &operand.place.strides;
            let along: Vec<usize> =
                (0..strides.len()).filter(|&axis| strides[axis] != 0 && mask.sizes[axis] > 1).collect();
            match along[..] {
                [axis] if strides[axis] == 1 && operand.place.table.is_none() => {
                    Some((axis, operand.place.offset))
                }
                _ => None,
            }
        }
        _ => None,
    };
    let SavedInstruction::Binary(op, a, b) = &mask.program.instructions[mask.program.result as usize].0
    else {
        return false;
    };
    let (low, high) = match op.0.as_str() {
        "Le" => (position(*a), position(*b)),
        "Ge" => (position(*b), position(*a)),
        _ => return false,
    };
    matches!((low, high), (Some((low, a)), Some((high, b))) if low == key && high == query && a == b)
}
