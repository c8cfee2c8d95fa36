//! The input of `#[batched]`: a function, a method with or without a body, or all methods of a
//! trait or an impl.

use crate::groups::Ungroup;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Block, Error, ImplItem, Item, ItemImpl, ItemTrait, Result, Signature, Token, TraitItem,
    Visibility,
};

/// The item under the attribute.
pub enum BatchedInput {
    Function(Box<Function>),
    Block(Box<Methods>),
}

/// A function or a method. A trait method may have no body.
pub struct Function {
    /// Whether it is one of the [`Methods`] of a trait or an impl.
    pub is_member: bool,
    pub attrs: Vec<Attribute>,
    pub vis: Visibility,
    pub sig: Signature,
    pub block: Option<Block>,
}

/// All methods of a trait or an impl.
pub enum Methods {
    Trait(ItemTrait),
    Impl(ItemImpl),
}

impl Parse for BatchedInput {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let ahead = input.fork();
        let _ = ahead.call(Attribute::parse_outer)?;
        let _: Visibility = ahead.parse()?;
        let _: Option<Token![unsafe]> = ahead.parse()?;
        if ahead.peek(Token![trait]) || ahead.peek(Token![impl]) {
            let mut item: Item = input.parse()?;
            Ungroup.visit_item_mut(&mut item);
            return match item {
                Item::Trait(item) => Ok(BatchedInput::Block(Box::new(Methods::Trait(item)))),
                Item::Impl(item) => Ok(BatchedInput::Block(Box::new(Methods::Impl(item)))),
                item => Err(Error::new_spanned(item, EXPECTED)),
            };
        }
        let ahead = input.fork();
        let _ = ahead.call(Attribute::parse_outer)?;
        let _: Visibility = ahead.parse()?;
        if ahead.parse::<Signature>().is_err() {
            return Err(Error::new(ahead.span(), EXPECTED));
        }
        input.parse().map(|function| BatchedInput::Function(Box::new(function)))
    }
}

const EXPECTED: &str = "`#[batched]` is for functions, methods, traits and `impl`s";

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let mut sig: Signature = input.parse()?;
        Ungroup.visit_signature_mut(&mut sig);
        let block = if input.peek(Token![;]) {
            input.parse::<Token![;]>()?;
            None
        } else {
            let mut block: Block = input.parse()?;
            Ungroup.visit_block_mut(&mut block);
            Some(block)
        };
        Ok(Function { is_member: false, attrs, vis, sig, block })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Function { attrs, vis, sig, block, .. } = self;
        let block = block.as_ref().map_or_else(|| quote!(;), ToTokens::to_token_stream);
        tokens.extend(quote!(#(#attrs)* #vis #sig #block));
    }
}

impl Methods {
    /// The trait or impl, with each method that takes tensors replaced by its expansion. Methods
    /// for which `expand` returns `None` are dropped.
    pub fn expand(self, mut expand: impl FnMut(Function) -> Option<TokenStream>) -> TokenStream {
        match self {
            Methods::Trait(mut item) => {
                let items = std::mem::take(&mut item.items).into_iter().map(|member| match member {
                    TraitItem::Fn(method) if super::tensor::takes_tensors(&method.sig) => {
                        let function = Function {
                            is_member: true,
                            attrs: method.attrs,
                            vis: Visibility::Inherited,
                            sig: method.sig,
                            block: method.default,
                        };
                        TraitItem::Verbatim(expand(function).unwrap_or_default())
                    }
                    member => member,
                });
                item.items = items.collect();
                item.into_token_stream()
            }
            Methods::Impl(mut item) => {
                let items = std::mem::take(&mut item.items).into_iter().map(|member| match member {
                    ImplItem::Fn(method) if super::tensor::takes_tensors(&method.sig) => {
                        let function = Function {
                            is_member: true,
                            attrs: method.attrs,
                            vis: method.vis,
                            sig: method.sig,
                            block: Some(method.block),
                        };
                        ImplItem::Verbatim(expand(function).unwrap_or_default())
                    }
                    member => member,
                });
                item.items = items.collect();
                item.into_token_stream()
            }
        }
    }
}
