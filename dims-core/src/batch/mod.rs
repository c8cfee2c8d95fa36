//! Batching: functions that are written for one example, and called with any further dims bound.
//!
//! `Rest<B>` stands for the dims of the caller. A call of a batched function takes three steps, none of which moves an element:
//!
//! ```text
//! seal      (n, Seq, Feat)  becomes  (Seq, Feat, Rest<(n,)>)      for each argument
//! call      the function, whose dims cannot clash with the caller's, which it cannot name
//! unseal    (Seq, Rest<(n,)>)  becomes  (n, Seq)                  for the result
//! ```
//!
//! An argument that lacks a further dim which another one has is the same all along that dim: its stride there is 0. So what the function
//!
//! | file | subject |
//! |---|---|
//! | `example` | types as they are written for one example, and the types that stand for them in a batch |
//! | `argument` | arguments: held in memory, their further dims united, sealed |
//! | `result` | results: computed, and opened to the dims of the caller |
//! | `closed` | which rest a function sees, and dims that clash |
//! | `seal` | `seal` and `unseal`, for functions that name `Rest<B>` themselves |
//! | `applies` | what `vmap` makes of a function: one call, or a loop of calls |
//! | `mapped` | the tensors that `batched` and `vmap` map over, and what the function returns |
//! | `vmap` | `batched` and `vmap`, for closures and for functions that were not made for batches |

pub mod applies;
pub mod argument;
pub mod closed;
pub mod each;
pub mod example;
pub mod mapped;
pub mod result;
pub mod seal;
pub mod vmap;

pub use argument::{Argument, Further, HeldArgument, NoFurther};
pub use closed::Closes;
pub use each::{map_each, try_map_each};
pub use example::{Alone, Example, In, NoTensor, Output, Param, Plain, Spelling};
pub use result::{Finish, Opens};
pub use seal::Sealable;
pub use vmap::{batched, vmap};
