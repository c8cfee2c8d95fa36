//~ words: `f32` is not a tensor | a tensor is expected here
use typed_dims::prelude::*;

dims! {
    struct Time;
    struct Window;
}

fn main() {
    let x = ones::<f32, _>(Time.of(8)).sum(Time).order(());
    x.unfold(Time, Window.of(3), 1, 1);
}
