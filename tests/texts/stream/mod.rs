//! The rules and examples of Vollo's documentation of the data dimension, and their tests. The last
//! column lists programs in `ui-tests/fail/streams` that must not compile.
//!
//! | section | the text | test | refused: `stream_..` |
//! |---|---|---|---|
//! | | "represent .. as [a b! c]" | `ledger::streams_are_shown_with_their_axes` | `along_no_axis`, `without_an_axis`, `of_one_dim_twice` |
//! | | "compile-time constants .. don't have a data dimension" | `pointwise::constants_have_no_data_dimension_and_so_match`, `constants_on_the_left`, `constants_with_a_layout` | `pointwise_constant_with_another_dim`, `pointwise_constant_on_the_left_with_another_dim`, `pointwise_constant_of_other_elements` |
//! | Pointwise | "[a b! c] (*) [a b! c] -> [a b! c]", "any pointwise operation" | `pointwise::any_pointwise_operation`, `functions_of_floats`, `functions_of_tensors_that_name_no_dim` | `functions_of_integers`, `pointwise_by_a_function_with_dims` |
//! | | "Shape and data dimension must match" | `pointwise::sizes_that_differ_are_an_error` | `pointwise_shapes_differ`, `pointwise_order_differs`, `pointwise_data_dims_differ` |
//! | Slicing | "[a b c!][:, :, :n] -> [a b n!]" | `slicing::on_the_data_dimension` | `slicing_preserves_the_data_dim`, `slicing_of_no_axis` |
//! | | "[a b! c][:, :, :n] -> [a b! n]", "is free" | `slicing::on_another_dimension_it_is_free` | |
//! | Unsqueeze | "[a! b].unsqueeze(dim=0) -> [1 a! b]", "anywhere" | `unsqueeze::a_new_axis_anywhere` | `unsqueeze_of_an_axis_that_is_there`, `unsqueeze_of_several_elements` |
//! | | "never the data dimension" | `unsqueeze::local_dims_and_several` | `unsqueeze_is_never_the_data_dim` |
//! | Broadcasting | "[1 b!] -> [n b!]", "free" | `broadcasting::along_a_non_data_dimension_it_is_free` | `broadcast_preserves_the_data_dim`, `broadcast_of_several_elements`, `broadcast_to_an_axis_that_is_there` |
//! | | "[a 1!] -> [a n!]", "close to free" | `broadcasting::along_the_data_dimension_it_is_close_to_free` | |
//! | Concatenation | "shape and data dimension of each .. must match" | `concatenation::sizes_are_checked` | `concatenation_data_dims_differ`, `concatenation_along_no_axis` |
//! | | "[a! b c].repeat(n, dim=0) -> [(a * n)! b c]" | `concatenation::along_the_data_dimension` | `concatenation_repeat_of_no_axis` |
//! | | "[a! b c].repeat(n, dim=1) -> [a! (b * n) c]", "free" | `concatenation::along_another_dimension_it_is_free` | |
//! | | "stacking is the same but with a new-axis" | `concatenation::stacking_is_a_new_axis_and_a_concatenation` | `concatenation_stack_along_an_axis` |
//! | Reduction | "preserve the position of the data dimension" | `reduction::all_reductions` | `reduction_preserves_the_data_dim`, `reduction_of_no_axis` |
//! | | "[a! b].sum(dim=0) -> [1! b]", "keepdim must be used" | `reduction::along_the_data_dimension` | `reduction_of_the_data_dim_without_keepdim`, `reduction_keeps_one_element`, `reduction_keepdim_of_no_axis` |
//! | | "[a! b].sum(dim=1) -> [a!]", "generally slower", "optional" | `reduction::along_another_dimension` | |
//! | Contraction | "[b i j] @ [b j! k] -> [b i! k]" | `contraction::with_a_constant_on_the_left` | `contraction_result_flows_along_the_replaced_index`, `contraction_of_no_axis`, `contraction_constant_lacks_the_dim` |
//! | | "(WLOG)" | `contraction::with_a_constant_on_the_right` | |
//! | | "along the contracted dimension of the runtime tensor" | | `contraction_not_along_the_data_dim` |
//! | | "along the \"replaced\" index" | `contraction::with_a_constant_that_has_no_dims_of_its_own_or_several` | `contraction_with_nothing_in_its_place`, `contraction_with_two_dims_in_its_place` |
//! | | "[b i j] @ [b j k!] -> [b i k!]", "allow_dynamic_weights", "preserved" | `contraction::with_a_constant_not_along_the_data_dimension` | `contraction_keeps_a_data_dim_that_is_not_contracted` |
//! | | "[i! j] @ [j! k] -> [i! k]" | `contraction::of_two_streams` | `contraction_of_two_streams_without_opting_in` |
//! | | "the data dimension of exactly one of the input tensors" | | `contraction_along_both_data_dims`, `contraction_along_neither_data_dim` |
//! | | "[b! i j] @ [b j! k] -> [b! i k]" | `contraction::of_two_streams_whose_result_flows_along_a_batch` | `contraction_of_two_streams_flows_along_the_other` |
//! | Reshape | "a stride equal to the product of all dimensions to its right" | `reshape::strides_of_static_and_other_sizes` | `reshape_of_sizes_that_rustc_does_not_know`, `reshape_number_of_elements` |
//! | | "[a! (b * c)] -> [a! b c]" | `reshape::behind_the_data_dimension` | `reshape_unflatten_into_an_axis_that_is_there`, `reshape_unflatten_into_one_dim_twice` |
//! | | "[a b c!] -> [b a c!]" | `reshape::before_the_data_dimension` | |
//! | | "[a b! c] -> [(a * b)! c]" | `reshape::flattened_with_the_axis_before_it` | `reshape_flatten_of_what_lies_apart`, `reshape_flatten_of_neighbors_in_another_order`, `reshape_flatten_into_no_dim`, `reshape_flatten_of_no_dims` |
//! | | "[a (n * b)! c] -> [a n b! c]", "b! rather than n!" | `reshape::unflattened_into_two_the_second_is_the_data_dimension` | `reshape_unflatten_flows_along_the_last_factor` |
//! | | "[a b! c] -> [a (b * c)!] is invalid" | `reshape::sizes_are_checked` | `reshape_changes_the_stride`, `reshape_flatten_changes_the_stride` |
//! | | "that doesn't change the extent .. is free" | `reshape::behind_the_data_dimension`, `flattened_with_the_axis_before_it` | |
//! | | "not related to the strides of the tensors" | `reshape::what_does_not_lie_in_one_piece_is_copied` | |

mod broadcasting;
mod concatenation;
mod contraction;
mod ledger;
mod model;
mod pointwise;
mod properties;
mod reduction;
mod reshape;
mod slicing;
mod unsqueeze;

use typed_dims::ndarray::Array3;
use typed_dims::prelude::*;
use typed_dims::tensors::stream::CostClass;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
    pub struct N;
    pub struct One = 1;
    pub struct Uno = 1;
    pub struct J;
    pub struct I;
    pub struct K;
    pub struct AB;
    pub struct BC;
    pub struct NB;
}

/// A 2 x 3 x 4 array of distinct numbers.
fn numbers() -> Array3<i64> {
    Array3::from_shape_fn((2, 3, 4), |(a, b, c)| (100 * a + 10 * b + c) as i64)
}

/// `[a b! c]`
fn abc_along_b() -> Stream<i64, (A, B, C), B> {
    numbers().into_tensor((A, B, C)).stream((A, B, C), B)
}

/// `[a b c!]`
fn abc_along_c() -> Stream<i64, (A, B, C), C> {
    numbers().into_tensor((A, B, C)).stream((A, B, C), C)
}

/// `[a! b c]`
fn abc_along_a() -> Stream<i64, (A, B, C), A> {
    numbers().into_tensor((A, B, C)).stream((A, B, C), A)
}

fn cost<T>(f: impl FnOnce() -> T) -> (T, CostClass) {
    let (out, ledger) = typed_dims::tensors::stream::ledger(f);
    let [entry] = &ledger.entries[..] else { panic!("one operation was expected:\n{ledger}") };
    (out, entry.cost)
}

/// The result and the cost of `f`, which must not move elements.
fn cost_in_place<T>(f: impl FnOnce() -> T) -> (T, CostClass) {
    let (out, plan) = explain(|| cost(f));
    assert!(plan.steps.is_empty(), "{plan}");
    out
}
