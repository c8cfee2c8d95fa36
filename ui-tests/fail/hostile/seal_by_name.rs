//~ words: could not find `seal`
use typed_dims::types::set::{Dims, Keys};

struct Liar;

impl Dims for Liar {
    const SEAL: typed_dims::seal::Seal = <() as Dims>::SEAL;
    type List = <() as Dims>::List;
    type Axes = <() as Dims>::Axes;
    type Sealed<B: Dims> = ();
    const KEYS: &'static Keys = <() as Dims>::KEYS;
}

fn main() {}
