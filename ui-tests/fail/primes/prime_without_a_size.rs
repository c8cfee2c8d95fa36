//~ words: dimension `Prime<Item>` has no size
use typed_dims::prelude::*;

dims! { struct Item; }

fn main() {
    println!("{}", zeros::<f32, _>((Item.of(2), prime(Item))));
}
