//! Tests programs against the table of operations, parts against slow loops, tracing on many
//! threads, and long chains.

mod chains;
mod memory;
mod parts;
mod programs;
