//! Programs return the same bits as their functions, for different orders of axes in memory.

#[path = "../support/bits.rs"]
pub mod support;

use support::assert_same;
use typed_dims::grad::{grad, hvp, jvp, loss_and_grad, loss_and_grad_with};
use typed_dims::nn::BatchNorm;
use typed_dims::prelude::*;
use typed_dims::program::record;

dims! {
    struct Row;
    struct Col;
    struct Col2;
    struct Token;
    struct Key;
    struct Head;
    struct Feat;
}

type Matrix = Tensor<f32, (Row, Col)>;

fn by_rows(seed: u64) -> Matrix {
    randn((Row.of(40), Col.of(70)), seed)
}

fn by_columns(seed: u64) -> Matrix {
    by_rows(seed).order((Col, Row)).into_tensor((Col, Row))
}

/// Records a function with the first input. The program must return the function's bits for both
/// inputs.
#[track_caller]
fn check<A: Parameters, Y: Parameters>(f: impl Fn(&A) -> Y, [first, other]: [A; 2]) {
    let program = record(|x: &A| f(x), &first).expect("the function can be recorded");
    let loaded = crate::reloaded(&program, &f(&first));
    for program in [&program, &loaded] {
        assert_same(&program.call(&first), &f(&first));
        assert_same(&program.call(&other), &f(&other));
    }
}

/// Checks functions of a matrix, and their gradients. The dims of each result are in brackets. The
/// gradients are those of the sum of the result's `tanh` over these dims.
macro_rules! same_bits {
    ($([$($dim:ident),*] $f:expr;)*) => {$(
        let f = |x: &Matrix| ($f)(x);
        let slope = |x: &Matrix| loss_and_grad(|x: &Matrix| f(x).tanh().sum(($($dim,)*)), x);
        for inputs in [by_rows as fn(u64) -> Matrix, by_columns] {
            check(f, [1, 2].map(inputs));
            check(slope, [1, 2].map(inputs));
        }
    )*};
}

#[test]
fn reductions() {
    same_bits! {
        [Row] |x: &Matrix| x.sum(Col);
        [Col] |x: &Matrix| x.mean(Row);
        [] |x: &Matrix| x.mean((Row, Col));
        [] |x: &Matrix| x.exp().mean((Row, Col));
        [Row] |x: &Matrix| x.view().slice(Col, 3..67).mean(Col);
        [Row] |x: &Matrix| x.var(Col);
        [] |x: &Matrix| x.var((Row, Col));
        [Col] |x: &Matrix| x.std(Row);
        [] |x: &Matrix| x.norm((Row, Col));
        [Col] |x: &Matrix| x.exp().norm(Row);
        [Row] |x: &Matrix| x.max(Col);
        [Row] |x: &Matrix| x.logsumexp(Col);
        [] |x: &Matrix| x.logsumexp((Row, Col));
        [Col] |x: &Matrix| x.cast::<half::f16>().mean(Row).cast::<f32>().eval();
        [] |x: &Matrix| x.cast::<half::bf16>().eval().sum((Row, Col)).cast::<f32>().eval();
        [] |x: &Matrix| x.cast::<f64>().eval().mean((Row, Col)).cast::<f32>().eval();
    }
}

/// The values of each call decide how the gradient of a product is computed.
#[test]
fn products() {
    same_bits! {
        [Row] |x: &Matrix| (x * 0.1 + 1.0).prod(Col);
        [] |x: &Matrix| (x * 0.01 + 1.0).eval().prod((Row, Col));
        [Row] |x: &Matrix| (x * 0.1).prod(Col);
        [Row] |x: &Matrix| (x * x.gt(-1.5).cast::<f32>()).prod(Col);
    }
    let near_one = |seed| (by_rows(seed) * 0.1 + 1.0).eval();
    let slope = |x: &Matrix| grad(|x: &Matrix| x.prod(Col).sum(Row), x);
    check(slope, [near_one(1), by_rows(2).relu().eval()]);
    check(slope, [by_rows(2).relu().eval(), near_one(1)]);
}

#[test]
fn lines_and_norms() {
    same_bits! {
        [Row, Col] |x: &Matrix| x.softmax(Col);
        [Row, Col] |x: &Matrix| x.softmax(Row);
        [Row, Col] |x: &Matrix| x.log_softmax(Col);
        [Row] |x: &Matrix| x.cross_entropy(Col, x.argmax(Col)).eval();
        [Row, Col] |x: &Matrix| x.layer_norm(Col, 1e-5);
        [Row, Col] |x: &Matrix| x.layer_norm(Row, 1e-5);
        [Row, Col] |x: &Matrix| x.rms_norm(Col, 1e-5);
        [Row, Col] |x: &Matrix| x.normalize(Col, 1e-5);
        [Row, Col] |x: &Matrix| x.batch_norm(Row, 1e-5).output;
        [Col] |x: &Matrix| x.batch_norm(Row, 1e-5).mean;
        [Col] |x: &Matrix| x.batch_norm(Row, 1e-5).var;
        [Row, Col] |x: &Matrix| x.cumsum(Row);
        [Row, Col] |x: &Matrix| (x * 0.1 + 1.0).cumprod(Col);
        [Row, Col] |x: &Matrix| x.logcumsumexp(Row);
    }
}

#[test]
fn norms_with_gain_and_bias() {
    let (gain, bias): (Tensor<f32, (Col,)>, Tensor<f32, (Col,)>) =
        (randn(Col.of(70), 3), randn(Col.of(70), 4));
    let by_row: Tensor<f32, (Row,)> = randn(Row.of(40), 5);
    for inputs in [by_rows as fn(u64) -> Matrix, by_columns] {
        check(|x: &Matrix| x.layer_norm_affine(Col, 1e-5, &gain, &bias), [1, 2].map(inputs));
        check(|x: &Matrix| x.layer_norm_affine(Row, 1e-5, &by_row, 0.3_f32), [1, 2].map(inputs));
    }
}

/// `f16` has no number above 65504. A function computes with greater numbers in a matrix product
/// and in some products of three tensors, but not in the product of two vectors.
#[test]
fn products_in_half_precision() {
    use half::f16;
    type Line = Tensor<f16, (Col,)>;
    let line = |numbers: [f32; 2]| -> Line { from_vec(Col.of(2), numbers.map(f16::from_f32).to_vec()) };
    let (x, y) = (line([300.0, -300.0]), line([300.0, 300.0]));
    let dot = |(x, y): &(Line, Line)| (x * y).sum(Col);
    check(dot, [(x.clone(), y.clone()), (line([1.5, 0.1]), line([0.3, 7.0]))]);
    assert!((&x * &y).sum(Col).order(()).is_nan());
    let (rows, columns) = (stack(Row, [&x, &x]), stack(Col2, [&y, &y]));
    assert_eq!((&rows * columns).sum(Col), zeros::<f16, _>((Row.of(2), Col2.of(2))));

    let by_vector = |(rows, y): &(Tensor<f16, (Row, Col)>, Line)| (rows * y).sum(Col);
    check(by_vector, [(rows.clone(), y.clone()), (rows.clone(), line([0.3, 7.0]))]);
    assert!(by_vector(&(rows.clone(), y.clone())).order(Row)[0].is_nan());
    let of_three = |(rows, y, z): &(Tensor<f16, (Row, Col)>, Line, Line)| (rows * y * z).sum(Col);
    let inputs = (rows, y, line([0.001, 0.001]));
    assert_eq!(of_three(&inputs), zeros::<f16, _>(Row.of(2)));
    let program = record(of_three, &inputs).expect("the function can be recorded");
    assert!(program.call(&inputs).order(Row)[0].is_nan());
}

#[test]
fn contractions_and_derivatives_of_derivatives() {
    same_bits! {
        [Col, Col2] |x: &Matrix| -> Tensor<f32, (Col, Col2)> { (x * x.rename(Col, Col2)).sum(Row) };
        [Row, Col2] |x: &Matrix| -> Tensor<f32, (Row, Col2)> { (x.tanh() * x.rename(Row, Col2).exp()).sum(Col) };
        [Row] |x: &Matrix| ((x * x).sum(Col) + 1.0).eval();
        [Row, Col] |x: &Matrix| grad(|x: &Matrix| x.softmax(Col).square().sum((Row, Col)), x);
        [Row, Col] |x: &Matrix| jvp(|x: &Matrix| x.softmax(Col), x, x).1;
        [Row, Col] |x: &Matrix| hvp(|x: &Matrix| x.layer_norm(Col, 1e-3).tanh().sum((Row, Col)), x, x);
    }
}

#[test]
fn attention_with_masks() {
    type Heads = Tensor<f32, (Token, Head, Feat)>;
    for tokens in [5, 70, 300] {
        let by_token = |seed| -> Heads { randn((Token.of(tokens), Head.of(2), Feat.of(8)), seed) };
        let by_head =
            |seed| -> Heads { by_token(seed).order((Head, Feat, Token)).into_tensor((Head, Feat, Token)) };
        let plain = |x: &Heads| -> Heads {
            attention(x, x.rename(Token, Key), x.rename(Token, Key), Feat, Key, 0.3, true)
        };
        let causal = |x: &Heads| -> Heads {
            attention(
                x.tanh(),
                x.exp().rename(Token, Key),
                x.rename(Token, Key),
                Feat,
                Key,
                0.3,
                Key.le(Token),
            )
        };
        let of_values = |x: &Heads| -> Heads {
            let mask = x.view().index(Feat, 0).index(Head, 0).gt(0.0).rename(Token, Key).eval();
            attention(x, x.rename(Token, Key), x.rename(Token, Key), Feat, Key, 0.3, &mask)
        };
        for f in [&plain as &dyn Fn(&Heads) -> Heads, &causal, &of_values] {
            check(f, [1, 2].map(by_token));
            check(f, [1, 2].map(by_head));
            if tokens == 5 {
                let slope = |x: &Heads| loss_and_grad(|x: &Heads| f(x).tanh().sum((Token, Head, Feat)), x);
                check(slope, [1, 2].map(by_token));
            }
        }
    }
}

/// The loss function returns the moments of the batch together with the loss.
#[test]
fn a_norm_updates_moments_next_to_the_loss() {
    type Norm = BatchNorm<(Col,)>;
    let step = |(norm, x): &(Norm, Matrix)| {
        let (loss, gradient, moments) = loss_and_grad_with(
            |norm: &Norm| {
                let (y, moments) = norm.train(x, Row);
                ((y - 1.0).square().mean((Row, Col)), moments)
            },
            norm,
        );
        let mut norm = norm.clone();
        norm.remember(&moments);
        (loss, gradient, norm)
    };
    let norm = Norm::new(Col.of(70));
    let next = step(&(norm.clone(), by_rows(3))).2;
    check(step, [(norm, by_rows(1)), (next, by_columns(2))]);
}
