#![allow(missing_docs)]
use gpt::model::{Batch, Gpt, Sizes, Texts, Token};
use typed_dims::optim::{AdamW, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims_kernels::trace::saved::*;
type State = (Gpt, AdamW<Gpt>);
#[test]
fn dump() {
    let sizes = Sizes { chars: 16, layers: 1, heads: 2, width: 8, inner: 16 };
    let text = |s: u32| -> Texts { from_vec((Batch.of(4), Token.of(6)), (0..24).map(|a: u32| (a * 7 + s) % 16).collect()) };
    let (gpt, x, y) = (Gpt::random(sizes, 1), text(1), text(3));
    let mut adam = AdamW::new(1e-3);
    adam.prepare(&gpt);
    let p = record(
        |((mut gpt, mut adam), x, y): (State, &Texts, &Texts)| {
            let (loss, gradient) = gpt.gradient(x, y);
            adam.step(&mut gpt, &gradient);
            ((gpt, adam), loss)
        },
        ((gpt, adam), &x, &y),
    )
    .unwrap();
    let e = p.to_engine().unwrap();
    for (i, input) in e.inputs.iter().enumerate() {
        println!("in {i} {} {:?} order {:?}", input.tensor.path, input.tensor.axes.iter().map(|a| (a.dim.map(|d| d.name), a.size)).collect::<Vec<_>>(), input.order);
    }
    println!("constants {:?}", e.recording.constants.iter().map(|c| c.elements.0.len()).collect::<Vec<_>>());
    let base = e.inputs.len() + e.recording.constants.len();
    let field = |f: &SavedField| format!("{:?} <- {}", f.sizes, f.operands.iter().map(|o| format!("{:?}@{}{:?}{}", o.value, o.place.offset, o.place.strides, o.place.table.as_ref().map_or(String::new(), |t| format!("T{}{:?}", t.number, t.strides)))).collect::<Vec<_>>().join(" "));
    for (i, s) in e.recording.steps.iter().enumerate() {
        let v = &e.values[e.inputs.len() + i];
        println!("%{} {} {:?}", base + i, v.operation, v.axes.as_ref().map(|a| a.iter().map(|a| (a.name, a.size)).collect::<Vec<_>>()));
        match &s.work {
            SavedWork::Parts(parts) => for p in parts { println!("    part @{}{:?}{} {}", p.place.offset, p.place.strides, p.place.table.as_ref().map_or(String::new(), |t| format!("T{}{:?}", t.number, t.strides)), field(&p.field)); },
            SavedWork::Rule(r) => match &**r {
                SavedRule::Reduction(o) => println!("    reduction {} kept {:?} reduced {:?} {}", o.reduction.0, o.kept, o.reduced, field(&o.field)),
                SavedRule::MomentOfLines(o) => println!("    moment {} kept {:?} reduced {:?} {}", o.reduction.0, o.kept, o.reduced, field(&o.field)),
                SavedRule::Lines(o) => println!("    lines {} order {:?} lines {:?} {}", o.work.0, o.order, o.lines, field(&o.field)),
                SavedRule::LinePullBack { lines, y, dy } => println!("    linepull {} order {:?} lines {:?} {} y {} dy {}", lines.work.0, lines.order, lines.lines, field(&lines.field), field(y), field(dy)),
                SavedRule::Attention(a) => println!("    attention {:?} features {:?} over {:?} scores {:?} kept {:?}", a.operands.each_ref().map(field), a.features, a.over, a.scores, a.kept),
                SavedRule::AttentionPullBack { attention: a, dy, numbers, lens, .. } => println!("    pull {:?} features {:?} over {:?} scores {:?} kept {:?} dy {} numbers {numbers:?} lens {lens:?}", a.operands.each_ref().map(field), a.features, a.over, a.scores, a.kept, field(dy)),
                other => println!("    {other:?}").clone(),
            },
        }
    }
    for (i, t) in e.recording.tables.iter().enumerate() {
        match t {
            SavedTable::Given(g) => println!("T{i} given {}", g.len()),
            SavedTable::Computed { indices, order } => println!("T{i} order {order:?} {:?}", indices.iter().map(|x| (field(&x.field), x.stride, x.size)).collect::<Vec<_>>()),
        }
    }
    for (r, o) in e.results.iter().zip(&e.recording.outputs) {
        println!("result {} = %{o} @{}{:?} {:?}", r.tensor.path, r.start, r.strides, r.tensor.axes.iter().map(|a| (a.dim.map(|d| d.name), a.size)).collect::<Vec<_>>());
    }
}
