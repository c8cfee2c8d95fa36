//! Peers whose arrays are in memory when they are needed, not in a cache.

use crate::bench::Peer;

/// The peers of a case that was set up several times, each time with arrays of its own: a call takes the next of them.
pub fn in_turns(setups: impl Iterator<Item = Vec<Peer>>) -> Vec<Peer> {
    let mut peers: Vec<Vec<Peer>> = Vec::new();
    for setup in setups {
        peers.resize_with(setup.len(), Vec::new);
        peers.iter_mut().zip(setup).for_each(|(copies, peer)| copies.push(peer));
    }
    peers.into_iter().map(rotating).collect()
}

fn rotating(copies: Vec<Peer>) -> Peer {
    let name = copies[0].name;
    let (mut calls, mut results): (Vec<_>, Vec<_>) =
        copies.into_iter().map(|copy| (copy.time, copy.result)).unzip();
    // From here on the system has given out the memory of all results.
    calls.iter_mut().for_each(|call| _ = call(1));
    let mut next = (0..calls.len()).cycle();
    Peer {
        name,
        time: Box::new(move |times| next.by_ref().take(times).map(|at| calls[at](1)).sum()),
        result: results.swap_remove(0),
    }
}
