//~ words: cannot be united | needs a comma
use typed_dims::nn::Conv;
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Made;
    struct Kh = 3;
    struct Kw = 3;
}

struct Network {
    conv: Conv<Channel, (Made,), (Kh, Kw)>,
}

fn main() {}
