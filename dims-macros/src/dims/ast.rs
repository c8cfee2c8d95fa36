//! The syntax of `dims!`.

use crate::groups::visible;
use crate::key::MOST;
use crate::pattern::errors::MOST as MOST_ERRORS;
use quote::{ToTokens, format_ident};
use std::collections::HashMap;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::token::Bracket;
use syn::{Attribute, Error, Expr, Ident, LitInt, Path, Result, Token, Visibility, bracketed};

/// The maximum number of dims in a list: the length of the longest tuple of dims.
const MOST_IN_A_LIST: usize = 26;

/// `dims! { pub struct Batch; }` or `dims!(i, j)`.
pub enum DimsInput {
    Declared(Vec<Declared>),
    Local(Vec<Local>, Vec<Several>),
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

/// `l: [3]`: the dims `l0`, `l1` and `l2`, and the list `l` of all of them.
pub struct Several {
    pub name: Ident,
    pub dims: Vec<Ident>,
}

/// An entry between commas: a dim or a list.
enum Entry {
    One(Local),
    Several(Several),
}

impl Parse for DimsInput {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let declared = input.peek(Token![#]) || input.peek(Token![pub]) || input.peek(Token![struct]);
        if declared {
            let mut dims: Vec<Declared> = Vec::new();
            while !input.is_empty() {
                dims.push(input.parse()?);
            }
            check(dims.iter().map(|dim| (&dim.name, cfgs(&dim.attrs).is_empty())), &[])?;
            Ok(DimsInput::Declared(dims))
        } else {
            let (mut dims, mut lists) = (Vec::new(), Vec::new());
            for entry in Punctuated::<Entry, Token![,]>::parse_terminated(input)? {
                match entry {
                    Entry::One(dim) => dims.push(dim),
                    Entry::Several(list) => {
                        let all = list.dims.iter().cloned();
                        dims.extend(all.map(|name| Local { name, role: None, size: None }));
                        lists.push(list);
                    }
                }
            }
            check(dims.iter().map(|dim| (&dim.name, true)), &lists)?;
            Ok(DimsInput::Local(dims, lists))
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
            return Err(
                input.error("write the role before the size: `pub struct Channel: DataChannel = 64;`")
            );
        }
        if !input.peek(Token![;]) {
            let expected = match size {
                Some(_) => "expected `;` after the size: `pub struct Heads = 12;`",
                None => "expected `;`, or `=` and a size: `pub struct Heads = 12;`",
            };
            return Err(input.error(expected));
        }
        let end = input.parse()?;
        Ok(Declared { attrs, vis, token, name, role, size, end })
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected the name of a dim: `dims!(i, j = 4);`"));
        }
        let name: Ident = input.parse()?;
        if input.peek(Token![:]) && input.peek2(Bracket) {
            return several(name, input).map(Entry::Several);
        }
        let role = role(input)?;
        let size = size(input)?;
        if !input.is_empty() && !input.peek(Token![,]) {
            let expected = match size {
                _ if input.peek(Token![;]) => {
                    "local dims are separated by `,`; a dim declared outside functions is `struct Batch;` or `pub struct Batch = 8;`"
                }
                Some(_) => "expected `,` after the size",
                None => "expected `,` between dims, or `=` and a size",
            };
            return Err(input.error(expected));
        }
        Ok(Entry::One(Local { name, role, size }))
    }
}

/// Parses `: [3]` after the name of a list.
fn several(name: Ident, input: ParseStream<'_>) -> Result<Several> {
    input.parse::<Token![:]>()?;
    let content;
    bracketed!(content in input);
    let count: LitInt = content
        .parse()
        .map_err(|error| Error::new(error.span(), "expected a number of dims: `dims!(space: [2]);`"))?;
    let number = count.base10_parse::<usize>().ok().filter(|&number| (1..=MOST_IN_A_LIST).contains(&number));
    let Some(number) = number.filter(|_| content.is_empty()) else {
        let message = format!("expected a number of dims from 1 to {MOST_IN_A_LIST}: `dims!(space: [2]);`");
        return Err(Error::new(count.span(), message));
    };
    if input.peek(Token![=]) {
        let message = format!(
            "the dims of a list get their sizes where they are bound, or one by one: `{name}0.set_size(4)`"
        );
        return Err(input.error(message));
    }
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error("expected `,` after the list"));
    }
    let dims = (0..number).map(|at| format_ident!("{name}{at}")).collect();
    Ok(Several { name, dims })
}

/// Parses a role after a colon.
fn role(input: ParseStream<'_>) -> Result<Option<Path>> {
    if input.peek(Token![:]) && !input.peek(Token![::]) {
        input.parse::<Token![:]>()?;
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected a role, such as `DataChannel`; write a size as `= 64`"));
        }
        Ok(Some(input.call(Path::parse_mod_style)?))
    } else {
        Ok(None)
    }
}

fn size(input: ParseStream<'_>) -> Result<Option<Expr>> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let size: Expr = input.parse()?;
        syn::parse2(visible(size.into_token_stream())).map(Some)
    } else {
        Ok(None)
    }
}

/// The `cfg`s among the attributes of a declaration. Each item of its expansion needs them.
pub fn cfgs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect()
}

/// Checks that no name is used twice, and that there are at most [`MOST`] dims, so that their
/// positions fit into their keys. The flag of a dim says whether it always exists. If a dim depends
/// on a `cfg`, only rustc can tell whether its name is used twice.
fn check<'a>(dims: impl Iterator<Item = (&'a Ident, bool)>, lists: &'a [Several]) -> Result<()> {
    let mut seen = HashMap::new();
    let (mut errors, mut count): (Option<Error>, usize) = (None, 0);
    let dims = dims.enumerate().map(|(position, (name, always))| (name, always, position == MOST));
    for (name, always, too_many) in dims.chain(lists.iter().map(|list| (&list.name, true, false))) {
        let message = if too_many {
            format!("one `dims!` can make at most {MOST} dims")
        } else if always && seen.insert(name.to_string(), ()).is_some() {
            format!("the name `{name}` is declared twice")
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
