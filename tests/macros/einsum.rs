//! `einsum!` in string notation: the expressions of NumPy's and opt_einsum's documentation and test
//! suites, and random ones, compared with an oracle that parses the same string at run time.

use crate::reference::input::Random;
use crate::reference::patterns::{IntoDynamic, einsum as oracle, random};
use ndarray::{Array2, Array3, ArrayD, array, s};
use num_complex::Complex;
use typed_dims::einsum_path;
use typed_dims::pipeline::plan::explain::{Plan, PlanStep, ProductDims};
use typed_dims::prelude::*;

/// A test for each table of patterns and operand shapes: in `f64`, with operands of static and of
/// dynamic rank.
macro_rules! patterns {
    ($name:ident: $($pattern:literal, $([$($size:literal),*])*;)*) => {
        #[test]
        fn $name() {
            let mut wrong = Vec::new();
            $(
                let (mut one, mut two, mut three) = (Random(7), Random(7), Random(7));
                let operands = [$(random::<f64, _>(&mut one, [$($size),*]).into_dyn()),*];
                let expected = oracle($pattern, &operands);
                let found = einsum!($pattern, $(random::<f64, _>(&mut two, [$($size),*])),*).into_dynamic();
                let dynamic = einsum!($pattern, $(random::<f64, _>(&mut three, [$($size),*]).into_dyn()),*).into_dynamic();
                if found != expected || dynamic != expected {
                    wrong.push(format!("{}:\n{found}\n{dynamic}\ninstead of\n{expected}", $pattern));
                }
            )*
            assert!(wrong.is_empty(), "{} wrong patterns: {}", wrong.len(), wrong.join("\n"));
        }
    };
}

patterns! { numpy_sums_and_products:
    "i->", [3];
    "i", [3];
    "ij->", [3, 2];
    "ij->i", [3, 2];
    "ij->j", [3, 2];
    "ij->ji", [3, 2];
    "ji", [2, 3];
    "ij", [3, 2];
    "ba", [3, 2];
    "ii", [3, 3];
    "ii->i", [3, 3];
    "iii->", [3, 3, 3];
    "iii->i", [3, 3, 3];
    "iij->j", [3, 3, 2];
    "iij->i", [3, 3, 2];
    "iij->ij", [3, 3, 2];
    "ijij->", [3, 2, 3, 2];
    "ijij->ij", [3, 2, 3, 2];
    "ijji->ij", [3, 2, 2, 3];
    "ijji->ji", [3, 2, 2, 3];
    "iijj->ij", [3, 3, 2, 2];
    "iijj->", [3, 3, 2, 2];
    "...", [2, 3];
    "...->...", [2, 3];
    "...i", [2, 3, 3];
    "...i->...", [2, 3, 3];
    "i...->...", [3, 2, 3];
    "i...->i...", [3, 2, 3];
    "i...->...i", [3, 2, 3];
    "...i->i...", [2, 3, 3];
    "...ij->...ji", [2, 3, 3, 2];
    "ij...->ji...", [3, 2, 2, 3];
    "ij...->...", [3, 2, 2, 3];
    "...ii->...i", [2, 3, 3, 3];
    "...ii->...", [2, 3, 3, 3];
    "ii...->i...", [3, 3, 2, 3];
    "ii...->...", [3, 3, 2, 3];
    "i...i->...", [3, 2, 3, 3];
    "i...j->ji...", [3, 2, 3, 2];
    "i,i", [3] [3];
    "i,i->", [3] [3];
    "i,i->i", [3] [3];
    "i,j", [3] [2];
    "i,j->ij", [3] [2];
    "i,j->ji", [3] [2];
    "i,j->", [3] [2];
    "i,j->j", [3] [2];
    "i,j->i", [3] [2];
    "i,->i", [3] [];
    ",i->i", [] [3];
    "i,->", [3] [];
    ",i->", [] [3];
    ",->", [] [];
    ",", [] [];
    "ij,j", [3, 2] [2];
    "ij,j->i", [3, 2] [2];
    "ji,j", [2, 3] [2];
    "ji,j->i", [2, 3] [2];
    "ij,jk", [3, 2] [2, 3];
    "ij,jk->ik", [3, 2] [2, 3];
    "ij,jk->ki", [3, 2] [2, 3];
    "ij,kj->ik", [3, 2] [3, 2];
    "ji,jk->ik", [2, 3] [2, 3];
    "ji,kj->ik", [2, 3] [3, 2];
    "ij,ij", [3, 2] [3, 2];
    "ij,ij->ij", [3, 2] [3, 2];
    "ij,ij->i", [3, 2] [3, 2];
    "ij,ij->j", [3, 2] [3, 2];
    "ij,ji", [3, 2] [2, 3];
    "ij,ji->ij", [3, 2] [2, 3];
    "ij,ji->ji", [3, 2] [2, 3];
    "ij,jk,kl", [3, 2] [2, 3] [3, 2];
    "ij,jk,kl->il", [3, 2] [2, 3] [3, 2];
    "ij,jk,kl->li", [3, 2] [2, 3] [3, 2];
    "ij,jk,ki->", [3, 2] [2, 3] [3, 3];
    "ij,jk,ki->ijk", [3, 2] [2, 3] [3, 3];
    "i,i,i->i", [3] [3] [3];
    "i,i,i->", [3] [3] [3];
    "i,i,i", [3] [3] [3];
    "i,ij,ijk->ijk", [3] [3, 2] [3, 2, 3];
    "a,ab,abc->abc", [2] [2, 3] [2, 3, 4];
    "a,b,ab->ab", [2] [3] [2, 3];
    "mi,mi,mi->m", [2, 3] [2, 3] [2, 3];
    "im,im,im->m", [3, 2] [3, 2] [3, 2];
    "i,ij,j->", [3] [3, 2] [2];
    "i,ij,j", [3] [3, 2] [2];
    "ij,i->ij", [3, 2] [3];
    "ij,j->ij", [3, 2] [2];
    "ijk,jil->kl", [3, 2, 3] [2, 3, 2];
    "ijk,jil", [3, 2, 3] [2, 3, 2];
    "ijk,lji->kl", [3, 2, 3] [2, 2, 3];
    "ijk,ilm,njm,nlk,abc->", [3, 2, 3] [3, 2, 2] [3, 2, 2] [3, 2, 3] [2, 3, 4];
    "ijk,ijl->kl", [3, 2, 3] [3, 2, 2];
    "ijk,ikj->", [3, 2, 3] [3, 3, 2];
    "ijkl,kl->ij", [3, 2, 3, 2] [3, 2];
    "ijkl,ij->kl", [3, 2, 3, 2] [3, 2];
    "ijkl->il", [3, 2, 3, 2];
    "ijkl->", [3, 2, 3, 2];
    "ijkl->lkji", [3, 2, 3, 2];
    "ijkl->jl", [3, 2, 3, 2];
    "ijkl,lkji->", [3, 2, 3, 2] [2, 3, 2, 3];
    "ijkl,jl->ik", [3, 2, 3, 2] [2, 2];
    "ijkl,jilk->", [3, 2, 3, 2] [2, 3, 2, 3];
    "ijkl,ijkl->", [3, 2, 3, 2] [3, 2, 3, 2];
    "cl, cpx->lpx", [4, 2] [4, 3, 3];
    "cl,cpxy->lpxy", [4, 2] [4, 3, 3, 2];
    "lpx,cl->cpx", [2, 3, 3] [4, 2];
    "ijx,ijx->x", [3, 2, 3] [3, 2, 3];
    "ij,ij...->...ij", [3, 2] [3, 2, 2, 3];
    "...ij,...jk->...ik", [2, 3, 3, 2] [2, 3, 2, 3];
    "...ij,jk->...ik", [2, 3, 3, 2] [2, 3];
    "ij...,jk...->ik...", [3, 2, 2, 3] [2, 3, 2, 3];
    "...ij,...ij->...", [2, 3, 3, 2] [2, 3, 3, 2];
    "..., ...", [2, 3] [2, 3];
    "...,...->...", [2, 3] [2, 3];
    "...i, ...", [2, 3, 3] [2, 3];
    "...i,...", [2, 3, 3] [2, 3];
    "i...,i...", [3, 2, 3] [3, 2, 3];
    "i...,i...->i...", [3, 2, 3] [3, 2, 3];
    "...i,...i->...", [2, 3, 3] [2, 3, 3];
    "i...,i...->...", [3, 2, 3] [3, 2, 3];
    "...j,...jk->...k", [2, 3, 2] [2, 3, 2, 3];
    "...ij,...j->...i", [2, 3, 3, 2] [2, 3, 2];
    "ik,...k->i...", [3, 3] [2, 3, 3];
    "i...k,...k->i...", [3, 2, 3, 3] [2, 3, 3];
    "ik...,k->i...", [3, 3, 2, 3] [3];
    "ijklm,ijn", [3, 2, 3, 2, 2] [3, 2, 3];
    "ijklm,ijn,ijn->", [3, 2, 3, 2, 2] [3, 2, 3] [3, 2, 3];
    "ijk...,jk->i...", [3, 2, 3, 2, 3] [2, 3];
    "...k,...k->...", [2, 3, 3] [2, 3, 3];
    "b,...b->...", [3] [2, 3, 3];
    "ij,jk->ijk", [3, 2] [2, 3];
    "ij,k->ijk", [3, 2] [3];
    "i,ij,ij->j", [3] [3, 2] [3, 2];
    "bbcdc->d", [1, 1, 3, 1, 3];
    "x,yx,zx->xzy", [2] [3, 2] [4, 2];
    "z,mz,zm->", [2] [2, 2] [2, 2];
    "i,i,i,i->", [3] [3] [3] [3];
    "ji,ij,jj->i", [2, 3] [3, 2] [2, 2];
}

patterns! { opt_einsum_hadamard_and_products:
    "abc,abc->abc", [2, 3, 4] [2, 3, 4];
    "abc,abc,abc->abc", [2, 3, 4] [2, 3, 4] [2, 3, 4];
    "ab,ab,c->", [2, 3] [2, 3] [4];
    "ab,ab,c->c", [2, 3] [2, 3] [4];
    "ab,ab,cd,cd->", [2, 3] [2, 3] [4, 3] [4, 3];
    "ab,ab,cd,cd->ac", [2, 3] [2, 3] [4, 3] [4, 3];
    "ab,ab,cd,cd->cd", [2, 3] [2, 3] [4, 3] [4, 3];
    "ab,ab,cd,cd,ef,ef->", [2, 3] [2, 3] [4, 3] [4, 3] [2, 3] [2, 3];
    "ea,fb,gc,hd,abcd->efgh", [2, 2] [3, 3] [2, 4] [2, 3] [2, 3, 4, 3];
    "ea,fb,abcd,gc,hd->efgh", [2, 2] [3, 3] [2, 3, 4, 3] [2, 4] [2, 3];
    "abcd,ea,fb,gc,hd->efgh", [2, 3, 4, 3] [2, 2] [3, 3] [2, 4] [2, 3];
    "acdf,jbje,gihb,hfac,gfac,gifabc,hfac", [2, 4, 3, 3] [2, 3, 2, 2] [2, 3, 2, 3] [2, 3, 2, 4] [2, 3, 2, 4] [2, 3, 3, 2, 3, 4] [2, 3, 2, 4];
    "cd,bdhe,aidb,hgca,gc,hgibcd,hgac", [4, 3] [3, 3, 2, 2] [2, 3, 3, 3] [2, 2, 4, 2] [2, 4] [2, 2, 3, 3, 4, 3] [2, 2, 2, 4];
    "abhe,hidj,jgba,hiab,gab", [2, 3, 2, 2] [2, 3, 3, 2] [2, 2, 3, 2] [2, 3, 2, 3] [2, 2, 3];
    "bde,cdh,agdb,hica,ibd,hgicd,hiac", [3, 3, 2] [4, 3, 2] [2, 2, 3, 3] [2, 3, 4, 2] [3, 3, 3] [2, 2, 3, 4, 3] [2, 3, 2, 4];
    "chd,bde,agbc,hiad,hgc,hgi,hiad", [4, 2, 3] [3, 3, 2] [2, 2, 3, 4] [2, 3, 2, 3] [2, 2, 4] [2, 2, 3] [2, 3, 2, 3];
    "chd,bde,agbc,hiad,bdi,cgh,agdb", [4, 2, 3] [3, 3, 2] [2, 2, 3, 4] [2, 3, 2, 3] [3, 3, 3] [4, 2, 2] [2, 2, 3, 3];
    "bdhe,acad,hiab,agac,hibd", [3, 3, 2, 2] [2, 4, 2, 3] [2, 3, 2, 3] [2, 2, 2, 4] [2, 3, 3, 3];
    "ab,cd->abcd", [2, 3] [4, 3];
    "ab,cd,ef->abcdef", [2, 3] [4, 3] [2, 3];
    "ab,cd,ef->acdf", [2, 3] [4, 3] [2, 3];
    "ab,cd,de->abcde", [2, 3] [4, 3] [3, 2];
    "ab,cd,de->be", [2, 3] [4, 3] [3, 2];
    "ab,bcd,cd->abcd", [2, 3] [3, 4, 3] [4, 3];
    "ab,bcd,cd->abd", [2, 3] [3, 4, 3] [4, 3];
    "eb,cb,fb->cef", [2, 3] [4, 3] [3, 3];
    "dd,fb,be,cdb->cef", [3, 3] [3, 3] [3, 2] [4, 3, 3];
    "bca,cdb,dbf,afc->", [3, 4, 2] [4, 3, 3] [3, 3, 3] [2, 3, 4];
    "dcc,fce,ea,dbf->ab", [3, 4, 4] [3, 4, 2] [2, 2] [3, 3, 3];
    "fdf,cdd,ccd,afe->ae", [3, 3, 3] [4, 3, 3] [4, 4, 3] [2, 3, 2];
    "abcd,ad", [2, 3, 4, 3] [2, 3];
    "ed,fcd,ff,bcf->be", [2, 3] [3, 4, 3] [3, 3] [3, 4, 3];
    "baa,dcf,af,cde->be", [3, 2, 2] [3, 4, 3] [2, 3] [4, 3, 2];
    "bd,db,eac->ace", [3, 3] [3, 3] [2, 2, 4];
    "fff,fae,bef,def->abd", [3, 3, 3] [3, 2, 2] [3, 2, 3] [3, 2, 3];
    "efc,dbc,acf,fd->abe", [2, 3, 4] [3, 3, 4] [2, 4, 3] [3, 3];
    "ba,ac,da->bcd", [3, 2] [2, 4] [3, 2];
    "ab,ab", [2, 3] [2, 3];
    "ab,ba", [2, 3] [3, 2];
    "abc,abc", [2, 3, 4] [2, 3, 4];
    "abc,bac", [2, 3, 4] [3, 2, 4];
    "abc,cba", [2, 3, 4] [4, 3, 2];
    "ab,bc", [2, 3] [3, 4];
    "ab,cb", [2, 3] [4, 3];
    "ba,bc", [3, 2] [3, 4];
    "ba,cb", [3, 2] [4, 3];
    "abcd,cd", [2, 3, 4, 3] [4, 3];
    "abcd,ab", [2, 3, 4, 3] [2, 3];
    "abcd,cdef", [2, 3, 4, 3] [4, 3, 2, 3];
    "abcd,cdef->feba", [2, 3, 4, 3] [4, 3, 2, 3];
    "abcd,efdc", [2, 3, 4, 3] [2, 3, 3, 4];
    "aab,bc->ac", [2, 2, 3] [3, 4];
    "ab,bcc->ac", [2, 3] [3, 4, 4];
    "aab,bcc->ac", [2, 2, 3] [3, 4, 4];
    "baa,bcc->ac", [3, 2, 2] [3, 4, 4];
    "aab,ccb->ac", [2, 2, 3] [4, 4, 3];
    "aab,fa,df,ecc->bde", [2, 2, 3] [3, 2] [3, 3] [2, 4, 4];
    "ecb,fef,bad,ed->ac", [2, 4, 3] [3, 2, 3] [3, 2, 3] [2, 3];
    "bcf,bbb,fbf,fc->", [3, 4, 3] [3, 3, 3] [3, 3, 3] [3, 4];
    "bb,ff,be->e", [3, 3] [3, 3] [3, 2];
    "bcb,bb,fc,fff->", [3, 4, 3] [3, 3] [3, 4] [3, 3, 3];
    "fbb,dfd,fc,fc->", [3, 3, 3] [3, 3, 3] [3, 4] [3, 4];
    "afd,ba,cc,dc->bf", [2, 3, 3] [3, 2] [4, 4] [3, 4];
    "adb,bc,fa,cfc->d", [2, 3, 3] [3, 4] [3, 2] [4, 3, 4];
    "bbd,bda,fc,db->acf", [3, 3, 3] [3, 3, 2] [3, 4] [3, 3];
    "dba,ead,cad->bce", [3, 3, 2] [2, 2, 3] [4, 2, 3];
    "aef,fbc,dca->bde", [2, 2, 3] [3, 3, 4] [3, 4, 2];
    "a,b,c->abc", [2] [3] [4];
    "a,ab,abc->abc", [2] [2, 3] [2, 3, 4];
    "a,b,ab->ab", [2] [3] [2, 3];
    "a,a", [2] [2];
    "ab,b", [2, 3] [3];
    "abc,bd,cd->a", [2, 3, 4] [3, 3] [4, 3];
    "ac,bd->abcd", [2, 4] [3, 3];
    "abc,acd,b->bd", [2, 3, 4] [2, 4, 3] [3];
    "aabb,bc->ac", [2, 2, 3, 3] [3, 4];
    "ab,c->abc", [2, 3] [4];
    "abcdef->fedcba", [2, 3, 4, 3, 2, 3];
    "aabbcc->abc", [2, 2, 3, 3, 4, 4];
    "abcabc->", [2, 3, 4, 2, 3, 4];
    "acb->abc", [2, 4, 3];
    "bca,ac,da->bcd", [3, 4, 2] [2, 4] [3, 2];
    "cab,bd,ade->ce", [4, 2, 3] [3, 3] [2, 3, 2];
    "ijk,kl,jl", [3, 2, 3] [3, 2] [2, 2];
    "ijk,kl,jl,i->i", [3, 2, 3] [3, 2] [2, 2] [3];
    "abjk,kl,jl", [2, 3, 2, 3] [3, 2] [2, 2];
    "abjk,kl,jl,ab", [2, 3, 2, 3] [3, 2] [2, 2] [2, 3];
    "abjk,kl,jl,ab->ab", [2, 3, 2, 3] [3, 2] [2, 2] [2, 3];
    "obk,ijk->ioj", [2, 3, 3] [3, 2, 3];
    "yw,xyw->xw", [2, 2] [3, 2, 2];
    "a...a->a...", [2, 2, 3, 2];
    "...a,...a->a...", [2, 3, 2] [2, 3, 2];
    "a...,...b->...ab", [2, 2, 3] [2, 3, 3];
    "a...b,b...c->...ac", [2, 2, 3, 3] [3, 2, 3, 4];
    "...ab,...bc->ac...", [2, 3, 2, 3] [2, 3, 3, 4];
    "...,...a->...a", [2, 3] [2, 3, 2];
    "b...a,...a->...b", [3, 2, 3, 2] [2, 3, 2];
    "...ac,bc->...ab", [2, 3, 2, 4] [3, 4];
    "ab...,cb->...ac", [2, 3, 2, 3] [4, 3];
    "...a,b->ba...", [2, 3, 2] [3];
    "bhqd,bhkd->bhqk", [3, 2, 2, 3] [3, 2, 3, 3];
    "bhqk,bhkd->bhqd", [3, 2, 2, 3] [3, 2, 3, 3];
    "btc,cd->btd", [3, 2, 4] [4, 3];
    "bij,bjk->bik", [3, 3, 2] [3, 2, 3];
    "nchw,co->nohw", [3, 4, 2, 2] [4, 2];
    "hwc,c->hw", [2, 2, 4] [4];
    "bi,bj->bij", [3, 3] [3, 2];
    "bn,anm,bm->ba", [3, 3] [2, 3, 2] [3, 2];
    "ij,ik,il->jkl", [3, 2] [3, 3] [3, 2];
    "ab,ac,ad,bcd->a", [2, 3] [2, 4] [2, 3] [3, 4, 3];
    "ijk,il,jm,kn->lmn", [3, 2, 3] [3, 2] [2, 2] [3, 3];
    "pqrs,pi,qj,rk,sl->ijkl", [3, 2, 3, 2] [3, 3] [2, 2] [3, 3] [2, 2];
}

patterns! { spaces_cases_and_letters:
    "i j , j k -> i k", [3, 2] [2, 3];
    " ij , jk ", [3, 2] [2, 3];
    " ij -> ji ", [3, 2];
    "Ab,bC->AC", [2, 3] [3, 4];
    "bA,Cb", [3, 2] [4, 3];
    "zB,ya,Bz", [3, 3] [2, 2] [3, 3];
    "ZA", [3, 2];
    "aA,Ab", [2, 2] [2, 3];
    "AaBb->bBaA", [2, 2, 3, 3];
    "Aa,aB,Bb", [2, 2] [2, 3] [3, 3];
    "αβ,βγ->αγ", [2, 2] [2, 2];
    "éa,aé", [2, 2] [2, 2];
    "zyx,xw->", [3, 2, 3] [3, 2];
    "Zz->zZ", [3, 3];
    "Ii,iI->", [3, 3] [3, 3];
    "abcdef->fedcba", [2, 3, 4, 3, 2, 3];
    ", ->", [] [];
    "... -> ...", [2, 3];
    "... i , i -> ...", [2, 3, 3] [3];
}

patterns! { random_patterns:
    "c,d->cd", [4] [3];
    "dea->e", [3, 2, 2];
    "...,...->...", [2, 3] [2, 3];
    "deb,bf,dc,", [3, 2, 3] [3, 3] [3, 4] [];
    "b,af,ff", [3] [2, 3] [3, 3];
    "cc,ede,->ce", [4, 4] [2, 3, 2] [];
    "fea->fea", [3, 2, 2];
    "fbb,ab,de", [3, 3, 3] [2, 3] [3, 2];
    "cfe,", [4, 3, 2] [];
    "e...,da,...cee->ed...", [2, 2, 3] [3, 2] [2, 3, 4, 2, 2];
    "a,a...f->a...", [2] [2, 2, 3, 3];
    "b,c->b", [3] [4];
    "dd,a->d", [3, 3] [2];
    "...ed,->...", [2, 3, 2, 3] [];
    "bef,,fec->efc", [3, 2, 3] [] [3, 2, 4];
    "fb,e...cb", [3, 3] [2, 2, 3, 4, 3];
    "bfe...,...,bca...->f...ba", [3, 3, 2, 2, 3] [2, 3] [3, 4, 2, 2, 3];
    "bcf,d->d", [3, 4, 3] [3];
    "...f,...->...", [2, 3, 3] [2, 3];
    "ac,ef->efc", [2, 4] [2, 3];
    "e...,ae...e->e...", [2, 2, 3] [2, 2, 2, 3, 2];
    ",...d,...a->a...", [] [2, 3, 3] [2, 3, 2];
    "ec,cab->ac", [2, 4] [4, 2, 3];
    "da,c", [3, 2] [4];
    "be", [3, 2];
    "fcc,e,cb,ca->fbe", [3, 4, 4] [2] [4, 3] [4, 2];
    "...c,...bc", [2, 3, 4] [2, 3, 3, 4];
    "c...,f->...c", [4, 2, 3] [3];
    "ae,b,b->a", [2, 2] [3] [3];
    "b,e->b", [3] [2];
    "bc,eba,ca,dec", [3, 4] [2, 3, 2] [4, 2] [3, 2, 4];
    ",cbc", [] [4, 3, 4];
    ",->", [] [];
    "b...,cd...,bea", [3, 2, 3] [4, 3, 2, 3] [3, 2, 2];
    "bc,fdb,cee", [3, 4] [3, 3, 3] [4, 2, 2];
    "aa,be", [2, 2] [3, 2];
    "fc,bf->bc", [3, 4] [3, 3];
    "c,bef->e", [4] [3, 2, 3];
    ",c->", [] [4];
    "d,dd", [3] [3, 3];
    "e,bad->bda", [2] [3, 2, 3];
    "ea...a,c...b,c->...ce", [2, 2, 2, 3, 2] [4, 2, 3, 3] [4];
    "ed,ca,,e->e", [2, 3] [4, 2] [] [2];
    "ec,efc,aa->ac", [2, 4] [2, 3, 4] [2, 2];
    "d...be", [3, 2, 3, 3, 2];
    "ffc,d->cfd", [3, 3, 4] [3];
    "d,ff->f", [3] [3, 3];
    "cba,...,c...f,fec...->fcba...", [4, 3, 2] [2, 3] [4, 2, 3, 3] [3, 2, 4, 2, 3];
    "eb...,c...c->c...", [2, 3, 2, 3] [4, 2, 3, 4];
    "de,bdc->b", [3, 2] [3, 3, 4];
    "cdb->c", [4, 3, 3];
    "e,de->ed", [2] [3, 2];
    "ff,aa,dc->ca", [3, 3] [2, 2] [3, 4];
    "...,f...ef,cfc...", [2, 3] [3, 2, 3, 2, 3] [4, 3, 4, 2, 3];
    "cd,bdf->fdcb", [4, 3] [3, 3, 3];
    "bd,...f", [3, 3] [2, 3, 3];
    "...,cb...a,fca->afc...b", [2, 3] [4, 3, 2, 3, 2] [3, 4, 2];
    "cf,ba", [4, 3] [3, 2];
    "de,->", [3, 2] [];
    "...faf,fe,c", [2, 3, 3, 2, 3] [3, 2] [4];
    "e->", [2];
    "e...", [2, 2, 3];
    ",ac->ac", [] [2, 4];
    "c,a...fc->a...", [4] [2, 2, 3, 3, 4];
    "f->", [3];
    ",fb,cd,ad->afd", [] [3, 3] [4, 3] [2, 3];
    ",b->", [] [3];
    "d,dd,fd", [3] [3, 3] [3, 3];
    ",a,ecb->ae", [] [2] [2, 4, 3];
    "ee,a,c->ec", [2, 2] [2] [4];
    "e,fa,ca,a->e", [2] [3, 2] [4, 2] [2];
    "fcb,ed,dd,eb->de", [3, 4, 3] [2, 3] [3, 3] [2, 3];
    "...ade,ac...d,...", [2, 3, 2, 3, 2] [2, 4, 2, 3, 3] [2, 3];
    "...ed,e...fe,...dc", [2, 3, 2, 3] [2, 2, 3, 3, 2] [2, 3, 3, 4];
    "...,dd,f...f->...", [2, 3] [3, 3] [3, 2, 3, 3];
    "dd,d,bd,a", [3, 3] [3] [3, 3] [2];
    "e,dc->ecd", [2] [3, 4];
    "dfd,a,b->dab", [3, 3, 3] [2] [3];
    ",d,,ed", [] [3] [] [2, 3];
    "ffa->a", [3, 3, 2];
    "...,ff,d...->...d", [2, 3] [3, 3] [3, 2, 3];
    "df,df->d", [3, 3] [3, 3];
    "aa...f,fc", [2, 2, 2, 3, 3] [3, 4];
    "cf...,...db->cd...f", [4, 3, 2, 3] [2, 3, 3, 3];
    "dc,bcb->", [3, 4] [3, 4, 3];
    "ef", [2, 3];
    "ed,cab->dea", [2, 3] [4, 2, 3];
    "ee,dc,", [2, 2] [3, 4] [];
    "af,cf,ce,aac->fc", [2, 3] [4, 3] [4, 2] [2, 2, 4];
}

patterns! { broadcasting_under_dots:
    "...ij,...jk->...ik", [4, 1, 2, 3] [5, 3, 2];
    "...,...", [1, 3] [4, 1];
    "...i,...i", [2, 1, 3] [4, 3];
    "...i,i->...", [2, 5, 3] [3];
    "i...,...", [2, 3] [4, 1];
    "...,...->...", [3] [2, 1];
    "...a,...b->...ab", [2] [3];
    "...a,...b->ab...", [5, 2] [3];
    "a...,b...->ba...", [2, 1, 3] [3, 4, 1];
    "...,...,...", [2] [1] [1, 1];
    "...lmn,lmno->...o", [2, 1, 2, 3, 2] [2, 3, 2, 2];
    "ij...,j...->ij...", [3, 2, 2, 4] [2, 1, 4];
    "ik...,...kj->i...j", [3, 2, 4] [5, 1, 2, 3];
    "...kl,k...", [3, 2, 4] [2, 3];
    "i...i->...", [3, 2, 4, 3];
    "...ii", [2, 3, 3];
    "...->...", [];
    "...i->...", [4];
    "...,i->i...", [] [3];
    "...->...", [1, 2, 1];
    "...j,j...->...", [3, 2] [2, 3];
    "i...,i...,i->...", [2, 1, 3] [2, 4, 1] [2];
}

patterns! { sizes_of_zero_and_one:
    "ij,jk->ik", [0, 3] [3, 2];
    "ij,jk->ik", [2, 0] [0, 3];
    "ij,jk->ik", [2, 3] [3, 0];
    "ij->", [0, 3];
    "ij->j", [0, 3];
    "ij->i", [0, 3];
    "ii->", [0, 0];
    "i,i->", [0] [0];
    "i,j->ij", [0] [3];
    "...i,...i->...", [0, 2] [2];
    "ij,jk->ik", [1, 1] [1, 1];
    "ij,jk->ik", [1, 3] [3, 1];
    "ij,jk,kl->il", [1, 4] [4, 1] [1, 5];
    "ij,jk,kl->il", [2, 0] [0, 3] [3, 2];
    "ii->i", [1, 1];
    "i,i->i", [1] [1];
    "abc,cd->abd", [2, 1, 3] [3, 1];
    "abc,acd->abd", [1, 2, 3] [1, 3, 2];
    "bij,bjk->bik", [5, 4, 3] [5, 3, 6];
    "ij,jk->ki", [40, 30] [30, 20];
    "ij,kj->ki", [70, 33] [65, 33];
    "bij,bjk->ibk", [3, 17, 40] [3, 40, 19];
    "ijk,kl->lij", [9, 8, 7] [7, 6];
    "i,ij,j->", [30] [30, 40] [40];
}

macro_rules! types {
    ($($name:ident $t:ty;)*) => {$(
        #[test]
        fn $name() {
            types!(@ $t; "ij,jk->ik" [4, 5] [5, 3]; "ij,jk,kl->il" [2, 3] [3, 4] [4, 2]; "ii->i" [3, 3]; "ii" [4, 4];
                "i,i->" [9] [9]; "i,j->ij" [3] [4]; "bij,bkj->bik" [2, 3, 4] [2, 5, 4]; "...i->..." [2, 3, 4]; "ij->ji" [3, 4];
                "i,i,i->i" [5] [5] [5]; "ab,bc,cd,da->" [2, 3] [3, 4] [4, 2] [2, 2]);
        }
    )*};
    (@ $t:ty; $($pattern:literal $([$($size:literal),*])*);*) => {$(
        let (mut one, mut two) = (Random(3), Random(3));
        let operands = [$(random::<$t, _>(&mut one, [$($size),*]).into_dyn()),*];
        let found = einsum!($pattern, $(random::<$t, _>(&mut two, [$($size),*])),*).into_dynamic();
        assert_eq!(found, oracle($pattern, &operands), $pattern);
    )*};
}

types! {
    single_precision f32;
    integers i32;
    long_integers i64;
    bytes_wrap_around u8;
    complex_numbers Complex<f64>;
}

#[test]
fn operands_have_any_memory_layout() {
    let mut generator = Random(11);
    let a = random::<f64, _>(&mut generator, (6, 8));
    let b = random::<f64, _>(&mut generator, (8, 10));
    let views = [(a.view(), b.view()), (a.slice(s![..;-1, ..]), b.slice(s![.., ..;-2]))];
    for (a, b) in views {
        let expected = oracle("ij,jk->ik", &[a.to_owned().into_dyn(), b.to_owned().into_dyn()]);
        assert_eq!(einsum!("ij,jk->ik", a, b).into_dyn(), expected);
        assert_eq!(einsum!("ji,kj->ik", a.t(), b.t()).into_dyn(), expected);
    }
    let row = array![1.0, 2.0, 3.0];
    let repeated = row.broadcast((4, 3)).unwrap();
    assert_eq!(einsum!("ij->j", repeated), array![4.0, 8.0, 12.0]);
    assert_eq!(einsum!("ij,ij->", repeated, repeated), 4.0 * 14.0);
    assert_eq!(einsum!("ij,jk->k", repeated, Array2::<f64>::eye(3)), array![4.0, 8.0, 12.0]);
    assert_eq!(einsum!("ij,jk->ik", repeated, Array2::<f64>::eye(3)), repeated);
    assert_eq!(einsum!("ij,jk,kl->il", repeated, Array2::<f64>::eye(3), Array2::eye(3)), repeated);
}

#[test]
fn operands_are_what_users_have() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    assert_eq!(einsum!("ij,j->i", &a, vec![1.0, 1.0]), array![3.0, 7.0]);
    assert_eq!(einsum!("ij,j->i", &&a, [1.0, -1.0]), array![-1.0, -1.0]);
    assert_eq!(einsum!("ij,j->i", a, &[1.0, 1.0][..]), array![3.0, 7.0]);
    assert_eq!(einsum!("ij,->ij", a, 2.0), array![[2.0, 4.0], [6.0, 8.0]]);
    assert_eq!(einsum!("ij,jk->ik", [[1, 2], [3, 4]], [[1, 0], [0, 1]]), array![[1, 2], [3, 4]]);
    assert_eq!(einsum!("nij->ij", [a.view(), a.t()]), array![[2.0, 5.0], [5.0, 8.0]]);
    assert_eq!(einsum!("nij,n->ij", vec![a.clone(), a.clone()], [1.0, 2.0]), 3.0 * &a);
    assert_eq!(einsum!("ij->", &a + &a), 20.0);
    let (boxed, counted, mut own) = (Box::new(a.clone()), std::rc::Rc::new(a.clone()), a.clone());
    assert_eq!(einsum!("ij,jk", boxed, counted), a.dot(&a));
    assert_eq!(einsum!("ij,jk", &mut own, std::sync::Arc::new(a.view())), a.dot(&a));
    assert_eq!(einsum!("ij,jk", ndarray::CowArray::from(a.view()), a.to_shared()), a.dot(&a));
    assert_eq!(einsum!("nij->ij", [&boxed, &boxed]), 2.0 * &a);
    assert_eq!((einsum!("->", 3), einsum!(",,", 3, 2, 1), einsum!(",", ndarray::arr0(2), 3)), (3, 6, 6));
    assert_eq!(einsum!("..., ...", ndarray::arr0(2.0_f64).into_dyn(), a), (&a * 2.0).into_dyn());
    assert_eq!(einsum!("ij->", -a.clone()), -10.0);
    assert_eq!(einsum!("ij->j", if a[(0, 0)] > 0.0 { a.view() } else { a.t() }), array![4.0, 6.0]);
}

#[test]
fn each_operand_is_evaluated_once() {
    let mut calls = Vec::new();
    let mut operand = |name: &'static str| {
        calls.push(name);
        array![[1, 2], [3, 4]]
    };
    let c = einsum!("ij,jk,kl->il", operand("a"), operand("b"), operand("c"));
    assert_eq!(c, array![[37, 54], [81, 118]]);
    assert_eq!(calls, ["a", "b", "c"]);
}

#[test]
fn names_of_any_length_and_groups() {
    let mut generator = Random(5);
    let x = random::<f64, _>(&mut generator, (2, 3, 8));
    let w = random::<f64, _>(&mut generator, (4, 2, 5));
    let y = einsum!(x, w, "batch t (head c), head c out -> batch t out", head = 4);
    let split = x.clone().into_shape_with_order((2, 3, 4, 2)).unwrap();
    assert_eq!(y, einsum!("bthc,hco->bto", split, w));
    assert_eq!(y, einsum!("bt(hc),hco->bto", x, w));
    let flat = einsum!(x, w, "b t (h c), h c o -> (b t) (h o)", h = 4);
    assert_eq!(flat, einsum!("bthc,hco->btho", split, w).into_shape_with_order((6, 20)).unwrap());
    assert_eq!(einsum!(x, "... t c -> c ... t").shape(), [8, 2, 3]);
    assert_eq!(einsum!(x, "a b c -> (a b c)").len(), 48);
}

#[test]
fn twenty_six_axes_and_more() {
    let a = ArrayD::from_shape_fn(vec![1; 20], |_| 2.0);
    let b = ArrayD::from_shape_fn(vec![1, 2, 1, 2, 1, 2], |at| {
        at[1] as f64 + 10.0 * at[3] as f64 + 100.0 * at[5] as f64
    });
    let c = einsum!("abcdefghijklmnopqrst,uvwxyz->zyxwvutsrqponmlkjihgfedcba", a, b);
    assert_eq!(c.ndim(), 26);
    assert_eq!(
        c.iter().copied().collect::<Vec<_>>(),
        b.view().reversed_axes().iter().map(|x| 2.0 * x).collect::<Vec<_>>()
    );
    let d = einsum!("abcdefghijklmnopqrstuvwxyz->vxz", c.view().reversed_axes());
    assert_eq!(d[(1, 0, 1)], 202.0);
    let e = ArrayD::from_elem(vec![1; 30], 3);
    assert_eq!(einsum!("abcdefghijklmnopqrstuvwxyzABCD->", e), 3);
    assert_eq!(einsum!("abcdefghijklmnopqrstuvwxyzABCD->DCBAzyxwvutsrqponmlkjihgfedcba", e).ndim(), 30);
    let m = array![[1, 1], [0, 1]];
    let chain = einsum!(
        "ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm,mn,no,op,pq,qr,rs,st,tu,uv,vw,wx,xy,yz->az",
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m,
        m
    );
    assert_eq!(chain, array![[1, 25], [0, 1]]);
}

/// The names of the axes of a product in a plan: of the operands, and of the result.
fn dims_of(plan: &Plan) -> [&[&'static str]; 3] {
    let [PlanStep::Product { dims: Some(ProductDims { left, right, result }), .. }] = &plan.steps[..] else {
        panic!("the plan is not one product with named axes: {plan}")
    };
    [left, right, result]
}

#[test]
fn products_are_matrix_products() {
    let (a, b) = (Array2::<f32>::ones((100, 80)), Array2::<f32>::ones((80, 90)));
    let (c, plan) = explain(|| einsum!("ik,kj->ij", a, b));
    assert_eq!(c, Array2::from_elem((100, 90), 80.0));
    assert!(matches!(plan.steps[..], [PlanStep::Product { m: 100, k: 80, n: 90, .. }]), "{plan}");
    let (_, plan) = explain(|| einsum!("ki,jk->ij", a.t(), b.t()));
    assert!(matches!(plan.steps[..], [PlanStep::Product { m: 100, k: 80, n: 90, .. }]), "{plan}");
    let (x, w) = (Array3::<f32>::ones((4, 50, 64)), Array2::<f32>::ones((64, 32)));
    let (_, plan) = explain(|| einsum!("...c,cd->...d", x, w));
    assert!(matches!(plan.steps[..], [PlanStep::Product { m: 200, k: 64, n: 32, .. }]), "{plan}");
    assert_eq!(dims_of(&plan), [&["..", "..", "c"][..], &["c", "d"], &["..", "..", "d"]]);
    dims!(n);
    let (_, plan) = explain(|| einsum!("ik,kj->ij", x.at((n, .., ..)), w.at((.., ..))));
    assert_eq!(dims_of(&plan), [&["n", "i", "k"][..], &["k", "j"], &["n", "i", "j"]]);
    let (_, plan) = explain(|| einsum!("ij,jk,kl->il", a, b, a.slice(s![..90, ..])));
    assert_eq!(plan.steps.len(), 2, "{plan}");
    let (_, plan) = explain(|| einsum!("i,i->", a.row(0), a.row(1)));
    assert!(matches!(plan.steps[..], [PlanStep::Reduce { .. }]), "{plan}");
}

#[test]
fn tensors_are_batched_and_fused() {
    dims!(n, m, p);
    let mut generator = Random(9);
    let a = random::<f64, _>(&mut generator, (5, 2, 3));
    let b = random::<f64, _>(&mut generator, (3, 4));
    let c = einsum!("ik,kj->ij", a.at((n, .., ..)), b.at((.., ..))).order(n);
    assert_eq!(c.into_dyn(), oracle("nik,kj->nij", &[a.clone().into_dyn(), b.clone().into_dyn()]));
    let d = random::<f64, _>(&mut generator, (6, 3, 4));
    let c = einsum!("ik,kj->ij", a.at((n, .., ..)), d.at((m, .., ..))).order((m, n));
    assert_eq!(c.into_dyn(), oracle("nik,mkj->mnij", &[a.clone().into_dyn(), d.clone().into_dyn()]));
    // A lazy operand is computed inside the loops of the sum.
    let (sum, plan) = explain(|| einsum!("ij->j", a.at((n, .., ..)) * 2.0 + 1.0).order(n));
    assert_eq!(sum, a.mapv(|x| 2.0 * x + 1.0).sum_axis(ndarray::Axis(1)));
    assert!(
        matches!(&plan.steps[0], PlanStep::Reduce { expression, .. } if expression.contains("mul")),
        "{plan}"
    );
    let (_, plan) = explain(|| einsum!("i,i->", (b.at((.., p)) + 1.0).abs(), b.at((.., p))));
    assert_eq!(plan.steps.len(), 1, "{plan}");
}

#[test]
fn errors_name_the_axis() {
    let error = |result: Result<f64, DimError>| result.unwrap_err().to_string();
    let (a, b) = (Array2::<f64>::ones((2, 3)), Array2::<f64>::ones((4, 5)));
    assert_eq!(
        error(try_einsum!("ij,jk->", a, b)),
        "axis `j` has size 3 in operand 1, but 4 in operand 2, in the pattern `ij,jk->`"
    );
    assert_eq!(
        error(try_einsum!("ii", a)),
        "axis `i` has the sizes 2 and 3 in the operand, in the pattern `ii`"
    );
    // Named axes of size 1 are not broadcast.
    assert!(error(try_einsum!("ij,ij->", a, Array2::ones((1, 3)))).contains("axis `i` has size 2"));
    assert!(error(try_einsum!("i...,i...->i...", a, b).map(|x| x.sum())).contains("`i`"));
    assert!(error(try_einsum!("...,...->...", a, b).map(|x| x.sum())).contains("`...`"));
    assert_eq!(
        error(try_einsum!("ijk->", a.clone().into_dyn())),
        "the array has 2 axes, but the pattern names 3"
    );
    assert_eq!(
        error(try_einsum!("...ijk->...", a.clone().into_dyn()).map(|x: ArrayD<f64>| x.sum())),
        "the array has 2 axes, but the pattern names at least 3"
    );
    assert!(error(try_einsum!("(ab)c->", a, a = 4)).contains("(a = 4, b)"));
    let wide = array![1.0_f64];
    const WIDE: usize = 1 << (usize::BITS * 5 / 8);
    let wide = wide.broadcast(WIDE).unwrap();
    assert!(error(try_einsum!("i,j->ij", wide, wide).map(|x| x.sum())).contains(&WIDE.to_string()));
}

#[test]
#[should_panic(expected = "axis `j` has size 3 in operand 1, but 4 in operand 2")]
fn the_short_form_panics() {
    einsum!("ij,jk->ik", Array2::<f64>::ones((2, 3)), Array2::<f64>::ones((4, 5)));
}

#[test]
fn the_path_is_the_cheapest() {
    let (a, b, c) =
        (Array2::<f64>::ones((2, 100)), Array2::<f64>::ones((100, 90)), Array2::<f64>::ones((90, 3)));
    let path = einsum_path!("ij,jk,kl->il", a, b, c);
    assert_eq!(path.steps.len(), 2);
    assert_eq!((path.steps[0].operands, &path.steps[0].pattern[..]), ((0, 1), "ij,jk->ik"));
    assert_eq!(path.flops, 2.0 * (2 * 100 * 90 + 2 * 90 * 3) as f64);
    let text = path.to_string();
    assert!(text.contains("ij,jk,kl->il") && text.contains("operands 0 and 1: ij,jk->ik"), "{text}");
    // There are too many axes for a path.
    let many = ndarray::ArrayD::<f64>::ones(ndarray::IxDyn(&[1; 130]));
    let path = einsum_path!("...,...->...", many, many);
    assert_eq!((path.steps.len(), path.flops, path.largest), (0, 1.0, 1.0));
    let path = einsum_path!("i->", array![1.0]);
    assert!(path.steps.is_empty());
}

#[test]
fn works_in_macros_closures_and_generic_functions() {
    macro_rules! product {
        ($pattern:literal, $a:expr, $b:expr) => {
            einsum!($pattern, $a, $b)
        };
    }
    fn gram<T: typed_dims::types::scalar::Num>(x: &Array2<T>) -> Array2<T> {
        einsum!("ij,kj->ik", x, x)
    }
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    assert_eq!(product!("ij,jk->ik", a, &a + 0.0), a.dot(&a));
    assert_eq!(gram(&a), a.dot(&a.t()));
    let scaled: Vec<f64> = [1.0, 2.0].iter().map(|scale| einsum!("ij->", &a * *scale)).collect();
    assert_eq!(scaled, [10.0, 20.0]);
    let i = 3.0;
    assert_eq!(einsum!("i,->i", [i, i], i), array![9.0, 9.0]);
}
