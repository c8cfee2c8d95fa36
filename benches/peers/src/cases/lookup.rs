//! Dims as values: rows selected by index, masks, relative positions.

use crate::bench::{Bench, candle, candle_ids};
use crate::gemms::products;
use crate::plain;
use ndarray::parallel::prelude::*;
use ndarray::{ArrayView2, ArrayViewMut3, Axis, s};
use std::mem::MaybeUninit;
use typed_dims::prelude::*;

fn bag_in_dims(ids: &Array2<usize>, table: &Array2<f32>) -> Array2<f32> {
    dims!(batch, seq, feat);
    table.at((ids.at((batch, seq)), feat)).sum(seq).order((batch, feat))
}

pub fn embedding_bag(bench: &mut Bench) {
    let table = bench.input::<f32, _>("table", (50_000, 128));
    let ids = bench.ids("ids", (1024, 64), 50_000);
    let threads = bench.threads;
    {
        let (table, ids) = (table.clone(), ids.clone());
        bench.peer("typed-dims", move || bag_in_dims(&ids, &table));
    }
    {
        let (table, ids) = (table.clone(), ids.clone());
        bench.peer("ndarray", move || {
            let mut out = Array2::zeros((1024, 128));
            for (mut out, ids) in out.rows_mut().into_iter().zip(ids.rows()) {
                for &id in ids {
                    out += &table.row(id);
                }
            }
            out
        });
    }
    {
        let (table, ids) = (candle(&table), candle_ids(&ids).flatten_all().expect("the tensor is a matrix"));
        bench.peer("candle", move || {
            let rows = table.embedding(&ids).and_then(|rows| rows.reshape((1024, 64, 128)));
            rows.and_then(|rows| rows.sum(1)).expect("ids are in range")
        });
    }
    #[cfg(feature = "burn")]
    {
        let table = crate::bench::burn::<2, _, _>(&table);
        let ids: Vec<i64> = ids.iter().map(|&id| id as i64).collect();
        let data = burn::tensor::TensorData::new(ids, [1024, 64]);
        let ids =
            burn::tensor::Tensor::<2, burn::tensor::Int>::from_data(data, &burn::tensor::Device::flex());
        bench.peer("burn", move || burn::tensor::module::embedding(table.clone(), ids.clone()).sum_dim(1));
    }
    bench.peer("plain loop", move || {
        let (table, ids) = (
            table.as_slice().expect("the array is in standard layout"),
            ids.as_slice().expect("the array is in standard layout"),
        );
        let mut out = Array2::zeros((1024, 128));
        let into = out.as_slice_mut().expect("the array is in standard layout");
        plain::each_chunk(threads, into, 32 * 128, |at, out| {
            for (out, ids) in out.chunks_exact_mut(128).zip(ids[at * 32 * 64..].chunks_exact(64)) {
                plain::bag(table, ids, out);
            }
        });
        out
    });
}

fn triu_in_dims(a: &Array2<f32>) -> Array2<f32> {
    dims!(i, j);
    select(i.le(j), a.at((i, j)), 0.0).order((i, j))
}

pub fn triu(bench: &mut Bench) {
    const N: usize = 2048;
    let a = bench.input::<f32, _>("a", (N, N));
    let threads = bench.threads;
    {
        let a = a.clone();
        bench.peer("typed-dims", move || triu_in_dims(&a));
    }
    {
        let a = a.clone();
        bench.peer("ndarray", move || a.triu(0));
    }
    {
        let mask = candle_core::Tensor::triu2(N, candle_core::DType::U8, &candle_core::Device::Cpu);
        let (a, mask) = (candle(&a), mask.expect("the mask can be created"));
        let zeros = a.zeros_like().expect("there is memory");
        bench.peer("candle", move || mask.where_cond(&a, &zeros).expect("shapes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let a = crate::bench::burn::<2, _, _>(&a);
        bench.peer("burn", move || a.clone().triu(0));
    }
    bench.peer("plain loop", move || {
        let elements = a.as_slice().expect("the array is in standard layout");
        let mut out = Vec::new();
        let write = |out: &mut [f32]| {
            plain::each_chunk(threads, out, 64 * N, |at, out| {
                for (row, out) in out.chunks_exact_mut(N).enumerate() {
                    let row = 64 * at + row;
                    out[..row].fill(0.0);
                    out[row..].copy_from_slice(&elements[row * N + row..(row + 1) * N]);
                }
            });
        };
        // SAFETY: the chunks that are written cover all elements.
        unsafe { super::elementwise::fill(&mut out, N * N, write) };
        Array2::from_shape_vec((N, N), out).expect("the sizes fit")
    });
}

fn positions_in_dims(q: &Array4<f32>, table: &Array2<f32>) -> Array4<f32> {
    dims!(b, h, query = 256, key = 256, d);
    (q.at((b, query, h, d)) * table.at((query - key + 255, d))).sum(d).order((b, h, query, key))
}

pub fn relative_positions(bench: &mut Bench) {
    const N: usize = 256;
    let q = bench.input::<f32, _>("q", (2, N, 8, 64));
    let table = bench.input::<f32, _>("table", (2 * N - 1, 64));
    let threads = bench.threads;
    {
        let (q, table) = (q.clone(), table.clone());
        bench.peer("typed-dims", move || positions_in_dims(&q, &table));
    }
    {
        let (q, table) = (q.clone(), table.clone());
        bench.peer("ndarray", move || {
            let mut out = Array4::zeros((2, 8, N, N));
            for at in 0..N {
                // The keys use the rows of the table in reverse order.
                let rows = table.slice(s![at..at + N;-1, ..]);
                for batch in 0..2 {
                    let q: ArrayView2<'_, f32> = q.slice(s![batch, at, .., ..]);
                    let scores: Array2<f32> = q.dot(&rows.t());
                    out.slice_mut(s![batch, .., at, ..]).assign(&scores);
                }
            }
            out
        });
    }
    // candle and burn first select the rows for all pairs of positions, and then compute a product
    // for each query.
    let distances: Vec<u32> = (0..N * N).map(|at| (at / N + N - 1 - at % N) as u32).collect();
    {
        let ids =
            candle_core::Tensor::new(distances.as_slice(), &candle_core::Device::Cpu).expect("a vector");
        let (q, table) = (candle(&q), candle(&table));
        bench.peer("candle", move || {
            let run = || -> candle_core::Result<_> {
                let rows = table.index_select(&ids, 0)?.reshape((N, N, 64))?;
                let q = q.transpose(0, 1)?.reshape((N, 16, 64))?;
                let scores = q.matmul(&rows.t()?)?;
                scores.reshape((N, 2, 8, N))?.permute((1, 2, 0, 3))?.contiguous()
            };
            run().expect("shapes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        let ids: Vec<i64> = distances.iter().map(|&id| id.into()).collect();
        let data = burn::tensor::TensorData::new(ids, [N * N]);
        let ids =
            burn::tensor::Tensor::<1, burn::tensor::Int>::from_data(data, &burn::tensor::Device::flex());
        let (q, table) = (crate::bench::burn::<4, _, _>(&q), crate::bench::burn::<2, _, _>(&table));
        bench.peer("burn", move || {
            let rows = table.clone().select(0, ids.clone()).reshape([N, N, 64]);
            let q = q.clone().swap_dims(0, 1).reshape([N, 16, 64]);
            let scores = q.matmul(rows.swap_dims(1, 2));
            scores.reshape([N, 2, 8, N]).permute([1, 2, 0, 3]).reshape([2 * 8 * N * N])
        });
    }
    for (name, by) in products() {
        let (q, table) = (q.clone(), table.clone());
        bench.peer(name, move || {
            let mut out = Array4::uninit((2, 8, N, N));
            let one = |at: usize, mut out: ArrayViewMut3<'_, MaybeUninit<f32>>| {
                let rows: ArrayView2<'_, f32> = table.slice(s![at..at + N;-1, ..]);
                for (batch, out) in out.outer_iter_mut().enumerate() {
                    by(q.slice(s![batch, at, .., ..]), rows.t(), out, 1);
                }
            };
            if threads == 1 {
                out.axis_iter_mut(Axis(2)).enumerate().for_each(|(at, out)| one(at, out));
            } else {
                let (q, table) = (q.view(), table.view());
                out.axis_iter_mut(Axis(2)).into_par_iter().enumerate().for_each(|(at, mut out)| {
                    for (batch, out) in out.outer_iter_mut().enumerate() {
                        by(q.slice(s![batch, at, .., ..]), table.slice(s![at..at + N;-1, ..]).t(), out, 1);
                    }
                });
            }
            // SAFETY: the products write a row for every query of each head.
            unsafe { out.assume_init() }
        });
    }
}
