//! Typical programs that must compile and run.

mod binding {
    mod all_binders;
}

mod macros {
    mod closures;
    mod declared_forms;
    mod declared_in_a_function;
    mod denied_warnings;
    mod expanded_twice_by_macro_rules;
    mod forbidden_unsafe_code;
    mod generic_functions;
    mod loops;
    mod patterns_under_denied_warnings;
    mod same_names_twice_in_one_block;
    mod shadowed_names;
    mod size_from_a_variable_of_the_same_name;
    mod two_expansions_meet;
}

mod onnx {
    mod models_share_dims;
}

mod order {
    mod what_remains_decides;
}

mod signatures {
    mod attention;
    mod dims_in_any_order;
    mod dims_in_struct_fields;
    mod generic_over_a_whole_set;
    mod generic_over_rest;
    mod matrix_product_over_rest;
    mod recursion_over_rest;
}

mod sizes {
    mod dims_as_values;
}
