//! The order in which the operands of a product are multiplied pair by pair.
//!
//! The first candidate is a greedy path, as in opt_einsum. If it is costly enough and there are few
//! operands, the cheapest of all paths is found by dynamic programming over sets of operands
//! (Pfeifer, Haegeman, Verstraete: Faster identification of optimal contraction sequences for
//! tensor networks, 2014; without their bounds).

use super::Supports;
use crate::loops::axes::{AxisSet, set, volume};
use alloc::vec::Vec;
use num_traits::Float;
use smallvec::SmallVec;

/// A pair of a path. The numbers are the positions of both operands, the lesser one first, in the
/// list of remaining operands. The operands are removed from that list, and their product is
/// appended. The set is the axes of the product.
pub type ContractionPair = (usize, usize, AxisSet);

/// The pairs in order.
pub type ContractionPath = SmallVec<[ContractionPair; 4]>;

/// For more operands than this, the cheapest path is not searched for: the subsets of `n` operands
/// have about `3^n / 2` splits into two parts.
const MOST: usize = 10;

/// The cost of trying one split, in multiplications.
const CUT: f64 = 500.0;

/// The path for operands that vary along the axes `sets`, to a product with the axes `kept`.
pub fn path(sets: &[AxisSet], sizes: &[usize], kept: &[usize]) -> ContractionPath {
    let result = set(kept);
    let (greedy, flops) = greedy(sets.into(), sizes, result);
    let n = sets.len();
    if n <= 2 || n > MOST || flops < CUT * Float::powi(3.0, n as i32) / 2.0 {
        return greedy;
    }
    match cheapest_tree(sets, sizes, result) {
        Some((tree, least)) if least < flops => flatten(&tree, sets, result),
        _ => greedy,
    }
}

/// The greedy path and its number of multiplications.
fn greedy(mut sets: Supports, sizes: &[usize], result: AxisSet) -> (ContractionPath, f64) {
    let mut path = ContractionPath::new();
    let mut flops = 0.0;
    while sets.len() > 1 {
        let (i, j) = if sets.len() > 2 { cheapest(&sets, sizes, result) } else { (0, 1) };
        let both = sets.remove(j) | sets.remove(i);
        let product = both & sets.iter().fold(result, |axes, others| axes | others);
        flops += volume(both, sizes);
        sets.push(product);
        path.push((i, j, product));
    }
    (path, flops)
}

/// The greedy choice: the pair for which the size of the product, minus the sizes of the operands
/// that it replaces, is least; of several such pairs, the one with the fewest multiplications.
fn cheapest(sets: &[AxisSet], sizes: &[usize], result: AxisSet) -> (usize, usize) {
    let volumes: SmallVec<[f64; 8]> = sets.iter().map(|&axes| volume(axes, sizes)).collect();
    let mut best = (f64::INFINITY, f64::INFINITY, (0, 1));
    for j in 1..sets.len() {
        for i in 0..j {
            let apart = sets.iter().enumerate().filter(|&(at, _)| at != i && at != j);
            let others = apart.fold(result, |axes, (_, other)| axes | other);
            let both = sets[i] | sets[j];
            let saved = volume(both & others, sizes) - volumes[i] - volumes[j];
            let flops = volume(both, sizes);
            if (saved, flops) < (best.0, best.1) {
                best = (saved, flops, (i, j));
            }
        }
    }
    best.2
}

/// For each set of operands, as bits, one of the two parts that are multiplied last.
type Tree = Vec<usize>;

/// The path with the fewest multiplications, and their number. `None` if the number is not finite.
fn cheapest_tree(sets: &[AxisSet], sizes: &[usize], result: AxisSet) -> Option<(Tree, f64)> {
    let all = (1usize << sets.len()) - 1;
    let mut axes = vec![0; all + 1];
    let mut cost = vec![0.0; all + 1];
    let mut tree = vec![0; all + 1];
    for operands in 1..=all {
        axes[operands] = axes_of(operands, sets, result);
        if operands.is_power_of_two() {
            continue;
        }
        let mut least = f64::INFINITY;
        // Each split is tried once: `a` is the part with the first operand.
        let first = operands & operands.wrapping_neg();
        let rest = operands ^ first;
        let mut part = rest;
        while part != 0 {
            part = (part - 1) & rest;
            let (a, b) = (first | part, operands ^ (first | part));
            let inner = cost[a] + cost[b];
            if inner < least {
                let total = inner + volume(axes[a] | axes[b], sizes);
                if total < least {
                    (least, tree[operands]) = (total, a);
                }
            }
        }
        cost[operands] = least;
    }
    cost[all].is_finite().then(|| (tree, cost[all]))
}

/// The axes of the product of some operands: those of their axes that the result or another operand
/// has.
fn axes_of(operands: usize, sets: &[AxisSet], result: AxisSet) -> AxisSet {
    let (mut own, mut others) = (0, result);
    for (at, axes) in sets.iter().enumerate() {
        *(if operands >> at & 1 == 1 { &mut own } else { &mut others }) |= axes;
    }
    own & others
}

/// The pairs of a tree, each after the pairs that compute its operands.
fn flatten(tree: &[usize], sets: &[AxisSet], result: AxisSet) -> ContractionPath {
    let mut left: Vec<usize> = (0..sets.len()).map(|at| 1 << at).collect();
    let mut pairs = ContractionPath::new();
    emit(tree, tree.len() - 1, &mut |a, b| {
        let place = |part| left.iter().position(|&own| own == part).expect("a part was made before");
        let (i, j) = (place(a).min(place(b)), place(a).max(place(b)));
        left.remove(j);
        left.remove(i);
        left.push(a | b);
        pairs.push((i, j, axes_of(a | b, sets, result)));
    });
    pairs
}

fn emit(tree: &[usize], operands: usize, pair: &mut impl FnMut(usize, usize)) {
    if operands.is_power_of_two() {
        return;
    }
    let (a, b) = (tree[operands], operands ^ tree[operands]);
    emit(tree, a, pair);
    emit(tree, b, pair);
    pair(a, b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::axes::each;

    fn flops(path: &ContractionPath, sets: &[AxisSet], sizes: &[usize]) -> f64 {
        let mut sets = sets.to_vec();
        path.iter()
            .map(|&(i, j, product)| {
                let both = sets.remove(j) | sets.remove(i);
                sets.push(product);
                volume(both, sizes)
            })
            .sum()
    }

    /// The fewest multiplications of all paths, by trying each.
    fn least(sets: &[AxisSet], sizes: &[usize], result: AxisSet) -> f64 {
        if sets.len() < 2 {
            return 0.0;
        }
        let mut best = f64::INFINITY;
        for j in 1..sets.len() {
            for i in 0..j {
                let mut others = sets.to_vec();
                let both = others.remove(j) | others.remove(i);
                others.push(both & others.iter().fold(result, |axes, other| axes | other));
                best = best.min(volume(both, sizes) + least(&others, sizes, result));
            }
        }
        best
    }

    proptest::proptest! {
        #[test]
        fn the_path_of_few_large_operands_is_the_cheapest(
            sets in proptest::collection::vec(1u128..64, 2..6),
            sizes in proptest::collection::vec(20usize..60, 6),
            kept in 0u128..64,
        ) {
            // Axes that only one operand has, and not the result, are summed before any product.
            let sets: Vec<AxisSet> = (0..sets.len()).map(|at| axes_of(1 << at, &sets, kept)).collect();
            let present = sets.iter().fold(0, |all, axes| all | axes);
            let order: Vec<usize> = each(kept & present).collect();
            let found = path(&sets, &sizes, &order);
            let (greedy, cost) = greedy(sets.as_slice().into(), &sizes, kept & present);
            proptest::prop_assert!(flops(&found, &sets, &sizes) <= cost);
            proptest::prop_assert_eq!(found.len(), greedy.len());
            if cost >= CUT * 3f64.powi(sets.len() as i32) / 2.0 {
                let best = least(&sets, &sizes, kept & present);
                proptest::prop_assert!(flops(&found, &sets, &sizes) <= best * 1.000_001);
            }
        }
    }
}
