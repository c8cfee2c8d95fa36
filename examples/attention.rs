//! Variants of attention.
//!
//! ```text
//! cargo run --example attention
//! ```

use typed_dims::prelude::*;

dims! {
    /// Tokens with queries.
    pub struct Token;
    /// Tokens with keys.
    pub struct Key;
    /// Attention heads.
    pub struct Head;
    /// Features that queries and keys are compared by.
    pub struct Feat = 4;
    /// Signed distances from a query to a key, from the farthest left to the farthest right.
    pub struct Distance;
}

type Queries = Tensor<f32, (Token, Head, Feat)>;
type Keys = Tensor<f32, (Key, Head, Feat)>;

const SCALE: f32 = 0.5; // 1 / sqrt(Feat)

/// A token attends to itself and to the tokens before it (A. Vaswani et al., 2017).
fn causal(q: &Queries, k: &Keys, v: &Keys) -> Queries {
    attention(q, k, v, Feat, Key, SCALE, Token.ge(Key))
}

/// A token attends to the last `width` tokens, including itself (I. Beltagy et al., 2020).
fn sliding(q: &Queries, k: &Keys, v: &Keys, width: isize) -> Queries {
    attention(q, k, v, Feat, Key, SCALE, Token.ge(Key) & (Token - Key).lt(width))
}

/// All heads share keys and values (N. Shazeer, 2019): the same line as in `causal`, with tensors
/// that lack `Head`.
fn multi_query(q: &Queries, k: &Tensor<f32, (Key, Feat)>, v: &Tensor<f32, (Key, Feat)>) -> Queries {
    attention(q, k, v, Feat, Key, SCALE, Token.ge(Key))
}

/// Adds a bias for the distance between two tokens, from a table with an entry for each distance
/// and head (C. Raffel et al., 2020).
fn relative(q: &Queries, k: &Keys, v: &Keys, table: &Tensor<f32, (Distance, Head)>) -> Queries {
    let last = k.size(Key) as isize - 1;
    let distance = (Key.of(k.size(Key)) - Token.of(q.size(Token))) + last;
    attention(q, k, v, Feat, Key, SCALE, table.lookup(Distance, distance))
}

/// Each head multiplies the distance by its own slope: 2^(-8/n), 2^(-16/n), .. for n heads (ALiBi:
/// O. Press et al., 2022). Combines a mask and a bias.
fn alibi(q: &Queries, k: &Keys, v: &Keys) -> Queries {
    let heads = q.size(Head);
    let slope = from_fn(Head.of(heads), |h| (-8.0 * (h as f32 + 1.0) / heads as f32).exp2());
    attention(q, k, v, Feat, Key, SCALE, (Token.ge(Key), slope * (Key - Token).cast::<f32>()))
}

fn main() {
    let n = 5;
    let q = from_fn((Token.of(n), Head.of(2), Feat), |(t, h, f)| ((t + 2 * h + 3 * f) as f32).sin());
    let k = from_fn((Key.of(n), Head.of(2), Feat), |(t, h, f)| ((2 * t + h + f) as f32).cos());
    let v = from_fn((Key.of(n), Head.of(2), Feat), |(t, _, _)| t as f32);
    let table = from_fn((Distance.of(2 * n - 1), Head.of(2)), |(d, h)| -((d as f32 - 4.0) * h as f32).abs());
    let shared = ((&k).index(Head, 0).eval(), (&v).index(Head, 0).eval());
    println!("where each token looks on average, for two heads");
    for (name, out) in [
        ("causal", causal(&q, &k, &v)),
        ("sliding, 2 wide", sliding(&q, &k, &v, 2)),
        ("multi-query", multi_query(&q, &shared.0, &shared.1)),
        ("relative", relative(&q, &k, &v, &table)),
        ("alibi", alibi(&q, &k, &v)),
    ] {
        println!("\n{name}\n{:.2}", out.index(Feat, 0).order((Head, Token)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Score<'a> = &'a dyn Fn(usize, usize, usize, f32) -> f32;

    /// Computes attention by loops. `score` takes a head, a token, a key, and the scaled product of
    /// query and key.
    fn by_loops(q: &Queries, k: &Keys, v: &Keys, score: Score<'_>) -> Vec<f32> {
        let (q, k, v) =
            (q.order((Token, Head, Feat)), k.order((Key, Head, Feat)), v.order((Key, Head, Feat)));
        let mut out = Vec::new();
        for t in 0..q.dim().0 {
            for h in 0..q.dim().1 {
                let dot = |key: usize| (0..Feat::SIZE).map(|f| q[[t, h, f]] * k[[key, h, f]]).sum::<f32>();
                let weights: Vec<f32> =
                    (0..k.dim().0).map(|key| score(h, t, key, 0.5 * dot(key)).exp()).collect();
                let total: f32 = weights.iter().sum();
                for f in 0..Feat::SIZE {
                    out.push(weights.iter().enumerate().map(|(key, w)| w / total * v[[key, h, f]]).sum());
                }
            }
        }
        out
    }

    #[test]
    fn all_kinds_are_what_loops_compute() {
        let n = 6;
        let q = from_fn((Token.of(n), Head.of(3), Feat), |(t, h, f)| ((t + 2 * h + 3 * f) as f32).sin());
        let one = from_fn((Key.of(n), Feat), |(t, f)| ((5 * t + f) as f32).sin());
        let k = from_fn((Key.of(n), Head.of(3), Feat), |(t, h, f)| ((2 * t + h + f) as f32).cos());
        let v = from_fn((Key.of(n), Head.of(3), Feat), |(t, h, f)| ((t * t + h * f) as f32).cos());
        let table = from_fn((Distance.of(2 * n - 1), Head.of(3)), |(d, h)| ((d * 3 + h) as f32).sin());
        let entries = (&table).order((Distance, Head));
        let no = f32::NEG_INFINITY;
        let everywhere = from_fn((Key.of(n), Head.of(3), Feat), |(t, _, f)| ((5 * t + f) as f32).sin());
        let before = |_, t, key, score| if t >= key { score } else { no };
        for (found, expected) in [
            (causal(&q, &k, &v), by_loops(&q, &k, &v, &before)),
            (
                sliding(&q, &k, &v, 3),
                by_loops(&q, &k, &v, &|_, t, key, score| if t >= key && t < key + 3 { score } else { no }),
            ),
            (multi_query(&q, &one, &one), by_loops(&q, &everywhere, &everywhere, &before)),
            (
                relative(&q, &k, &v, &table),
                by_loops(&q, &k, &v, &|h, t, key, score| score + entries[[key + n - 1 - t, h]]),
            ),
            (
                alibi(&q, &k, &v),
                by_loops(&q, &k, &v, &|h, t, key, score| {
                    let slope = [-8.0 / 3.0, -16.0 / 3.0, -8.0][h];
                    if t >= key { score - f32::exp2(slope) * (t - key) as f32 } else { no }
                }),
            ),
        ] {
            for (found, expected) in found.order((Token, Head, Feat)).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
            }
        }
    }
}
