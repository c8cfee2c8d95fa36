//! The cases. Each adds its inputs and its peers to a [`Bench`]. typed-dims comes first. The last
//! peer is the reference, whose result the others must match.

mod attention;
mod chains;
mod conv;
mod elementwise;
mod layout;
mod lookup;
mod products;
mod reductions;
mod steps;
mod tiny;

use crate::bench::{Bench, Peer};
use crate::probe::{self, Bound, Limits};
use crate::rotation::Turn;

/// A computation that every peer performs.
pub struct Case {
    pub name: &'static str,
    pub formula: &'static str,
    /// Additions and multiplications in contractions and distances; 0 if they are not counted.
    pub flops: f64,
    /// Bytes of the inputs that are read; 0 if the case is not compared with the machine's limits.
    pub read: f64,
    /// The number of times that each of these bytes is read on average.
    pub times: f64,
    /// Bytes of the result.
    pub written: f64,
    pub double: bool,
    pub setup: fn(&mut Bench),
}

impl Case {
    /// Sets up the case. If `keep`, results are kept until the next call of their peer.
    pub fn bench(&self, threads: usize, keep: bool) -> Bench {
        let seed =
            self.name.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let mut bench = Bench::new(threads, seed);
        bench.keep = keep;
        (self.setup)(&mut bench);
        bench
    }

    /// How many copies of the arrays it takes to evict each copy from the caches before its next
    /// use; 1 if `read` is 0.
    pub fn copies_beyond_caches(&self) -> usize {
        const BYTES: f64 = (1 << 30) as f64;
        if self.read > 0.0 { (BYTES / (self.read + self.written)).ceil() as usize } else { 1 }
    }

    /// Peers that probe the memory traffic of the case. Empty if `read` is 0.
    pub fn memory(&self, threads: usize, copies: usize, turn: &Turn) -> Vec<Peer> {
        if self.read > 0.0 {
            probe::memory(threads, self.read, self.written, copies, turn).into()
        } else {
            Vec::new()
        }
    }

    /// The share of a call's time that the limits account for. `memory` is the time to read and
    /// write each byte once, divided by the call's time.
    pub fn of_limit(&self, limits: &Limits, seconds: f64, memory: f64) -> (f64, Bound) {
        let arithmetic = limits.seconds(self.flops, self.double) / seconds;
        let memory = memory * self.times;
        if arithmetic > memory { (arithmetic, Bound::Arithmetic) } else { (memory, Bound::Memory) }
    }
}

const fn case(
    name: &'static str,
    formula: &'static str,
    flops: f64,
    [read, written]: [usize; 2],
    setup: fn(&mut Bench),
) -> Case {
    let [read, written] = [4.0 * read as f64, 4.0 * written as f64];
    Case { name, formula, flops, read, times: 1.0, written, double: false, setup }
}

/// Floating-point operations of a product with these numbers of rows, columns and terms.
const fn mm(rows: usize, columns: usize, terms: usize) -> f64 {
    2.0 * rows as f64 * columns as f64 * terms as f64
}

/// All cases, in the order of the tables.
pub const CASES: &[Case] = &[
    case("mm1024", "ik,kj->ij, 1024 each", mm(1024, 1024, 1024), [2 << 20, 1 << 20], products::mm),
    case("mm1024_ta", "ki,kj->ij, 1024 each", mm(1024, 1024, 1024), [2 << 20, 1 << 20], products::mm_ta),
    case("mm1024_tb", "ik,jk->ij, 1024 each", mm(1024, 1024, 1024), [2 << 20, 1 << 20], products::mm_tb),
    Case {
        double: true,
        ..case(
            "mm_f64_512",
            "ik,kj->ij, 512 each, f64",
            mm(512, 512, 512),
            [4 << 18, 2 << 18],
            products::mm_f64,
        )
    },
    case(
        "bmm64x128",
        "nik,nkj->nij, n 64, 128 each",
        64.0 * mm(128, 128, 128),
        [128 << 14, 64 << 14],
        products::bmm,
    ),
    case(
        "qk",
        "bqhd,bkhd->bhqk, b 8, q k 128, h 12, d 64",
        96.0 * mm(128, 128, 64),
        [96 * 2 * 128 * 64, 96 * 128 * 128],
        products::qk,
    ),
    case(
        "attention",
        "softmax(q k / 8) v, b 8, q k 128, h 12, d 64",
        96.0 * 2.0 * mm(128, 128, 64),
        [96 * 3 * 128 * 64, 96 * 128 * 64],
        attention::short,
    ),
    case(
        "attention_long",
        "softmax(q k / 8) v, b 1, q k 2048, h 8, d 64",
        8.0 * 2.0 * mm(2048, 2048, 64),
        [8 * 3 * 2048 * 64, 8 * 2048 * 64],
        attention::long,
    ),
    case(
        "gram",
        "bchw,bdhw->bcd, b 8, 64 each",
        8.0 * mm(64, 64, 4096),
        [8 * 64 * 4096, 8 * 64 * 64],
        products::gram,
    ),
    case("matvec", "ij,j->i, 4096 each", mm(4096, 1, 4096), [4096 * 4097, 4096], products::matvec),
    case(
        "chain4_thin",
        "ab,bc,cd,de->ae, sizes 10, 1000, 10, 1000, 10",
        mm(10, 10, 1000) * 2.0 + mm(10, 10, 10),
        [4 * 10_000, 100],
        chains::thin,
    ),
    case(
        "chain4_fat",
        "ab,bc,cd,de->ae, sizes 1000, 10, 1000, 10, 1000",
        mm(10, 10, 1000) + mm(1000, 10, 10) + mm(1000, 1000, 10),
        [4 * 10_000, 1_000_000],
        chains::fat,
    ),
    case(
        "affine_relu",
        "relu(x * scale[c] + bias[c]), x 16,64,56,56",
        0.0,
        [16 * 64 * 56 * 56; 2],
        elementwise::affine_relu,
    ),
    case("softmax_rows", "softmax over the rows of 4096,1024", 0.0, [1 << 22; 2], elementwise::softmax),
    case("layernorm", "layer norm of 4096,768", 0.0, [4096 * 768; 2], elementwise::layer_norm),
    case("gelu_bias", "gelu(x + bias[c]) with erf, x 4096,3072", 0.0, [4096 * 3072; 2], elementwise::gelu),
    // 65,536 random numbers below 50,000 have about 36,516 distinct values.
    Case {
        times: 65_536.0 / 36_516.0,
        ..case(
            "embbag",
            "sum over s of w[ids[b, s], f], w 50000,128, ids 1024,64",
            0.0,
            [36_516 * (128 + 2), 1024 * 128],
            lookup::embedding_bag,
        )
    },
    case("nhwc_nchw3", "bhwc->bchw, 16,224,224,3", 0.0, [16 * 224 * 224 * 3; 2], layout::nhwc3),
    case("nhwc_nchw64", "bhwc->bchw, 32,56,56,64", 0.0, [32 * 56 * 56 * 64; 2], layout::nhwc64),
    case(
        "pixel_shuffle",
        "b (c h2 w2) h w -> b c (h h2) (w w2), 8,64*4,64,64, r 2",
        0.0,
        [8 * 256 * 64 * 64; 2],
        layout::pixel_shuffle,
    ),
    case("transpose2d", "ij->ji, 4096 each", 0.0, [1 << 24; 2], layout::transpose),
    case(
        "l1cdist",
        "sum over d of |a[i, d] - b[j, d]|, 512,512,64",
        mm(512, 512, 64),
        [2 * 512 * 64, 512 * 512],
        reductions::l1_distances,
    ),
    case("triu", "if i <= j then a[i, j] else 0, 2048 each", 0.0, [1 << 21, 1 << 22], lookup::triu),
    case(
        "relpos",
        "sum over d of q[b, q, h, d] e[q - k + 255, d], b 2, q k 256, h 8, d 64",
        2.0 * 8.0 * mm(256, 256, 64),
        [2 * 8 * 256 * 64 + 511 * 64, 2 * 8 * 256 * 256],
        lookup::relative_positions,
    ),
    case(
        "conv2d",
        "sum over c, i, j of x[b, c, h + i, w + j] k[o, c, i, j], x 8,32,56,56, k 64,32,3,3",
        8.0 * mm(54 * 54, 64, 32 * 9),
        [8 * 32 * 56 * 56 + 64 * 32 * 9, 8 * 64 * 54 * 54],
        conv::conv2d,
    ),
    case("sum_axis0", "ij->j, 4096 each", 0.0, [4096 * 4096, 4096], reductions::sum_axis0),
    case("sum_axis1", "ij->i, 4096 each", 0.0, [4096 * 4096, 4096], reductions::sum_axis1),
    case("tiny_mm4", "ik,kj->ij, 4 each", 0.0, [0; 2], tiny::mm4),
    case("tiny_mm4_into", "the same into existing memory", 0.0, [0; 2], tiny::mm4_into),
    case("tiny_mm16", "ik,kj->ij, 16 each", 0.0, [0; 2], tiny::mm16),
    case("tiny_mm16_into", "the same into existing memory", 0.0, [0; 2], tiny::mm16_into),
    case("tiny_add", "a + b, 4 elements", 0.0, [0; 2], tiny::add),
    case("tiny_add_into", "the same into existing memory", 0.0, [0; 2], tiny::add_into),
    case("tiny_order", "abc->cab, 2,3,4", 0.0, [0; 2], tiny::order),
    case("tiny_order_into", "the same into existing memory", 0.0, [0; 2], tiny::order_into),
    case("step_mlp_32", "value and gradient, mlp 32x64-32-10", 0.0, [0; 2], steps::mlp_32),
    case("step_mlp_64", "value and gradient, mlp 64x64-128-10", 0.0, [0; 2], steps::mlp_64),
    case("step_mlp_256", "value and gradient, mlp 256x784-512-10", 0.0, [0; 2], steps::mlp_256),
    case("step_chain", "value and gradient, sum of tanh(a*b+c)*sigmoid(a), 10^6", 0.0, [0; 2], steps::chain),
    case("step_cross_entropy", "value and gradient, 4096,1024", 0.0, [0; 2], steps::cross_entropy),
    case("step_layer_norm", "value and gradient, 4096,768", 0.0, [0; 2], steps::layer_norm),
    case("step_attention", "value and gradient, 4,8,256,64, causal", 0.0, [0; 2], steps::causal),
    case("step_block", "value and gradient, transformer block of 4,128,256", 0.0, [0; 2], steps::block),
    case("step_conv", "value and gradient, conv block of 8,32,28,28", 0.0, [0; 2], steps::conv_block),
    case("step_lstm", "value and gradient, lstm, 32 steps of 32,128", 0.0, [0; 2], steps::lstm),
    case("step_embedding", "value and gradient, 50000,128, 4096 ids", 0.0, [0; 2], steps::embedding),
    case(
        "step_oscillators",
        "value and gradient, 100 steps of 64 oscillators",
        0.0,
        [0; 2],
        steps::oscillators,
    ),
];
