use typed_dims::prelude::*;

#[test]
fn compiles_and_runs() {
    dims!(i, j, k, h = 2, w);
    let a = Array3::<f32>::ones((2, 3, 4));
    let _ = a.at((i, .., 0));
    let _ = a.at((i, Ellipsis));
    let _ = a.at((Ellipsis, k));
    let _ = a.at((0, j, 1..3));
    let _ = a.at((-1, j, (h, w)));
    dims!(i);
    assert_eq!(Array2::<f32>::eye(3).at((i, i)).sum(i).order(()), 3.0);
    dims!(i, j);
    let ids = [0usize, 2];
    let picked: Array2<f32> = a.at((0, ids.at(i), j)).order((i, j));
    assert_eq!(picked.shape(), [2, 4]);
    dims!(i, j);
    assert_eq!([[1.0, 2.0], [3.0, 4.0]].at((i, j)).sum((i, j)).order(()), 10.0);
}
