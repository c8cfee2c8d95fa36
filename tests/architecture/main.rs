//! The order of the layers and of the files within them; what operators leave to the layer that
//! runs steps; that each type has a name of its own; which traits are open; and how many names
//! the prelude and the root have. See `ARCHITECTURE.md`.

mod circles;
mod layers;
mod left_to_execute;
mod prelude;
mod source;
mod traits;
mod type_names;
