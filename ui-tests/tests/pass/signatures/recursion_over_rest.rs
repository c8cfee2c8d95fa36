use typed_dims::prelude::*;

fn power<B: Dims>(a: &Tensor<f32, (Rest<B>,), U2>, n: u32) -> Tensor<f32, (Rest<B>,), U2> {
    dims!(i, j, k);
    if n <= 1 {
        return a.at((i, j)).order((i, j));
    }
    let half = power(a, n / 2);
    let square = (half.at((i, k)) * half.at((k, j))).sum(k).order((i, j));
    if n.is_multiple_of(2) {
        return square;
    }
    dims!(i, j, k);
    (square.at((i, k)) * a.at((k, j))).sum(k).order((i, j))
}

#[test]
fn compiles_and_runs() {
    let _ = power::<()>;
}
