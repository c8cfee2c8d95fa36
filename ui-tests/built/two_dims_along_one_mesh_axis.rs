//~ words: the input has the dims `Row` and `In` | split along the mesh axis `Data` | another axis, or not at all
use typed_dims::prelude::*;
use typed_dims::program::{record, spec};
use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, mesh};

mesh! { pub struct Data; }
dims! { pub struct Row; pub struct In; }

fn main() {
    let program = record(|x: &Tensor<f32, (Row, In)>| x.sum(In), spec((Row.of(4), In.of(2)))).unwrap();
    let sharding = Sharding::new(Mesh::of(Data.of(2))).shard(Row, Data).shard(In, Data);
    println!("{}", sharding.plan(&program).unwrap());
}
