//! Which types are tensors.

use syn::{FnArg, PathSegment, Signature, Type, TypePath, TypeReference};

pub fn takes_tensors(sig: &Signature) -> bool {
    sig.inputs.iter().any(|input| matches!(input, FnArg::Typed(arg) if tensor(&arg.ty).is_some()))
}

/// The path of `Tensor<..>` or `Named<..>`, possibly borrowed.
pub fn tensor(ty: &Type) -> Option<&TypePath> {
    match ty {
        Type::Reference(TypeReference { mutability: None, elem, .. }) => tensor(elem),
        Type::Group(group) => tensor(&group.elem),
        Type::Paren(paren) => tensor(&paren.elem),
        Type::Path(path) if is_tensor(path.path.segments.last()?) => Some(path),
        _ => None,
    }
}

/// Whether this is the name of the tensor type.
pub fn is_tensor(segment: &PathSegment) -> bool {
    segment.ident == "Tensor" || segment.ident == "Named"
}

pub fn mentions_tensor(ty: &Type) -> bool {
    struct Finder(bool);
    impl syn::visit::Visit<'_> for Finder {
        fn visit_path_segment(&mut self, segment: &PathSegment) {
            self.0 |= is_tensor(segment);
            syn::visit::visit_path_segment(self, segment);
        }
    }
    let mut finder = Finder(false);
    syn::visit::Visit::visit_type(&mut finder, ty);
    finder.0
}
