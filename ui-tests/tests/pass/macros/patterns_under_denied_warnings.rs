#![deny(warnings, clippy::pedantic)]
#![allow(clippy::many_single_char_names)]
use typed_dims::einsum_path;
use typed_dims::prelude::*;

fn scores(q: &Array3<f32>, k: &Array3<f32>) -> Array3<f32> {
    einsum!("bid,bjd->bij", q, k)
}

fn pooled(x: &Array4<f32>) -> Array4<f32> {
    reduce!(x, b c (h h2) (w w2) -> b c h w, max, h2 = 2, w2 = 2)
}

macro_rules! flat {
    ($x:expr, $($name:ident)*) => {
        rearrange!($x, $($name)* -> ($($name)*))
    };
}

#[test]
fn compiles_and_runs() {
    let x = Array3::<f32>::ones((2, 4, 6));
    let total: f32 = [scores(&x, &x)].iter().map(|s| einsum!("bij->", s)).sum();
    assert!(total > 0.0);
    assert_eq!(pooled(&repeat!(x, b h w -> b 1 h w)).dim(), (2, 1, 2, 3));
    assert_eq!(flat!(&x + 1.0, a b c).len(), 48);
    let (left, right) = rearrange!(x, b (h + 1) w -> b h w, b w);
    assert_eq!(rearrange_view!(left, b h w -> w h b).dim(), (6, 3, 2));
    let (packed, shape) = pack!([left, right], b *);
    let [_, last] = unpack!(packed, shape, b *);
    assert_eq!(last, right.into_dyn());
    let s = parse_shape!(x, "b _ w");
    assert_eq!((s.b, s.w), (2, 6));
    assert!(try_gather!(x[b _ w], [3, 9][k] => b k w).is_err());
    assert_eq!(einsum_path!("ij,jk->ik", packed, packed.t()).steps.len(), 1);
}
