use typed_dims::prelude::*;

#[test]
fn compiles_and_runs() {
    let total = |a: &Array1<f32>| {
        dims!(i);
        a.at(i).sum(i).order(())
    };
    assert_eq!(total(&Array1::ones(3)), 3.0);
    assert_eq!(total(&Array1::ones(4)), 4.0);
}
