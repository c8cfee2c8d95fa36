//! `rename`, `index`, `slice`, `split`, `flatten`, `unflatten`, `concat`, `stack`: on views,
//! expressions and owned tensors.

use crate::reference::Reference;
use crate::reference::input::{Case, Sample, cases, filled_cases};
use crate::{A, B, C, D, E, F, assert_same, bound, inputs, properties};
use typed_dims::prelude::*;

fn renames(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C], y[B] => refs);
    let [rx, ry] = &refs;
    assert_same!(bound!(x[A B C]).rename(B, E), [E C A], rx.rename("B", "E"));
    let expected = rx.zip(ry, |x, y| x.minus(y)).rename("B", "D").rename("A", "F");
    assert_same!((bound!(x[A B C]) - bound!(y[B])).rename(B, D).rename(A, F), [C F D], expected);
    // The same axis twice: differences of all pairs.
    let expected = rx.zip(&rx.rename("A", "D"), |x, y| x.minus(y));
    assert_same!(bound!(x[A B C]) - bound!(x[A B C]).rename(A, D), [D C A B], expected);
}

fn slices(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C], y[B] => refs);
    let [rx, ry] = &refs;
    let (b, c) = (case.size("B"), case.size("C"));
    let value = rx.zip(ry, |x, y| x.minus(y));
    let start = random.below(b + 1);
    let end = start + random.below(b + 1 - start);
    let at = random.below(c);
    let expected = value.slice("B", start, end).index("C", at);
    assert_same!((bound!(x[A B C]) - bound!(y[B])).slice(B, start..end).index(C, at), [B A], expected);
    let back = at as i64 - c as i64;
    assert_same!((bound!(x[A B C]) - bound!(y[B])).index(C, back).slice(B, start..), [A B],
        value.index("C", at).slice("B", start, b));
    assert_same!(bound!(x[A B C]).eval().slice(B, ..end).slice(B, end.min(1)..), [C A B],
        rx.slice("B", end.min(1), end));
    if end < b {
        assert_same!(bound!(x[A B C]).slice(B, start..=end), [C A B], rx.slice("B", start, end + 1));
        assert_same!(bound!(x[A B C]).slice(B, ..=end as i32 - b as i32), [C A B], rx.slice("B", 0, end + 1));
    }
    // Slices of values computed from dims.
    dims!(i = b, j = c);
    let found = (i * 10 + j).slice(i, start..end).index(j, at).order(i);
    assert_eq!(found.to_vec(), (start..end).map(|i| (i * 10 + at) as isize).collect::<Vec<_>>());
    // Slices of a gather.
    let ids = case.buffer::<usize>(&mut random, &["D"], |r| r.below(b));
    let rd = Reference::bind(&ids.dynamic(), &["D"]);
    let (xv, iv) = (x.view::<ndarray::Ix3>(), ids.view::<ndarray::Ix1>());
    let last = case.size("D") - 1;
    let gathered = xv.at((A, iv.at(D), C)).slice(D, last..).rename(D, E).index(A, 0);
    let expected = Reference::build(&[("E", 1), ("C", c)], |at| {
        rx.get(&vec![("A", 0), ("B", rd.data[last]), ("C", at[1].1)])
    });
    assert_same!(gathered, [C E], expected);
}

fn flattened(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C], y[B] => refs);
    let [rx, ry] = &refs;
    let value = rx.zip(ry, |x, y| x.minus(y));
    let flat = (bound!(x[A B C]) - bound!(y[B])).flatten((C, A), E);
    let reference = value.flatten(&["C", "A"], "E");
    assert_eq!(flat.size(E), reference.size("E"));
    assert_same!(&flat, [B E], reference);
    assert_same!((&flat).flatten((E, B), F), [F], reference.flatten(&["E", "B"], "F"));
    // Dims can be flattened into one of them.
    assert_same!(bound!(x[A B C]).flatten((B, C), B), [B A], rx.flatten(&["B", "C"], "W").rename("W", "B"));
    dims!(c = case.size("C"), a);
    if case.size("C") > 0 {
        let split = (&flat).unflatten(E, (c, a));
        assert_eq!(a.size(), case.size("A"));
        assert_same!(split.rename(c, C).rename(a, A), [A B C], value);
    }
    dims!(p = 1, q);
    let expected = rx.unflatten("B", &[("p", 1), ("q", case.size("B"))]);
    assert_same!(bound!(x[A B C]).unflatten(B, (q, p)), [p A q C], expected);
}

fn joined(case: &Case) {
    let mut random = case.random();
    let lengths = [case.size("D"), case.size("E"), case.size("F")];
    for along in 0..3 {
        let mut parts = Vec::new();
        for length in lengths {
            let mut part = case.clone();
            part.sizes[along] = length;
            parts.push(part.buffer::<i32>(&mut random, &["A", "B", "C"], |r| r.small()));
        }
        let references: Vec<_> =
            parts.iter().map(|part| Reference::bind(&part.dynamic(), &["A", "B", "C"])).collect();
        let views: Vec<_> = parts.iter().map(|part| part.view::<ndarray::Ix3>()).collect();
        let tensors: Vec<_> = views.iter().map(|view| view.at((A, B, C))).collect();
        let joined = match along {
            0 => concat(A, tensors.clone()),
            1 => concat(B, tensors.clone()),
            _ => concat(C, tensors.clone()),
        };
        let name = ["A", "B", "C"][along];
        assert_same!(&joined, [C A B], Reference::concat(name, &references));
        // Splitting returns the parts unchanged.
        macro_rules! cut {
            ($dim:ident) => {
                for (piece, part) in (&joined).split($dim, &lengths).into_iter().zip(&references) {
                    assert_same!(piece, [B C A], part);
                }
            };
        }
        match along {
            0 => cut!(A),
            1 => cut!(B),
            _ => cut!(C),
        }
    }
    inputs!(case, random, i32; x[A C], y[C A] => refs);
    let (xv, yv) = (x.view::<ndarray::Ix2>(), y.view::<ndarray::Ix2>());
    let (tx, ty) = (xv.at((A, C)).eval(), yv.at((C, A)).eval());
    let stacked = stack(B, [&tx, &ty, &tx]);
    let parts = [refs[0].clone(), refs[1].clone(), refs[0].clone()];
    assert_same!(stacked, [B C A], Reference::stack("B", &parts));
}

fn positional(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C D] => refs);
    let [rx] = &refs;
    let view = x.view::<ndarray::Ix4>();
    let t = || view.at((A, .., C, ..));
    let order: [&[&str]; 4] = [&["E"], &["C"], &["B"], &["D"]];
    assert_eq!(t().rename(A, E).order((E, C)).into_dyn(), rx.rename("A", "E").order(&order));
    assert_eq!(t().index(A, 0).order(C).into_dyn(), rx.index("A", 0).order(&order[1..]));
    assert_eq!(
        t().slice(C, 1..).order((A, C)).into_dyn(),
        rx.slice("C", 1, case.size("C")).order(&[&["A"], order[1], order[2], order[3]])
    );
    assert_eq!(t().flatten((C, A), E).order(E).into_dyn(), rx.order(&[&["C", "A"], &["B"], &["D"]]));
    let parts = [t().eval(), t().eval()];
    let twice = Reference::concat("C", &[rx.clone(), rx.clone()]);
    assert_eq!(concat(C, &parts).order((A, C)).into_dyn(), twice.order(&[&["A"], &["C"], &["B"], &["D"]]));
    let twice = Reference::stack("E", &[rx.clone(), rx.clone()]);
    assert_eq!(
        stack(E, &parts).order((E, A, C)).into_dyn(),
        twice.order(&[&["E"], &["A"], &["C"], &["B"], &["D"]])
    );
    // A positional axis of size 1 broadcasts after the slice.
    let short = view.at((A, 0..1, C, ..));
    let found = (short.slice(A, ..1) + t().slice(A, ..1)).order((A, C)).into_dyn();
    let expected = rx.slice("A", 0, 1).zip(&rx.slice("A", 0, 1).index("B", 0), |x, y| x.plus(y));
    assert_eq!(found, expected.order(&[&["A"], &["C"], &["B"], &["D"]]));
}

/// Renamed dims also work in contractions.
fn contracted(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B] => refs);
    let [rx] = &refs;
    let gram = crate::reference::contract(&[rx.clone(), rx.rename("A", "C")], &["B"]);
    let xv = x.view::<ndarray::Ix2>();
    let t = xv.at((A, B));
    assert_same!((t * t.rename(A, C)).sum(B), [C A], gram);
    let own = t.eval();
    assert_same!((&own * (&own).rename(A, C)).sum(B), [A C], gram);
    if case.size("B") > 0 {
        let sliced = crate::reference::contract(
            &[rx.slice("B", 1, case.size("B")), rx.slice("B", 1, case.size("B")).rename("A", "C")],
            &["B"],
        );
        assert_same!((t.slice(B, 1..) * t.slice(B, 1..).rename(A, C)).sum(B), [A C], sliced);
    }
}

properties! {
    renamed_dims 40: |case in cases(4), _which| renames(&case);
    slices_and_picks 80: |case in filled_cases(5), _which| slices(&case);
    flattened_and_split_dims 60: |case in cases(4), _which| flattened(&case);
    joined_parts 60: |case in cases(4), _which| joined(&case);
    positional_axes_stay 40: |case in filled_cases(4), _which| positional(&case);
    contractions_of_views 60: |case in cases(5), _which| contracted(&case);
}
