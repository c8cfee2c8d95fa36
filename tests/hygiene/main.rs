//! The macros in users' code: name clashes, lints, and use within other macros.

mod in_macro_rules;
mod names;
mod pedantic;
