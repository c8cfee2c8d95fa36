//! The macros among other code: names, lints, and other macros.

mod in_macro_rules;
mod names;
mod pedantic;
