//! Recurrent networks of several layers and in both directions, compared with PyTorch's.

use super::*;
use typed_dims::nn::recurrent::{BiGruStack, BiLstm, BiLstmStack, GruStack, LstmStack};

dims! {
    /// The features of both directions.
    struct Both;
}

type Shown<D> = Tensor<f64, (Batch, Time, D)>;

/// A network with this number of layers, these directions, and cells with `gates` gates, loaded
/// from arrays with PyTorch's names.
fn cells<M: for<'a> Load<'a>>(gates: usize, layers: usize, directions: &[&str]) -> M {
    let mut arrays: Vec<(String, Vec<usize>)> = Vec::new();
    for layer in 0..layers {
        let inputs = if layer == 0 { 3 } else { 4 * directions.len() };
        for direction in directions {
            let name = |of: &str| format!("{of}_l{layer}{direction}");
            arrays.push((name("weight_ih"), vec![4 * gates, inputs]));
            arrays.push((name("weight_hh"), vec![4 * gates, 4]));
            arrays.push((name("bias_ih"), vec![4 * gates]));
            arrays.push((name("bias_hh"), vec![4 * gates]));
        }
    }
    let arrays: Vec<(&str, &[usize])> =
        arrays.iter().map(|(name, sizes)| (name.as_str(), sizes.as_slice())).collect();
    loaded(&arrays)
}

fn lengths() -> Tensor<usize, (Batch,)> {
    from_vec(Batch.of(2), vec![5, 3])
}

/// The last states of all layers, as PyTorch lists them.
fn listed(states: impl IntoIterator<Item = State>) -> ndarray::Array3<f64> {
    dims!(layer);
    stack(layer, states.into_iter().collect::<Vec<_>>()).order((layer, Batch, Inner))
}

#[test]
fn lstm() {
    let layer: LstmStack<Width, Inner, Next, f64> = cells(4, 2, &[""]);
    let expected = Expected::of("several_lstm");
    let whole = layer.apply(&steps(), Time, None);
    let packed = layer.apply_padded(&steps(), Time, &lengths(), None);
    for (at, (shown, states)) in [(0, whole), (3, packed)] {
        let shown: Shown<Inner> = shown;
        expected.is(at, shown.order((Batch, Time, Inner)));
        expected.is(at + 1, listed(states.iter().map(|state| state.hidden.clone())));
        expected.is(at + 2, listed(states.iter().map(|state| state.cell.clone())));
    }
    check(
        |(layer, x): &(LstmStack<Width, Inner, Next, f64>, X)| -> Shown<Inner> {
            layer.apply_padded(x, Time, &lengths(), None).0
        },
        &(layer, steps()),
    );
}

#[test]
fn lstm_in_both_directions() {
    let layer: BiLstmStack<Width, Inner, Next, Both, f64> = cells(4, 2, &["", "_reverse"]);
    let expected = Expected::of("several_bi_lstm");
    let whole = layer.apply(&steps(), Time, None);
    let packed = layer.apply_padded(&steps(), Time, &lengths(), None);
    for (at, (shown, states)) in [(0, whole), (3, packed)] {
        let shown: Shown<Both> = shown;
        expected.is(at, shown.order((Batch, Time, Both)));
        let states: Vec<_> = states.into_iter().flatten().collect();
        expected.is(at + 1, listed(states.iter().map(|state| state.hidden.clone())));
        expected.is(at + 2, listed(states.iter().map(|state| state.cell.clone())));
    }
    let one: BiLstm<Width, Inner, Next, Both, f64> = cells(4, 1, &["", "_reverse"]);
    check(
        |(layer, x): &(BiLstm<Width, Inner, Next, Both, f64>, X)| -> Shown<Both> {
            layer.apply_padded(x, Time, &lengths(), None).0
        },
        &(one, steps()),
    );
}

#[test]
fn gru() {
    let layer: GruStack<Width, Inner, Next, f64> = cells(3, 3, &[""]);
    let expected = Expected::of("several_gru");
    let whole = layer.apply(&steps(), Time, None);
    let packed = layer.apply_padded(&steps(), Time, &lengths(), None);
    for (at, (shown, states)) in [(0, whole), (2, packed)] {
        let shown: Shown<Inner> = shown;
        expected.is(at, shown.order((Batch, Time, Inner)));
        expected.is(at + 1, listed(states));
    }
}

#[test]
fn gru_in_both_directions() {
    let layer: BiGruStack<Width, Inner, Next, Both, f64> = cells(3, 2, &["", "_reverse"]);
    let expected = Expected::of("several_bi_gru");
    let whole = layer.apply(&steps(), Time, None);
    let packed = layer.apply_padded(&steps(), Time, &lengths(), None);
    for (at, (shown, states)) in [(0, whole), (2, packed)] {
        let shown: Shown<Both> = shown;
        expected.is(at, shown.order((Batch, Time, Both)));
        expected.is(at + 1, listed(states.into_iter().flatten()));
    }
}

/// Processing a text in two pieces, the second one with the states of the first, equals processing
/// the whole text.
#[test]
fn states_go_on() {
    let network = LstmStack::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 2, 1);
    let (whole, _) = network.apply(&steps(), Time, None);
    let piece = |range: std::ops::Range<isize>| -> X { steps().slice(Time, range).eval() };
    let (first, states) = network.apply(&piece(0..2), Time, None);
    let (second, _) = network.apply(&piece(2..5), Time, Some(states));
    let joined: Shown<Inner> = concat(Time, [first, second]);
    assert!((joined - whole).abs().max((Batch, Time, Inner)).order(()) < 1e-12);
}

#[test]
#[should_panic(expected = "1 states for 2 layers")]
fn a_state_is_missing() {
    let network = GruStack::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 2, 1);
    network.apply(&steps(), Time, Some(vec![state(21)]));
}
