//! Checks the order of layers and files, where `unsafe` occurs, the tasks that operators leave to
//! `execute`, that type names are unique, which traits are open, the number of names in the
//! prelude and of modules at the root, and the methods that `tensor!` knows. See `ARCHITECTURE.md`.

mod circles;
mod comprehensions;
mod layers;
mod left_to_execute;
mod prelude;
mod source;
mod traits;
mod type_names;
