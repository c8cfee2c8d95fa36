//! The ledger of a program.

use super::*;
use typed_dims::tensors::stream::{Ledger, ledger};

fn program() -> Stream<i64, (A, C), A> {
    let x = abc_along_a();
    (&x + 1).slice(B, 1..).sum(B)
}

#[test]
fn each_operation_with_its_cost() {
    let (_, ledger) = ledger(program);
    assert_eq!(
        ledger.to_string(),
        "compute        add: [A!=2 B=3 C=4] -> [A!=2 B=3 C=4]\n\
         free           slice(B): [A!=2 B=3 C=4] -> [A!=2 B=2 C=4]\n\
         slower         sum(B): [A!=2 B=2 C=4] -> [A!=2 C=4]\n\
         1 free, 0 close to free, 1 compute, 1 slower; 0 with dynamic weights"
    );
}

#[test]
fn streams_are_shown_with_their_axes() {
    let x = from_vec((A.of(2), B.of(2)), vec![1.5, 2.0, 3.0, 4.0]).stream((B, A), A);
    assert_eq!(x.to_string(), "[[1.5, 3],\n [2, 4]]\nwith axes [B=2 A!=2]");
    assert_eq!(format!("{x:.1?}"), "[[1.5, 3.0],\n [2.0, 4.0]]\nwith axes [B=2 A!=2]");
    assert!(x == x.clone() && x != &x + 1.0 && x != x.slice(B, ..1));
}

#[test]
fn ledgers_can_be_nested_and_survive_a_panic() {
    let ((inner, failed), outer): ((Ledger, _), Ledger) = ledger(|| {
        let (_, inner) = ledger(program);
        let failed = std::panic::catch_unwind(|| ledger(|| abc_along_a().slice(A, 1..).slice(A, 5..)));
        program();
        (inner, failed.is_err())
    });
    assert!(failed);
    assert_eq!((inner.entries.len(), outer.entries.len()), (3, 7));
    assert_eq!(ledger(|| ()).1, Ledger::default());
}
