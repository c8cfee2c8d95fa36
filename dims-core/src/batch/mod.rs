//! Batching: functions that are written for one example, and called with tensors that have extra
//! dims.
//!
//! `Rest<B>` stands for the dims of the caller. A call of a batched function has three steps.
//! Sealing and unsealing copy no elements.
//!
//! ```text
//! seal      (n, Seq, Feat)  becomes  (Seq, Feat, Rest<(n,)>)      for each argument
//! call      the function, which cannot name the caller's dims, so its own dims cannot clash
//! unseal    (Seq, Rest<(n,)>)  becomes  (n, Seq)                  for the result
//! ```
//!
//! If an argument lacks an extra dim that another argument for the same `Rest` has, it is broadcast
//! along that dim with stride 0.
//!
//! | file | subject |
//! |---|---|
//! | `example` | types as written for one example, and their types in a batch |
//! | `argument` | arguments: computed, then sealed |
//! | `result` | results: computed, and opened to the dims of the caller |
//! | `closed` | the rest that a function sees, and dims that clash |
//! | `seal` | `seal` and `unseal`, for functions that name `Rest<B>` themselves |
//! | `applies` | `vmap`: one call, or a loop of calls |
//! | `way` | whether a parameter needs one call or a loop |
//! | `each` | `map_each`: a loop of calls, one for each example |
//! | `numbers` | functions of numbers |
//! | `mapped` | the tensors that `batched` and `vmap` map over, and the function's result |
//! | `vmap` | `batched` and `vmap`, for closures and for functions written for one example |

pub mod applies;
pub mod argument;
pub mod closed;
pub mod each;
pub mod example;
pub mod mapped;
pub mod numbers;
pub mod result;
pub mod seal;
pub mod vmap;
pub mod way;

pub use argument::{Argument, Further, HeldArgument, NoFurther};
pub use closed::Closes;
pub use each::{map_each, try_map_each};
pub use example::{Alone, Example, In, NoTensor, Output, Param, Plain, Spelling};
pub use result::{Finish, Opens};
pub use seal::Sealable;
pub use vmap::{batched, vmap};
