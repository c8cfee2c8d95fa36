use typed_dims::prelude::*;

#[test]
fn compiles_and_runs() {
    let mut total = 0.0;
    for n in 1..4 {
        dims!(i);
        let a = Array1::<f32>::ones(n);
        total += a.at(i).sum(i).order(());
    }
    assert_eq!(total, 6.0);
}
