//~ words: usize | isize | as isize
use typed_dims::prelude::*;

fn distances(n: usize) {
    dims!(i = n, j = n);
    let _ = (i - j) + n;
}

fn main() {
    let _ = distances;
}
