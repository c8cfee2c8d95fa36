use typed_dims::prelude::*;

#[test]
fn compiles_and_runs() {
    let n = 3;
    dims!(n = n, m = n.size() + 1,);
    assert_eq!((n.size(), m.size()), (3, 4));
    dims!();
}
