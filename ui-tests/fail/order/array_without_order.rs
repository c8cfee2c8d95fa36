//~ words: expected `ArrayBase | Named<f32, (row<'_>,)>
use typed_dims::prelude::*;

fn totals(a: &Array2<f32>) -> Array1<f32> {
    dims!(row, col);
    a.at((row, col)).sum(col)
}

fn main() {}
