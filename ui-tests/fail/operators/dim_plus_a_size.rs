//~ words: usize | isize | as isize
use typed_dims::prelude::*;

fn shifted(n: usize) {
    dims!(i = n);
    let _ = i + n;
}

fn main() {
    let _ = shifted;
}
