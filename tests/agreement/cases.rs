//! The functions of `reference.py`.

use super::*;

dims! {
    struct Batch; struct Head; struct Query; struct Key; struct Feat; struct Channel; struct Out; struct H; struct W; struct P; struct Q;
    struct Time; struct Hidden; struct Hidden2; struct In; struct Gate; struct Word; struct Place; struct Class;
    struct I; struct J; struct K; struct L;
}

type Queries = Tensor<f64, (Batch, Head, Query, Feat)>;
type Keys = Tensor<f64, (Batch, Head, Key, Feat)>;
type Rows = Tensor<f64, (I, J)>;

type Fill<'f> = &'f mut dyn FnMut(usize) -> Vec<f64>;

/// Compares all functions, and returns their number.
pub fn check(reference: &Reference) -> usize {
    let cases: [fn(&Reference) -> usize; 5] =
        [attentions, normalizations, convolutions, networks, elementwise];
    cases.iter().map(|case| case(reference)).sum()
}

fn queries(data: Vec<f64>) -> Queries {
    from_vec((Batch.of(2), Head.of(2), Query.of(5), Feat.of(3)), data)
}

fn keys(data: Vec<f64>) -> Keys {
    from_vec((Batch.of(2), Head.of(2), Key.of(5), Feat.of(3)), data)
}

fn heads(fill: Fill<'_>) -> (Queries, Keys, Keys) {
    (queries(fill(60)), keys(fill(60)), keys(fill(60)))
}

fn rows(i: usize, j: usize) -> impl Fn(Vec<f64>) -> Rows {
    move |data| from_vec((I.of(i), J.of(j)), data)
}

fn attentions(reference: &Reference) -> usize {
    reference.check("attention_whole", heads, queries, |(q, k, v)| attention(q, k, v, Feat, Key, 0.7, true));
    reference.check("attention_causal", heads, queries, |(q, k, v)| {
        attention(q, k, v, Feat, Key, 0.7, Query.ge(Key))
    });
    let mask = from_fn((Query.of(5), Key.of(5)), |(i, j)| (i + j) % 3 != 1 || i == j).eval();
    reference.check(
        "attention_with_mask_and_bias",
        |fill| (heads(fill), from_vec((Head.of(2), Query.of(5), Key.of(5)), fill(50))),
        queries,
        |((q, k, v), bias)| attention(q, k, v, Feat, Key, 0.7, (&mask, bias)),
    );
    3
}

fn normalizations(reference: &Reference) -> usize {
    let j = |data| from_vec(J.of(6), data);
    reference.check(
        "layer_norm",
        |fill| (rows(3, 6)(fill(18)), j(fill(6)), j(fill(6))),
        rows(3, 6),
        |(x, gain, bias)| x.layer_norm_affine(J, 1e-5, gain, bias),
    );
    reference.check("rms_norm", |fill| rows(3, 6)(fill(18)), rows(3, 6), |x| x.rms_norm(J, 1e-5));
    let groups = |data| from_vec((Batch.of(2), Channel.of(4), W.of(5)), data);
    reference.check("group_norm", |fill| groups(fill(40)), groups, |x| x.group_norm(Channel, 2, W, 1e-5));
    3
}

type Images = Tensor<f64, (Batch, Channel, H, W)>;
type Filters = Tensor<f64, (Out, Channel, P, Q)>;
type Outputs = Tensor<f64, (Batch, Out, H, W)>;

fn images(h: usize, w: usize) -> impl Fn(Vec<f64>) -> Images {
    move |data| from_vec((Batch.of(2), Channel.of(2), H.of(h), W.of(w)), data)
}

fn outputs(h: usize, w: usize) -> impl Fn(Vec<f64>) -> Outputs {
    move |data| from_vec((Batch.of(2), Out.of(3), H.of(h), W.of(w)), data)
}

fn convolutions(reference: &Reference) -> usize {
    let filters = |data| -> Filters { from_vec((Out.of(3), Channel.of(2), P.of(2), Q.of(3)), data) };
    let inputs = |fill: Fill<'_>| (images(5, 6)(fill(120)), filters(fill(36)));
    let plain = Window::new();
    reference
        .check("convolution", inputs, outputs(4, 4), |(x, w)| conv(x, w, Channel, (H, W), (P, Q), &plain));
    let steps = Window::new().stride((2, 1)).padding((1, 2)).dilation((1, 2));
    reference.check("convolution_in_steps", inputs, outputs(3, 6), |(x, w)| {
        conv(x, w, Channel, (H, W), (P, Q), &steps)
    });
    let channels = |data| from_vec(Out.of(3), data);
    let steps = Window::new().stride((2, 1)).padding(1);
    reference.check(
        "convolution_with_batch_norm",
        |fill| (inputs(fill), channels(fill(3)), channels(fill(3))),
        outputs(3, 6),
        |((x, w), gain, bias)| {
            let y = conv(x, w, Channel, (H, W), (P, Q), &steps);
            (y.batch_norm((Batch, H, W), 1e-5).output * gain + bias).gelu().eval()
        },
    );
    let steps = Window::new().stride(2).padding(1).output_padding(1);
    reference.check(
        "transposed_convolution",
        |fill| {
            let x = images(3, 4)(fill(48));
            (x, from_vec((Channel.of(2), Out.of(3), P.of(2), Q.of(3)), fill(36)))
        },
        outputs(5, 8),
        |(x, w): &(Images, Filters)| conv_transpose(x, w, Channel, (H, W), (P, Q), &steps),
    );
    let lines = |data| from_vec((Batch.of(2), Channel.of(2), W.of(6)), data);
    let halves = |data| from_vec((Batch.of(2), Channel.of(2), W.of(3)), data);
    let steps = Window::new().stride(2);
    reference.check(
        "pooling",
        |fill| lines(fill(24)),
        halves,
        |x| (x.max_pool(W, 2, &steps) * x.avg_pool(W, 2, &steps)).eval(),
    );
    5
}

type State = Tensor<f64, (Batch, Hidden)>;

fn networks(reference: &Reference) -> usize {
    reference.check(
        "lstm",
        |fill| {
            let x = from_vec((Time.of(4), Batch.of(2), In.of(3)), fill(24));
            let w = from_vec((In.of(3), Gate.of(4), Hidden.of(3)), fill(36));
            let u = from_vec((Hidden2.of(3), Gate.of(4), Hidden.of(3)), fill(36));
            (x, w, u, from_vec((Gate.of(4), Hidden.of(3)), fill(12)))
        },
        |data| from_vec((Time.of(4), Batch.of(2), Hidden.of(3)), data),
        |(x, w, u, b)| {
            let start = || zeros::<f64, _>((Batch.of(2), Hidden.of(3)));
            let (_, all) = scan(x, Time, (start(), start()), |(h, c): (State, State), x| {
                let gates = (x * w).sum(In) + (h.rename(Hidden, Hidden2) * u).sum(Hidden2) + b;
                let gates = gates.eval();
                let gate = |at| (&gates).index(Gate, at);
                let c = (gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh()).eval();
                let h = (gate(3).sigmoid() * (&c).tanh()).eval();
                ((h.clone(), c), h)
            });
            all
        },
    );
    let x = from_vec((Batch.of(3), In.of(6)), numbers(18, 90));
    let labels = from_vec(Batch.of(3), vec![2_usize, 0, 3]);
    type Mlp = (
        Tensor<f64, (In, Hidden)>,
        Tensor<f64, (Hidden,)>,
        Tensor<f64, (Hidden, Class)>,
        Tensor<f64, (Class,)>,
    );
    let mlp = |fill: Fill<'_>| -> Mlp {
        let (w1, b1) = (from_vec((In.of(6), Hidden.of(5)), fill(30)), from_vec(Hidden.of(5), fill(5)));
        (w1, b1, from_vec((Hidden.of(5), Class.of(4)), fill(20)), from_vec(Class.of(4), fill(4)))
    };
    let loss = |(w1, b1, w2, b2): &Mlp| {
        let hidden = ((&x * w1).sum(In) + b1).tanh();
        let scores = (hidden * w2).sum(Hidden) + b2;
        scores.cross_entropy(Class, &labels).mean(Batch)
    };
    reference.check("mlp_with_cross_entropy", mlp, |data| from_vec((), data), loss);
    // Here, `product` is the Hessian-vector product times the cotangent, which is a number.
    let made = |first: usize| {
        let mut seed = first;
        mlp(&mut |len| {
            seed += 1;
            numbers(len, seed - 1)
        })
    };
    let (all, mut start) = (reference.numbers("mlp_with_cross_entropy", "product"), 0);
    let expected = mlp(&mut |len| {
        start += len;
        all[start - len..start].iter().map(|product| product / numbers(1, 99)[0]).collect()
    });
    assert_near("mlp_with_cross_entropy", "hvp", &hvp(loss, &made(1), &made(11)), &expected);
    let ids = from_vec((Batch.of(2), Place.of(3)), vec![3_usize, 0, 3, 1, 1, 2]);
    reference.check(
        "embedding",
        |fill| {
            let table = from_vec((Word.of(4), Feat.of(3)), fill(12));
            (table, from_vec((Batch.of(2), Place.of(3)), fill(6)))
        },
        |data| from_vec((Batch.of(2), Feat.of(3)), data),
        |(table, x)| (table.take(Word, &ids) * x).sum(Place),
    );
    reference.check(
        "chain_of_products",
        |fill| {
            let (a, b) = (rows(3, 4)(fill(12)), from_vec((J.of(4), K.of(5)), fill(20)));
            (a, b, from_vec((K.of(5), L.of(2)), fill(10)))
        },
        |data| from_vec((I.of(3), L.of(2)), data),
        |(a, b, c)| (a * b * c).sum((J, K)),
    );
    4
}

fn elementwise(reference: &Reference) -> usize {
    let one = |fill: Fill<'_>| rows(3, 5)(fill(15));
    let i = |data| from_vec(I.of(3), data);
    reference.check("softmax", one, rows(3, 5), |x| x.softmax(J));
    reference.check("log_softmax", one, rows(3, 5), |x| x.log_softmax(I));
    reference.check("logsumexp", one, i, |x| x.logsumexp(J));
    reference.check("running_products", one, rows(3, 5), |x| ((x + 2.0).cumprod(J) * x.cumsum(I)).eval());
    reference.check("activations", one, rows(3, 5), |x| {
        (x.gelu_tanh() + x.silu() * x.softplus() + x.erf() * x.sigmoid()).eval()
    });
    reference.check(
        "losses",
        |fill| (one(fill), one(fill)),
        rows(3, 5),
        |(x, y)| (x.huber_loss(y, 0.7) + x.bce_with_logits_loss(y.sigmoid())).eval(),
    );
    reference.check("statistics", one, i, |x| (x.var(J) * x.mean(J) + x.var_with(J, 1.0).sqrt()).eval());
    reference.check("sorted_elements", one, rows(3, 5), |x| (x.sort(J).square() * x.max(J)).eval());
    8
}
