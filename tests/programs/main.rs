//! Programs written for a single example, run with two extra dims. Each must equal a loop of
//! single calls, and a contraction for one example must be a single contraction for all examples.

mod cases;
mod fallback;
mod suite;

use typed_dims::ndarray::Axis;
use typed_dims::pipeline::plan::explain::{Plan, PlanStep, explain};

/// The number of examples along each of the two extra dims.
const EXAMPLES: (usize, usize) = (3, 2);

/// Checks that the program equals a loop of single calls. Returns the plans for all examples in one
/// call, and for one example.
fn equals_a_loop(name: &str) -> (Plan, Plan) {
    let case = cases::all(EXAMPLES.0, EXAMPLES.1).into_iter().find(|case| case.name() == name).unwrap();
    let (batched, plan) = explain(|| case.batched());
    for n in 0..EXAMPLES.0 {
        for m in 0..EXAMPLES.1 {
            let single = case.single(n, m);
            assert_eq!(batched.len(), single.len());
            for (batched, single) in batched.iter().zip(single) {
                let batched = batched.index_axis(Axis(0), n);
                let batched = batched.index_axis(Axis(0), m);
                assert_eq!(batched.shape(), single.shape());
                for (x, y) in batched.iter().zip(&single) {
                    assert!(
                        (x - y).abs() < 1e-5 * x.abs().max(y.abs()).max(1.0),
                        "{name}: {x} instead of {y}"
                    );
                }
            }
        }
    }
    (plan, explain(|| case.single(0, 0)).1)
}

/// The products in a plan: the number of matrices, rows, summed elements and columns.
fn products(plan: &Plan) -> Vec<[usize; 4]> {
    let product = |step: &PlanStep| match *step {
        PlanStep::Product { batch, m, k, n, .. } => Some([batch, m, k, n]),
        _ => None,
    };
    plan.steps.iter().filter_map(product).collect()
}

/// The number of sums over products that are not matrix products: of a vector and a matrix, or of
/// two vectors.
fn sums(plan: &Plan) -> usize {
    let sum = |step: &&PlanStep| matches!(step, PlanStep::Reduce { reduction: "sum", expression, .. } if expression.starts_with("mul("));
    plan.steps.iter().filter(sum).count()
}

#[test]
fn mm() {
    let (plan, one) = equals_a_loop("mm");
    assert_eq!(products(&one), [[1, 12, 20, 16]]);
    assert_eq!(products(&plan), [[6, 12, 20, 16]], "{plan}");
    assert_eq!(plan.steps.len(), 1, "{plan}");
}

#[test]
fn attention() {
    let (plan, one) = equals_a_loop("attention");
    assert_eq!(products(&one), [[1, 12, 8, 10], [1, 12, 10, 8]]);
    assert_eq!(products(&plan), [[6, 12, 8, 10], [6, 12, 10, 8]], "{plan}");
    assert_eq!(plan.steps.len(), one.steps.len(), "{plan}");
}

/// The weights are shared, so the examples become rows: each layer has one matrix product, instead
/// of a matrix-vector product for each example.
#[test]
fn mlp() {
    let (plan, one) = equals_a_loop("mlp");
    assert_eq!(sums(&one), 3);
    assert_eq!(products(&plan), [[1, 6, 16, 32], [1, 6, 32, 24], [1, 6, 24, 10]], "{plan}");
    assert_eq!(plan.steps.len(), one.steps.len(), "{plan}");
}

#[test]
fn conv_block() {
    let (plan, one) = equals_a_loop("conv block");
    let ([single], [batched]) = (&products(&one)[..], &products(&plan)[..]) else { panic!("{plan}") };
    // The examples are a batch of products, or rows of one product, whichever is faster.
    let rows = |[batch, rows, sum, columns]: [usize; 4]| [batch * rows, sum, columns];
    let [all, sum, columns] = rows(*single);
    assert_eq!([6 * all, sum, columns], rows(*batched), "{plan}");
    assert_eq!(plan.steps.len(), one.steps.len(), "{plan}");
}

/// Each time step has two products, with the examples as rows. The states of a batch are stacked in
/// the layout that they have, without another copy.
#[test]
fn rnn() {
    let (plan, one) = equals_a_loop("rnn");
    assert_eq!(sums(&one), 2 * 6);
    assert_eq!(products(&plan), [[1, 6, 24, 24], [1, 6, 16, 24]].repeat(6), "{plan}");
    assert_eq!(plan.steps.len(), one.steps.len(), "{plan}");
}

/// New centers are products of memberships and points; distances are not products.
#[test]
fn k_means() {
    let (plan, one) = equals_a_loop("k-means");
    assert_eq!(products(&one), [[1, 4, 40, 3]; 4]);
    assert_eq!(products(&plan), [[6, 4, 40, 3]; 4], "{plan}");
    assert_eq!(plan.steps.len(), one.steps.len(), "{plan}");
}

/// There are as many contractions for all examples as for one. Only copies may be added, if the
/// examples have another layout.
#[test]
fn kalman() {
    let (plan, one) = equals_a_loop("kalman");
    assert_eq!(products(&plan).len() + sums(&plan), products(&one).len() + sums(&one), "{plan}");
    let copies = |plan: &Plan| plan.steps.iter().filter(|step| matches!(step, PlanStep::Copy { .. })).count();
    assert_eq!(plan.steps.len() - copies(&plan), one.steps.len() - copies(&one), "{plan}");
}
