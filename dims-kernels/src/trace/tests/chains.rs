//! Long chains of steps are dropped and have gradients without recursion, which would overflow the
//! stack.

use crate::error::Error;
use crate::loops::steps::PlanStep;
use crate::memory::buffer::Buffer;
use crate::ops::code::DType;
use crate::trace::{Field, Held, Node, NodeStep, Part, Rule, StridedPlace, gradients};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::thread;

const STEPS: usize = 100_000;

fn on_a_small_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(256 * 1024);
        small.spawn_scoped(scope, f).expect("a thread can be started").join().expect("the thread ends")
    })
}

fn variable() -> Buffer<f32> {
    Buffer::traced(vec![1.0; 2], Node::variable(DType::F32, 2, None, &Arc::default()))
}

fn read(held: &Arc<dyn Held>) -> Field {
    Field::held(&[2], held, StridedPlace::strided(0, [1]))
}

fn next(held: &Arc<dyn Held>) -> Buffer<f32> {
    let part = Part { field: read(held), place: StridedPlace::strided(0, [1]) };
    Buffer::traced(vec![1.0; 2], Node::new(DType::F32, 2, NodeStep::Parts(vec![part]), None))
}

/// A step with its own rule, which passes the cotangent on.
struct Same(Field);

impl Rule for Same {
    fn name(&self) -> &'static str {
        "same"
    }

    fn operands(&self) -> Vec<&Field> {
        vec![&self.0]
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        vec![&mut self.0]
    }

    fn plan(&self, _: &[Field], _: usize, _: usize) -> Option<PlanStep> {
        None
    }

    fn pull(
        &self,
        _: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        _: bool,
    ) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        Ok(self.0.pull(&read(&cotangent)))
    }
}

#[test]
fn of_parts_are_dropped_without_recursion() {
    on_a_small_stack(|| {
        let mut last = variable();
        for _ in 0..1_000_000 {
            last = next(&last.held());
        }
        drop(last);
    });
}

#[test]
fn of_rules_are_dropped_without_recursion() {
    on_a_small_stack(|| {
        let mut last = variable();
        for _ in 0..STEPS {
            let rule = NodeStep::Rule(Box::new(Same(read(&last.held()))));
            last = Buffer::traced(vec![1.0; 2], Node::new(DType::F32, 2, rule, None));
        }
        drop(last);
    });
}

/// Each step reads the previous one twice, and other memory that all steps share.
#[test]
fn with_shared_operands_are_dropped_once() {
    on_a_small_stack(|| {
        let (first, shared) = (variable(), variable());
        let mut last = first.clone();
        for _ in 0..STEPS {
            let held = last.held();
            let field = read(&held).map([&read(&shared.held())], |build, a, [b]| {
                build.binary(crate::ops::code::BinaryOpcode::Mul, a, b)
            });
            let parts = vec![
                Part { field, place: StridedPlace::strided(0, [1]) },
                Part { field: read(&held), place: StridedPlace::strided(0, [1]) },
            ];
            last = Buffer::traced(vec![1.0; 2], Node::new(DType::F32, 2, NodeStep::Parts(parts), None));
        }
        drop(last);
        assert_eq!(first[..], [1.0, 1.0]);
        assert!(first.node().is_some() && shared.node().is_some(), "`first` and `shared` keep their nodes");
    });
}

/// A long chain, as in an optimizer loop that forgets to detach.
#[test]
fn whose_last_elements_are_taken() {
    on_a_small_stack(|| {
        let mut last = variable();
        for _ in 0..STEPS {
            last = next(&last.held());
        }
        assert_eq!(last.into_vec(), [1.0, 1.0]);
    });
}

#[test]
fn have_gradients() {
    on_a_small_stack(|| {
        let first = variable();
        let mut last = first.clone();
        for _ in 0..STEPS {
            last = next(&last.held());
        }
        let node = Arc::clone(first.node().expect("a variable has a node"));
        let cotangent = Buffer::from(vec![2.0f32, 3.0]).held();
        for recorded in [false, true] {
            let outputs = vec![(last.held(), Arc::clone(&cotangent))];
            let mut found =
                gradients(outputs, core::slice::from_ref(&node), &[], recorded).expect("there is memory");
            let gradient = found.take(&node).expect("the output depends on the input");
            assert_eq!(Buffer::<f32>::of_held(&gradient).expect("the elements are `f32`")[..], [2.0, 3.0]);
        }
    });
}
