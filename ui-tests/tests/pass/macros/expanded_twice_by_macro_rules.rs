use typed_dims::prelude::*;

macro_rules! total {
    ($array:expr) => {{
        dims!(i);
        $array.at(i).sum(i).order(())
    }};
}

macro_rules! outer {
    ($a:expr, $i:ident, $b:expr, $j:ident) => {
        dims!($i, $j);
        let outer = ($a.at($i) * $b.at($j)).order(($i, $j));
        assert_eq!(outer.shape(), [$a.len(), $b.len()]);
    };
}

#[test]
fn compiles_and_runs() {
    let (a, b) = (Array1::<f32>::ones(3), Array1::<f32>::ones(4));
    assert_eq!(total!(a) + total!(b), 7.0);
    outer!(a, i, b, j);
    outer!(b, i, a, j);
}
