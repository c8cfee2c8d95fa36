use typed_dims::prelude::*;

#[test]
fn compiles_and_runs() {
    dims!(i, j, k);
    let a = Array3::<f32>::ones((2, 3, 4));
    let x = a.at((i, j, k));
    let _: Array3<f32> = x.order((k, j, i));
    let _: Array2<f32> = x.order((k, (j, i)));
    let _: f32 = x.sum((i, j, k)).order(());
    let y = x.order(j);
    let _: Array3<f32> = y.at(j).order((i, j, k));
}
