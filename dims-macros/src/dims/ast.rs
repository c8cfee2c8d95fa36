//! What users write in `dims!`.

use crate::key::MOST;
use crate::pattern::errors::MOST as MOST_ERRORS;
use std::collections::HashMap;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, Path, Result, Token, Visibility};

/// `dims! { pub struct Batch; }` or `dims!(i, j)`.
pub enum Input {
    Declared(Vec<Declared>),
    Local(Vec<Local>),
}

/// `/// doc` `pub struct Heads: Role = 12;`
pub struct Declared {
    pub attrs: Vec<Attribute>,
    pub vis: Visibility,
    pub token: Token![struct],
    pub name: Ident,
    pub role: Option<Path>,
    pub size: Option<Expr>,
    pub end: Token![;],
}

/// `i` or `i: Role = n`
pub struct Local {
    pub name: Ident,
    pub role: Option<Path>,
    pub size: Option<Expr>,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let declared = input.peek(Token![#]) || input.peek(Token![pub]) || input.peek(Token![struct]);
        if declared {
            let mut dims: Vec<Declared> = Vec::new();
            while !input.is_empty() {
                dims.push(input.parse()?);
            }
            check(dims.iter().map(|dim| &dim.name))?;
            Ok(Input::Declared(dims))
        } else {
            let dims = Punctuated::<Local, Token![,]>::parse_terminated(input)?;
            check(dims.iter().map(|dim| &dim.name))?;
            Ok(Input::Local(dims.into_iter().collect()))
        }
    }
}

impl Parse for Declared {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let token = input.parse()?;
        let name = input.parse()?;
        let role = role(input)?;
        let size = size(input)?;
        if size.is_some() && input.peek(Token![:]) {
            return Err(input.error("a role stands before the size: `pub struct Channel: DataChannel = 64;`"));
        }
        if !input.peek(Token![;]) {
            return Err(input.error("expected `;`, or `=` and a size: `pub struct Heads = 12;`"));
        }
        let end = input.parse()?;
        Ok(Declared { attrs, vis, token, name, role, size, end })
    }
}

impl Parse for Local {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected the name of a dim: `dims!(i, j = 4);`"));
        }
        let name = input.parse()?;
        let role = role(input)?;
        let size = size(input)?;
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(input.error("expected `,` between dims, or `=` and a size"));
        }
        Ok(Local { name, role, size })
    }
}

/// What the dim means, behind a colon.
fn role(input: ParseStream<'_>) -> Result<Option<Path>> {
    if input.peek(Token![:]) && !input.peek(Token![::]) {
        input.parse::<Token![:]>()?;
        if !input.peek(Ident::peek_any) {
            return Err(
                input.error("a role is expected here, such as `DataChannel`; a size is written `= 64`")
            );
        }
        Ok(Some(input.call(Path::parse_mod_style)?))
    } else {
        Ok(None)
    }
}

fn size(input: ParseStream<'_>) -> Result<Option<Expr>> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        Ok(Some(input.parse()?))
    } else {
        Ok(None)
    }
}

/// No name twice, and not more dims than keys can order.
fn check<'a>(names: impl Iterator<Item = &'a Ident>) -> Result<()> {
    let mut seen = HashMap::new();
    let (mut errors, mut count): (Option<Error>, usize) = (None, 0);
    for (position, name) in names.enumerate() {
        let too_many = position == MOST;
        let message = if too_many {
            format!("one `dims!` can make {MOST} dims at the most")
        } else if seen.insert(name.to_string(), ()).is_some() {
            format!("the dim `{name}` is declared twice")
        } else {
            continue;
        };
        let error = Error::new(name.span(), message);
        match &mut errors {
            Some(all) => all.combine(error),
            None => errors = Some(error),
        }
        count += 1;
        if too_many || count == MOST_ERRORS {
            break;
        }
    }
    errors.map_or(Ok(()), Err)
}
