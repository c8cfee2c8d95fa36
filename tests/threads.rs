//! Results do not depend on the number of threads, except for the rounding of matrix products and
//! of decompositions of large matrices. Large sums are accurate.

use ndarray::{Array1, Array2, Axis};
use rayon::ThreadPoolBuilder;
use std::cell::RefCell;
use std::sync::mpsc::{Sender, channel};
use typed_dims::prelude::*;

fn on<T: Send>(threads: usize, f: impl Fn() -> T + Send) -> T {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool").install(f)
}

/// Pseudorandom numbers between -1 and 1.
fn noise(rows: usize, columns: usize) -> Array2<f32> {
    let mut state = 1u32;
    Array2::from_shape_simple_fn((rows, columns), || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    })
}

#[test]
fn a_sum_to_one_element_has_the_same_bits_on_any_number_of_threads() {
    let x = noise(1031, 1021);
    let sum = |threads| {
        on(threads, || {
            dims!(i, j);
            let x = x.at((i, j));
            (
                x.sum((i, j)).order(()).to_bits(),
                x.var((i, j)).order(()).to_bits(),
                x.norm((j, i)).order(()).to_bits(),
            )
        })
    };
    assert_eq!(sum(1), sum(2));
    assert_eq!(sum(1), sum(5));
    let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
    // Rounding errors grow with the logarithm of the number of elements.
    assert!((f64::from(f32::from_bits(sum(2).0)) - exact).abs() < 1e-2);
}

#[test]
fn sums_of_many_are_as_accurate_as_pairwise_ones() {
    let ones = Array1::<f32>::ones(1 << 24);
    let mixed = Array1::from_shape_fn(1 << 22, |i| if i % 2 == 0 { 1e4f32 } else { 1e-4 });
    dims!(i, j);
    assert_eq!(ones.at(i).sum(i).order(()), (1 << 24) as f32);
    let exact = f64::from(1 << 21) * (f64::from(1e4f32) + f64::from(1e-4f32));
    let found = f64::from(mixed.at(j).sum(j).order(()));
    assert!((found / exact - 1.0).abs() < 1e-6, "{found} instead of {exact}");
    // Over the outer axis too.
    let tall = ones.into_shape_with_order((1 << 23, 2)).expect("the sizes fit");
    dims!(k, l);
    assert_eq!(tall.at((k, l)).sum(k).order(l).to_vec(), [(1 << 23) as f32; 2]);
}

/// The operands have either layout, and the results either order of axes.
#[test]
fn matrix_products_on_several_threads_are_those_on_one() {
    // Sums of integers are exact in any order.
    let whole = |rows, columns| noise(rows, columns).mapv(|x| (x * 4.0).round());
    for (m, k, n) in [(660, 40, 700), (1300, 33, 400), (96, 1100, 64), (66, 20000, 2)] {
        let (a, b) = (whole(m, k), whole(k, n));
        let (a_turned, b_turned) =
            (a.t().as_standard_layout().to_owned(), b.t().as_standard_layout().to_owned());
        let expected = a.dot(&b);
        for threads in [1, 2, 3] {
            on(threads, || {
                for (a, b) in [
                    (a.view(), b_turned.t()),
                    (a_turned.t(), b.view()),
                    (a_turned.t(), b_turned.t()),
                    (a.view(), b.view()),
                ] {
                    dims!(i, j, l);
                    assert_eq!((a.at((i, l)) * b.at((l, j))).sum(l).order((i, j)), expected);
                    let mut turned = Array2::zeros((n, m));
                    (b.at((l, j)) * a.at((i, l))).sum_into(l, &mut turned, (j, i));
                    assert_eq!(turned, expected.t());
                }
            });
        }
    }
}

#[test]
fn the_first_of_equal_elements_is_found_in_any_part() {
    let mut x = Array2::<f32>::zeros((700, 1024));
    x[[555, 77]] = 2.0;
    x[[556, 3]] = 2.0;
    for threads in [1, 3] {
        let at = on(threads, || {
            dims!(i, j);
            x.at((i, j)).argmax((i, j)).order(())
        });
        assert_eq!(at, 555 * 1024 + 77);
    }
}

#[test]
fn updates_on_several_threads_are_those_on_one() {
    let x = noise(513, 1027);
    let run = |threads| {
        on(threads, || {
            let (mut sum, mut turned) = (Array2::<f32>::ones((1027, 513)), Array2::zeros((1027, 513)));
            dims!(i, j);
            sum.at_mut((j, i)).add_assign(x.at((i, j)) * 2.0);
            (x.at((i, j)) * 3.0).order_into(&mut turned.view_mut().reversed_axes(), (i, j));
            (sum, turned)
        })
    };
    let (sum, turned) = run(3);
    assert_eq!(sum, x.t().mapv(|x| x * 2.0 + 1.0));
    assert_eq!(turned, x.t().mapv(|x| x * 3.0));
    assert_eq!(run(1), (sum, turned));
}

#[test]
fn elements_that_are_updated_twice_belong_to_one_thread() {
    let x = Array2::<i64>::ones((512, 512));
    let sums = on(4, || {
        let mut sums = Array1::<i64>::zeros(1023);
        dims!(i = 512, j = 512);
        sums.at_mut(i + j).add_assign(x.at((i, j)));
        sums
    });
    for (at, &sum) in sums.iter().enumerate() {
        assert_eq!(sum, (at + 1).min(1023 - at) as i64);
    }
}

#[test]
fn scans_on_several_threads_are_those_on_one() {
    let x = noise(600, 513);
    let run = |threads| {
        on(threads, || {
            dims!(i, j);
            let scans = (x.at((i, j)).softmax(j).order((i, j)), x.at((i, j)).cumsum(i).order((i, j)));
            let owned = x.at((i, j)).eval();
            assert_eq!(owned.softmax(j).order((i, j)), scans.0);
            scans
        })
    };
    let (softmax, cumsum) = run(3);
    assert_eq!(run(1), (softmax.clone(), cumsum.clone()));
    assert!(softmax.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-5));
    assert!((cumsum[[599, 7]] - x.column(7).sum()).abs() < 1e-3);
}

/// When a thread-local computes in its `drop`, other thread-locals may already be dropped.
#[test]
fn a_local_that_is_dropped_with_its_thread_may_compute() {
    struct Last(Array2<f32>, Sender<f32>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.send(doubled(&self.0)).expect("the receiver waits");
        }
    }
    fn doubled(x: &Array2<f32>) -> f32 {
        dims!(i, j);
        (x.at((i, j)) + x.at((i, j))).order((i, j))[[999, 999]]
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || {
        let x = Array2::ones((1000, 1000));
        LAST.with(|last| *last.borrow_mut() = Some(Last(x.clone(), sender)));
        doubled(&x)
    });
    assert_eq!(thread.join().expect("the thread does not panic"), 2.0);
    assert_eq!(receiver.recv(), Ok(2.0));
}
