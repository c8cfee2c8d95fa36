use typed_dims::prelude::*;

macro_rules! bound {
    ($array:ident, $name:ident) => {
        dims!(i);
        let ($array, $name) = ($array.at(i), i);
    };
}

#[test]
fn compiles_and_runs() {
    let (a, b) = (Array1::<f32>::ones(3), Array1::<f32>::ones(4));
    bound!(a, first);
    bound!(b, second);
    assert_eq!((a * b).order((first, second)).shape(), [3, 4]);
}
