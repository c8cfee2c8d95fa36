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
