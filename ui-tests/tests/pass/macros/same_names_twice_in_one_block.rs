use typed_dims::prelude::*;

#[test]
fn compiles_and_runs() {
    let a = Array2::<f32>::ones((2, 3));
    dims!(i, j);
    let first = a.at((i, j)).sum(j).order(i);
    dims!(i, j);
    let second = a.at((j, i)).sum(j).order(i);
    assert_eq!((first.len(), second.len()), (2, 3));
}
