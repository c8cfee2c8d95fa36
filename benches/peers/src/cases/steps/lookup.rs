//! Selected rows of a table.

use super::{Step, candle_step};
use crate::bench::{Bench, Outcome, candle, candle_ids};
use std::cell::RefCell;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Example;
    struct Word;
    struct Feat;
}

pub fn embedding(bench: &mut Bench) {
    let table = bench.input::<f32, _>("table", (50_000, 128));
    let weight = bench.input::<f32, _>("weight", (4096, 128));
    let ids = bench.ids("ids", 4096, 50_000);
    {
        let table = RefCell::new((*table).clone().into_tensor((Word, Feat)));
        let weight = (*weight).clone().into_tensor((Example, Feat));
        let ids = (*ids).clone().into_tensor(Example);
        bench.peer("typed-dims", move || {
            let loss = |t: &Tensor<f32, (Word, Feat)>| (t.take(Word, &ids) * &weight).sum((Example, Feat));
            let step = value_and_grad(|t| loss(t), &mut *table.borrow_mut());
            Step::new(step, |own| own.order((Word, Feat)).elements())
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, variable};
        let (table, weight) = (variable::<2, _>(&*table), constant::<2, _>(&*weight));
        let ids = super::in_burn::ids(&ids);
        bench.peer("burn", move || {
            gradients!((table.clone().select(0, ids.clone()) * weight.clone()).sum(), table)
        });
    }
    let (weight, ids) = (candle(&weight), candle_ids(&ids));
    candle_step(bench, vec![candle(&table)], move |by| (by[0].index_select(&ids, 0)? * &weight)?.sum_all());
}
