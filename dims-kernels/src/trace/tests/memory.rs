//! Traced memory is found by the address of its elements, on every thread. No other memory is
//! found.

use crate::memory::buffer::Buffer;
use crate::ops::code::DType;
use crate::trace::registry::find;
use crate::trace::{Node, is_active};
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Barrier, mpsc};
use std::thread;

fn traced(len: usize) -> Buffer<f64> {
    Buffer::traced(vec![0.5; len], Node::variable(DType::F64, len, None, &Arc::default()))
}

fn id_of<T>(element: &T) -> Option<u64> {
    find(core::ptr::from_ref(element).cast()).map(|held| held.node().expect("what is found is traced").id)
}

#[test]
fn elements_are_found_by_their_addresses() {
    let (first, second) = (traced(100), traced(1));
    let plain = Buffer::from(vec![0.5f64; 100]);
    for (buffer, id) in [(&first, first.node().unwrap().id), (&second, second.node().unwrap().id)] {
        assert!(buffer.iter().all(|element| id_of(element) == Some(id)));
        let behind = buffer.as_ptr_range().end;
        assert_ne!(
            find(behind.cast()).map(|held| held.node().unwrap().id),
            Some(id),
            "the end is not an element"
        );
    }
    assert!(is_active());
    assert!(plain.iter().all(|element| id_of(element).is_none()));
    let local = 0.5f64;
    assert_eq!(id_of(&local), None);
}

#[test]
fn what_is_dropped_is_found_no_more() {
    for _ in 0..100 {
        let buffer = traced(1000);
        let (clone, address) = (buffer.clone(), buffer.as_ptr());
        let id = buffer.node().unwrap().id;
        drop(buffer);
        assert_eq!(id_of(&clone[7]), Some(id), "the clone keeps the memory");
        drop(clone);
        assert_ne!(find(address.cast()).map(|held| held.node().unwrap().id), Some(id));
        // Memory that is taken out of its buffer is an ordinary vector.
        let buffer = traced(1000);
        let data = buffer.into_vec();
        assert!(data.iter().all(|element| id_of(element).is_none()));
    }
}

/// Memory without elements is never found, whatever is stored at its address.
#[test]
fn without_elements() {
    let (none, some) = (traced(0), traced(3));
    assert!(none.node().is_some());
    assert_eq!(id_of(&some[0]), Some(some.node().unwrap().id));
    drop(none);
    assert_eq!(id_of(&some[0]), Some(some.node().unwrap().id));
}

/// Each thread finds its own buffers and those that other threads sent.
#[test]
fn on_many_threads() {
    const THREADS: usize = 8;
    let (barrier, rounds) = (Barrier::new(THREADS), if cfg!(miri) { 5 } else { 300 });
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| mpsc::channel::<(Buffer<f64>, u64)>()).unzip();
    thread::scope(|scope| {
        for (number, receiver) in receivers.into_iter().enumerate() {
            let (senders, barrier) = (senders.clone(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                let mut own: Vec<(Buffer<f64>, u64)> = Vec::new();
                for round in 0..rounds {
                    let buffer = traced(1 + (round * 7 + number) % 40);
                    let id = buffer.node().expect("the buffer is traced").id;
                    if round % 3 == 0 {
                        senders[(number + round) % THREADS]
                            .send((buffer.clone(), id))
                            .expect("the receiver exists");
                    }
                    own.push((buffer, id));
                    own.extend(receiver.try_iter());
                    for (buffer, id) in &own {
                        assert!(is_active());
                        assert_eq!(id_of(buffer.last().expect("the buffer has an element")), Some(*id));
                    }
                    if own.len() > 10 {
                        own.drain(..7);
                    }
                }
                // Keeps the receiver alive until no thread sends any more.
                barrier.wait();
            });
        }
        drop(senders);
    });
}
