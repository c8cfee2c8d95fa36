//! `roles!`: meanings of dims beyond the roles of ONNX.

use crate::dims::ast::cfgs;
use crate::key::{Key, MOST_ROLES};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Ident, Path, Result, Token, Visibility};

/// `/// doc` `pub struct Pixel: DataFeature;`
struct DeclaredRole {
    attrs: Vec<Attribute>,
    vis: Visibility,
    token: Token![struct],
    name: Ident,
    refined: Option<Path>,
    end: Token![;],
}

/// The roles of one call.
pub struct RolesInput(Vec<DeclaredRole>);

impl Parse for RolesInput {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut roles: Vec<DeclaredRole> = Vec::new();
        while !input.is_empty() {
            let role: DeclaredRole = input.parse()?;
            // If a role depends on a `cfg`, only rustc can tell whether it is declared twice.
            let always = |role: &DeclaredRole| cfgs(&role.attrs).is_empty();
            if always(&role) && roles.iter().any(|other| always(other) && other.name == role.name) {
                return Err(Error::new(
                    role.name.span(),
                    format!("the role `{}` is declared twice", role.name),
                ));
            }
            if roles.len() == MOST_ROLES {
                let what = format!("one `roles!` can declare at most {MOST_ROLES} roles");
                return Err(Error::new(role.name.span(), what));
            }
            roles.push(role);
        }
        match roles.iter().find(|role| refines_itself(&roles, role)) {
            Some(role) => {
                Err(Error::new(role.name.span(), format!("the role `{}` refines itself", role.name)))
            }
            None => Ok(RolesInput(roles)),
        }
    }
}

/// Whether following the refined roles within one call leads back to this role. Roles that depend
/// on a `cfg` are not followed, because not all of them need exist.
fn refines_itself(roles: &[DeclaredRole], role: &DeclaredRole) -> bool {
    let refined = |role: &DeclaredRole| {
        let name = role.refined.as_ref()?.get_ident()?;
        roles.iter().find(|other| other.name == *name && cfgs(&other.attrs).is_empty())
    };
    // A cycle has at most as many steps as there are roles.
    core::iter::successors(refined(role), |&role| refined(role))
        .take(roles.len())
        .any(|other| other.name == role.name)
}

impl Parse for DeclaredRole {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let token = input.parse()?;
        let name = input.parse()?;
        let refined = if input.peek(Token![:]) {
            input.parse::<Token![:]>()?;
            Some(input.call(Path::parse_mod_style)?)
        } else {
            None
        };
        if !input.peek(Token![;]) {
            return Err(input.error(
                "expected `;`, or `:` and the role that this one refines: `pub struct Pixel: DataFeature;`",
            ));
        }
        let end = input.parse()?;
        Ok(DeclaredRole { attrs, vis, token, name, refined, end })
    }
}

/// The roles, as types.
pub fn expand(RolesInput(roles): &RolesInput) -> TokenStream {
    roles.iter().enumerate().map(|(position, role)| declared(role, position)).collect()
}

fn declared(role: &DeclaredRole, position: usize) -> TokenStream {
    let krate = quote!(::typed_dims::__private);
    let DeclaredRole { attrs, vis, token, name, refined, end } = role;
    let (key, text) = (Key::of_struct(name, position).digits(&krate), name.to_string());
    let cfgs = cfgs(attrs);
    let refined = match refined {
        // If the type is not a role, rustc's message about this path is shorter than the one about
        // the bound of `Refined`.
        Some(refined) => quote_spanned!(refined.span()=> <#refined as #krate::Role>::Itself),
        None => quote!(#krate::Undenoted),
    };
    // Everything else follows from these two impls, so a mistake in the refined role is reported
    // once.
    quote! {
        #(#attrs)*
        #vis #token #name #end
        #(#cfgs)*
        #[diagnostic::do_not_recommend]
        impl #krate::Role for #name {
            const NAME: &'static ::core::primitive::str = #text;
            type Refined = #refined;
            type Kind = #krate::IsDeclared;
            type Itself = #name;
        }
        #(#cfgs)*
        impl #krate::DeclaredRole for #name {
            type Key = #key;
        }
    }
}
