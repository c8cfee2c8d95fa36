//~ words: module `join` is private
use typed_dims::__private::pattern::join::listed;

fn main() {}
