//! Conway's Game of Life on a torus.
//!
//! ```text
//! cargo run --example life
//! ```

use typed_dims::prelude::*;

/// The next board. A cell lives if exactly three of the nine cells in its 3 x 3 block are alive, or
/// if exactly four are and it is one of them.
fn step(board: &Array2<u8>) -> Array2<u8> {
    let (h, w) = board.dim();
    let around = tensor!([y in 0..h, x in 0..w] =>
        sum[dy in 0..3, dx in 0..3](board[(y + dy + h - 1) % h, (x + dx + w - 1) % w]));
    tensor!([y, x] => if around[y, x] == 3 || around[y, x] == 4 && board[y, x] == 1 { 1 } else { 0 })
}

fn show(board: &Array2<u8>) -> String {
    let line = |row: ndarray::ArrayView1<'_, u8>| -> String {
        row.iter().map(|&cell| if cell == 1 { '#' } else { '.' }).collect()
    };
    board.rows().into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Five cells that move one cell down and one to the right every four steps.
fn glider() -> Array2<u8> {
    let mut board = Array2::zeros((6, 8));
    for at in [[0, 1], [1, 2], [2, 0], [2, 1], [2, 2]] {
        board[at] = 1;
    }
    board
}

fn main() {
    let mut board = glider();
    for time in 0..=4 {
        println!("step {time}\n{}\n", show(&board));
        board = step(&board);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glider_glides_around_the_torus() {
        let start = glider();
        let mut board = start.clone();
        for _ in 0..4 {
            board = step(&board);
        }
        let moved = Array2::from_shape_fn((6, 8), |(y, x)| start[[(y + 5) % 6, (x + 7) % 8]]);
        assert_eq!(board, moved);
        // After 24 moves, the glider has gone around in both directions.
        for _ in 4..4 * 24 {
            board = step(&board);
        }
        assert_eq!(board, start);
    }
}
