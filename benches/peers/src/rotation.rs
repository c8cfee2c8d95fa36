//! Peers whose arrays are in memory, not in a cache, at each call.

use crate::bench::Peer;
use std::cell::Cell;
use std::rc::Rc;

/// Which copy of the arrays was used last, shared by all peers of a case. Peers may share inputs,
/// so a copy is only used again after all others.
#[derive(Clone)]
pub struct Turn(Rc<Cell<usize>>);

impl Turn {
    pub fn new() -> Turn {
        Turn(Rc::default())
    }

    /// The index of the copy to use next.
    pub fn next(&self, copies: usize) -> usize {
        self.0.set((self.0.get() + 1) % copies);
        self.0.get()
    }
}

/// The peers of a case that was set up several times, each time with new arrays. Each call uses the
/// next setup.
pub fn in_turns(setups: impl Iterator<Item = Vec<Peer>>, turn: &Turn) -> Vec<Peer> {
    let mut peers: Vec<Vec<Peer>> = Vec::new();
    for setup in setups {
        peers.resize_with(setup.len(), Vec::new);
        peers.iter_mut().zip(setup).for_each(|(copies, peer)| copies.push(peer));
    }
    peers.into_iter().map(|copies| rotating(copies, turn.clone())).collect()
}

fn rotating(copies: Vec<Peer>, turn: Turn) -> Peer {
    let name = copies[0].name;
    let (mut calls, mut results): (Vec<_>, Vec<_>) =
        copies.into_iter().map(|copy| (copy.time, copy.result)).unzip();
    // Allocates the memory of all results.
    calls.iter_mut().for_each(|call| _ = call(1));
    Peer {
        name,
        time: Box::new(move |times| {
            let copies = calls.len();
            (0..times).map(|_| calls[turn.next(copies)](1)).sum()
        }),
        result: results.swap_remove(0),
    }
}
