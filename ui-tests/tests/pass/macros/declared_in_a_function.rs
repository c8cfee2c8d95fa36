#[test]
fn compiles_and_runs() {
    use typed_dims::prelude::*;
    dims! {
        struct Row;
        struct Column = 3;
    }
    let x = zeros::<f64, _>((Row.of(2), Column));
    assert_eq!(x.order((Column, Row)).shape(), [3, 2]);
}
