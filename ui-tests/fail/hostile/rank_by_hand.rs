//~ words: missing: `SEAL` | impl Rank for Liar
use typed_dims::types::rank::{Rank, Rank1, Rank2};

/// A number of positional axes that differs from the claimed one.
#[derive(Clone, Copy, Debug, Default)]
struct Liar;

impl Rank for Liar {
    const N: usize = 1;
    type Succ = Rank2;
    type Pred = Rank1;
    type Axes = <Rank2 as Rank>::Axes;
    type Nd = <Rank1 as Rank>::Nd;
    type IsNone = <Rank1 as Rank>::IsNone;
    type Plus<O: Rank> = O;
    type Max<O: Rank> = O;
    type TakenFrom<O: Rank> = O;
}

fn main() {}
