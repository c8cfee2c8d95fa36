use crate::trace::{Misfit, Numeral, OpenFinder};

#[test]
fn numbers_that_do_not_fit_say_why() {
    let sizes = [vec![499], vec![503], vec![509], vec![521]];
    let numbers_of = |own: &mut [usize; 2], visit: &mut dyn FnMut(Numeral<'_>)| {
        own.iter_mut().for_each(|number| visit(Numeral::Unsigned(number)));
    };
    let mut rounds = sizes.each_ref().map(|own| [own[0] * own[0], own[0] - 2]);
    let mut finder = OpenFinder::new(&sizes);
    assert!(finder.add(rounds.each_mut(), numbers_of));
    let open = finder.finish();
    let mut data = rounds[0];
    assert_eq!(open.set(&mut data, &[5], numbers_of), Ok(()));
    assert_eq!(data, [25, 3]);
    assert_eq!(open.set(&mut data, &[usize::MAX], numbers_of), Err(Misfit::TooLarge));
    assert_eq!(open.set(&mut data, &[1], numbers_of), Err(Misfit::Other));
    let first = |own: &mut [usize; 2], visit: &mut dyn FnMut(Numeral<'_>)| {
        visit(Numeral::Unsigned(&mut own[0]));
    };
    assert_eq!(open.set(&mut data, &[5], first), Err(Misfit::Other));
}

#[test]
fn products_of_sums_have_formulas() {
    let primes = [[499, 541, 599], [503, 547, 601], [509, 557, 607], [521 * 2, 563 * 2, 613 * 2]];
    let sizes = primes.map(|own| own.to_vec());
    type Numbers = [isize; 6];
    let numbers_of = |own: &mut Numbers, visit: &mut dyn FnMut(Numeral<'_>)| {
        own.iter_mut().for_each(|number| visit(Numeral::Signed(number)));
    };
    let numbers = |own: &[usize]| -> Numbers {
        let [h, w, n] = [own[0], own[1], own[2]].map(|own| own as isize);
        [
            (h + 2) * (w + 2),
            5 * (h - 2) * (w - 4) * (n + 100),
            n * (2 * h + 1) * (2 * w - 1),
            (h + 2) * (w + 2) - 1,
            -(3 * h - 2) * (3 * h - 2) * (w + 1),
            (h - 6) * n * n,
        ]
    };
    let mut rounds = sizes.each_ref().map(|own| numbers(own));
    let mut finder = OpenFinder::new(&sizes);
    assert!(!finder.add(rounds.each_mut(), numbers_of), "a product of sums minus 1 is no such product");
    let numbers = |own: &[usize]| {
        let mut numbers = numbers(own);
        numbers[3] = 0;
        numbers
    };
    let mut rounds = sizes.each_ref().map(|own| numbers(own));
    let mut finder = OpenFinder::new(&sizes);
    assert!(finder.add(rounds.each_mut(), numbers_of));
    let open = finder.finish();
    for sizes in [[7, 4, 3], [1000, 2, 1], [2, 5, 64], [1, 9, 3], [1, 3, 3]] {
        let mut data = rounds[0];
        let fits = sizes[0] >= 2 && sizes[1] >= 4;
        let set = open.set(&mut data, &sizes, numbers_of);
        assert_eq!(set, if fits { Ok(()) } else { Err(Misfit::Other) }, "{sizes:?}");
        assert!(!fits || data == numbers(&sizes), "{sizes:?}: {data:?}");
    }
    let mut data = rounds[0];
    assert_eq!(open.set(&mut data, &[7, usize::MAX, 3], numbers_of), Err(Misfit::TooLarge));
}

/// Floats may be products of negative numbers.
#[test]
fn floats_are_products_of_sums() {
    let sizes = [[499, 541], [503, 547], [509, 557], [521 * 2, 563 * 2]].map(|own| own.to_vec());
    let float_of = |own: &mut u64, visit: &mut dyn FnMut(Numeral<'_>)| visit(Numeral::Float(own));
    let float = |own: &[usize]| ((own[0] as f64 - 2.0) * (own[1] as f64 - 3.0)).to_bits();
    let mut rounds = sizes.each_ref().map(|own| float(own));
    let mut finder = OpenFinder::new(&sizes);
    assert!(finder.add(rounds.each_mut(), float_of));
    let open = finder.finish();
    for sizes in [[5, 8], [1, 8], [5, 1], [1, 1]] {
        let mut data = rounds[0];
        assert_eq!(open.set(&mut data, &sizes, float_of), Ok(()));
        assert_eq!(f64::from_bits(data), f64::from_bits(float(&sizes)), "{sizes:?}");
    }
}

/// The divisors of these fractions are not just products of sizes. The fractions are those that a
/// function computes, to the bit.
#[test]
fn fractions_have_divisors_of_several_terms() {
    let sizes = [[499, 541], [503, 547], [509, 557], [521 * 2, 563 * 2]].map(|own| own.to_vec());
    type Numbers = [u64; 6];
    let floats_of = |own: &mut Numbers, visit: &mut dyn FnMut(Numeral<'_>)| {
        own.iter_mut().for_each(|number| visit(Numeral::Float(number)));
    };
    let floats = |own: &[usize]| -> Numbers {
        let [n, m] = [own[0], own[1]];
        let single = |whole: usize| f64::from(1.0 / whole as f32);
        let numbers = [
            single(n - 1),
            -2.0 * single(3 * (n + 1)),
            single((n - 1) * m * 64),
            single((n - 1) * (m - 1)),
            1.0 / (n * m - 1) as f64,
            2.0 / (2 * n + 1) as f64,
        ];
        numbers.map(f64::to_bits)
    };
    let mut rounds = sizes.each_ref().map(|own| floats(own));
    let mut finder = OpenFinder::new(&sizes);
    assert!(finder.add(rounds.each_mut(), floats_of));
    let open = finder.finish();
    for sizes in [[2, 2], [7, 4], [3000, 2], [2, 512], [1, 3]] {
        let mut data = rounds[0];
        assert_eq!(open.set(&mut data, &sizes, floats_of), Ok(()));
        assert_eq!(data.map(f64::from_bits), floats(&sizes).map(f64::from_bits), "{sizes:?}");
    }
    let float_of = |own: &mut u64, visit: &mut dyn FnMut(Numeral<'_>)| visit(Numeral::Float(own));
    let others: [fn(f64) -> f64; 3] = [|n| 1.0 / (n + 0.01), |n| 1.0 / n.sqrt(), |n| (1.0 / n).sin()];
    for number in others {
        for is_single in [false, true] {
            let rounded = |value: f64| if is_single { f64::from(value as f32) } else { value };
            let mut rounds = sizes.each_ref().map(|own| rounded(number(own[0] as f64)).to_bits());
            assert!(!OpenFinder::new(&sizes).add(rounds.each_mut(), float_of));
        }
    }
}
