//! Programs against the table of operations, parts against slow loops, what is traced on many threads, and long chains.

mod chains;
mod memory;
mod parts;
mod programs;
