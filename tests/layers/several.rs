//! Recurrent networks with several layers, in one or both directions, compared with PyTorch's.

use super::*;
use typed_dims::nn::recurrent::{BiGruStack, BiLstm, BiLstmStack, GruGate, GruStack, LstmGate, LstmStack};

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
#[should_panic(expected = "the number of initial states is 1, but that of layers is 2")]
fn a_state_is_missing() {
    let network = GruStack::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 2, 1);
    network.apply(&steps(), Time, Some(vec![state(21)]));
}

/// The message and the line of a panic.
fn panicked(f: impl FnOnce()) -> (String, u32) {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
    use std::sync::Mutex;
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    thread_local!(static LINE: Cell<u32> = const { Cell::new(0) });

    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let before = take_hook();
    set_hook(Box::new(|info| LINE.set(info.location().expect("a panic has a location").line())));
    let result = catch_unwind(AssertUnwindSafe(f));
    set_hook(before);
    let payload = result.expect_err("a panic");
    (*payload.downcast::<String>().expect("the message is text"), LINE.get())
}

/// PyTorch also refuses lengths beyond the positions.
#[test]
fn lengths_beyond_the_positions_are_refused() {
    let network = Lstm::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 1);
    let both = BiLstmStack::<Width, Inner, Next, Both, f64>::new(Width.of(3), Inner.of(4), 2, 1);
    let long = from_vec(Batch.of(2), vec![9, 1]);
    let expected = "a sequence of length 9, but there are 5 positions along `Time`";
    let (x, line) = (steps(), line!() + 1);
    let found = panicked(|| drop(network.apply_padded(&x, Time, &long, None)));
    assert_eq!(found, (expected.to_owned(), line));
    let line = line!() + 1;
    let found = panicked(|| drop(both.apply_padded(&x, Time, &long, None)));
    assert_eq!(found, (expected.to_owned(), line));
    // Only the selected elements are lengths.
    let lengths = from_vec((Batch.of(2), Row.of(2)), vec![5, 9, 3, 9]);
    let lengths: Tensor<usize, (Batch,)> = lengths.index(Row, 0).eval();
    network.apply_padded(&x, Time, &lengths, None);
    network.apply_padded(&x, Time, &from_vec(Batch.of(2), vec![0, 5]), None);
}

#[test]
fn lengths_of_another_batch_are_refused() {
    let network = BiLstm::<Width, Inner, Next, Both, f64>::new(Width.of(3), Inner.of(4), 1);
    let x = steps();
    let bound = line!() + 1;
    let lengths = from_vec(Batch.of(3), vec![1, 2, 3]);
    let line = line!() + 1;
    let (error, found) = panicked(|| drop(network.apply_padded(&x, Time, &lengths, None)));
    assert_eq!(found, line, "{error}");
    let both = [format!("{}:{bound}:", file!()), format!("{}:{line}:", file!())];
    assert!(error.starts_with("dim `Batch`") && both.iter().all(|place| error.contains(place)), "{error}");
}

#[test]
fn states_of_another_batch_are_refused() {
    let given = line!() + 1;
    let x: X = zeros((Batch.of(2), Time.of(5), Width.of(3)));
    let state: State = zeros((Batch.of(3), Inner.of(4)));
    let first: Tensor<f64, (Batch, Width)> = zeros((Batch.of(2), Width.of(3)));
    let fitting: State = zeros((Batch.of(2), Inner.of(4)));
    let gru = Gru::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 1);
    let lstm = Lstm::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 1);
    let both = BiLstm::<Width, Inner, Next, Both, f64>::new(Width.of(3), Inner.of(4), 1);
    let of = |hidden: &State, cell: &State| LstmState { hidden: hidden.clone(), cell: cell.clone() };
    let names = |(error, found): (String, u32), line: u32, places: [u32; 2]| {
        assert_eq!(found, line, "{error}");
        let places = places.map(|place| format!("{}:{}:", file!(), given + place));
        let [a, b] = places.each_ref().map(|place| error.find(place));
        assert!(error.starts_with("dim `Batch` has size 2") && a.is_some() && a < b, "{error}");
    };
    let line = line!() + 1;
    let found = panicked(|| drop(gru.apply(&x, Time, Some(state.clone()))));
    names(found, line, [0, 1]);
    let line = line!() + 1;
    let found = panicked(|| drop(gru.step(&first, &state)));
    names(found, line, [2, 1]);
    let line = line!() + 1;
    let found = panicked(|| drop(lstm.apply(&x, Time, Some(of(&state, &state)))));
    names(found, line, [0, 1]);
    let line = line!() + 1;
    let found = panicked(|| drop(lstm.step(&first, &of(&fitting, &state))));
    names(found, line, [3, 1]);
    let line = line!() + 1;
    let found = panicked(|| drop(both.apply(&x, Time, Some([of(&fitting, &fitting), of(&state, &state)]))));
    names(found, line, [0, 1]);
}

/// The input does not have the dims of the gates, so it is not named as their origin.
#[test]
fn weights_of_two_sizes_are_refused() {
    let given = line!() + 1;
    let x: Tensor<f64, (Batch, Width)> = zeros((Batch.of(2), Width.of(3)));
    let state: State = zeros((Batch.of(2), Inner.of(4)));
    let mut gru = Gru::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 1);
    gru.weight_hh = zeros((Inner.of(4), GruGate, Next.of(5)));
    gru.bias_hh = zeros((GruGate, Next.of(5)));
    let mut lstm = Lstm::<Width, Inner, Next, f64>::new(Width.of(3), Inner.of(4), 1);
    lstm.weight_hh = zeros((Inner.of(4), LstmGate, Next.of(5)));
    let of = |(error, found): (String, u32), line: u32, dim: &str| {
        assert_eq!(found, line, "{error}");
        let is_named = error.contains(&format!("{}:{given}:", file!()));
        assert!(error.starts_with(&format!("dim `{dim}` has size 4 (at ")) && !is_named, "{error}");
    };
    let line = line!() + 1;
    let found = panicked(|| drop(gru.step(&x, &state)));
    of(found, line, "Inner");
    let line = line!() + 1;
    let found = panicked(|| drop(lstm.step(&x, &LstmState { hidden: state.clone(), cell: state.clone() })));
    of(found, line, "Next");
}

#[test]
fn no_positions_are_refused() {
    let none: X = zeros((Batch.of(2), Time.of(0), Width.of(3)));
    let network = BiLstm::<Width, Inner, Next, Both, f64>::new(Width.of(3), Inner.of(4), 1);
    let line = line!() + 1;
    let found = panicked(|| drop(network.apply(&none, Time, None)));
    assert_eq!(found, ("there are no positions along `Time`".to_owned(), line));
}

#[test]
fn errors_of_layers_are_at_the_call() {
    let norm = LayerNorm::<(Width,), f64>::new(Width.of(4));
    let (x, line) = (steps(), line!() + 1);
    let (error, found) = panicked(|| drop(norm.apply(&x)));
    assert_eq!(found, line, "{error}");
    assert!(error.starts_with("dim `Width`"), "{error}");

    let rope = Rope::<Time, Width, f64>::new(Time.of(8), Width.of(4), 10_000.0);
    let x: X = zeros((Batch.of(2), Time.of(5), Width.of(4)));
    for start in [4, usize::MAX] {
        let line = line!() + 1;
        let (error, found) = panicked(|| drop(rope.apply(&x, start)));
        assert_eq!(found, line, "{error}");
        let end = start.saturating_add(5);
        assert_eq!(
            error,
            format!("`Rope` at positions {start}..{end} of dim `Time`: there are angles for positions 0..8")
        );
    }
    let rope = Rope::<Time, Width, f64>::interleaved(Time.of(8), Width.of(6), 10_000.0);
    let (error, _) = panicked(|| drop(rope.apply(&x, 0)));
    assert!(error.starts_with("dim `Width` has size 4 (at "), "{error}");
    assert!(error.contains("given size 6 (at ") && !error.contains("src/nn"), "{error}");
}
