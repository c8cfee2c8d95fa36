use typed_dims::prelude::*;
use typed_dims::types::scalar::Num;

fn transposed<T: Num>(a: &Array2<T>) -> Array2<T> {
    dims!(i, j);
    a.at((i, j)).order((j, i))
}

#[test]
fn compiles_and_runs() {
    let shape = (2, 3);
    assert_eq!(transposed(&Array2::<f32>::ones(shape)).shape(), [3, 2]);
    assert_eq!(transposed(&Array2::<i64>::ones(shape)).shape(), [3, 2]);
}
