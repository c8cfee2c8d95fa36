use typed_dims::prelude::*;

const SIDE: usize = 8;

dims! {
    /// Examples in a mini-batch.
    pub struct Batch;
    #[allow(dead_code)]
    pub(crate) struct Heads = 12;
    struct Pixel = SIDE * SIDE;
    struct Big = 100_000;
    struct Empty = 0;
    struct One = 1usize;
}

mod inner {
    typed_dims::dims! {
        pub struct Batch;
    }
}

#[test]
fn compiles_and_runs() {
    assert_eq!((Heads::SIZE, Pixel::SIZE, Big::SIZE, Empty::SIZE, One::SIZE), (12, 64, 100_000, 0, 1));
    let x = ones::<f32, _>((Batch.of(2), inner::Batch.of(3)));
    assert_eq!(x.sum(Batch).size(inner::Batch), 3);
}
