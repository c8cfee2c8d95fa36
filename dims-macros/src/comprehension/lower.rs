//! Lowers nodes to typed operations of the library.

use super::calls::{Having, having, takes_tensor};
use super::library::{krate, path};
use super::loop_dims::{Names, order};
use super::node::*;
use super::tokens::{grouped, own_at, parens};
use crate::pattern::plan::own;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprLit, ExprUnary, Lit, LitInt, Type, UnOp};

/// The kind of a lowered node.
#[derive(Clone, Copy, PartialEq)]
enum ValueKind {
    /// One value.
    Rust,
    /// Indices: a tensor of `isize`, which takes the integer type of the elements that it is
    /// combined with.
    Index,
    /// Elements: any other tensor.
    Element,
}

struct Lowered {
    kind: ValueKind,
    code: TokenStream,
    /// The variable, if the value is a part, computed in an earlier statement. Then the code is a
    /// reference to the variable.
    part: Option<Ident>,
}

/// The maximum number of nested operations in one type: rustc is slow for deeper types. Deeper
/// nodes are computed in parts.
const MOST_DEEP: usize = 32;

/// The limit inside a branch, whose parts cannot be computed separately. rustc's own limit is 128.
const MOST_DEEP_IN_BRANCHES: usize = 110;

use ValueKind::{Element, Index, Rust};

fn lowered(kind: ValueKind, code: TokenStream) -> Lowered {
    Lowered { kind, code, part: None }
}

pub struct Lower<'a> {
    program: &'a Program,
    names: &'a Names,
    fallible: bool,
    krate: TokenStream,
    /// `let`s without loops, which precede everything else.
    fixed: Vec<TokenStream>,
    /// The statements of the body, and of each reduction that is being written.
    frames: Vec<Vec<TokenStream>>,
    /// The conditions around the current code, outermost first. The code only runs where all of
    /// them hold.
    guards: Vec<TokenStream>,
    /// For each `let` that was written: its kind, its variable, and its number of nested
    /// operations.
    locals: Vec<Option<(ValueKind, Ident, usize)>>,
    conditions: usize,
    /// The greatest number of nested operations in the siblings of the current node.
    depth: usize,
    /// The number of conditions around the current node.
    branches: usize,
    /// The number of values that were computed as parts.
    parts: usize,
    /// The span of a node that is too deep and cannot be computed in parts.
    pub too_deep: Option<Span>,
    /// Whether `let`s are written out where they are used.
    inline: bool,
}

impl<'a> Lower<'a> {
    pub fn new(program: &'a Program, names: &'a Names, fallible: bool) -> Self {
        Lower {
            program,
            names,
            fallible,
            krate: krate(),
            fixed: Vec::new(),
            frames: vec![Vec::new()],
            guards: Vec::new(),
            locals: vec![None; program.locals.len()],
            conditions: 0,
            depth: 0,
            branches: 0,
            parts: 0,
            too_deep: None,
            inline: false,
        }
    }

    /// The whole body, ordered.
    pub fn whole(&mut self, body: &Node) -> TokenStream {
        let dims: Vec<LoopId> = self.program.axes.iter().flatten().copied().collect();
        let code = self.over(body, &dims);
        let order = order(self.program, self.names);
        let name = Ident::new(if self.fallible { "try_order" } else { "order" }, Span::mixed_site());
        quote!(#code.#name(#order))
    }

    /// The `let`s without loops, and the statements of the body.
    pub fn finish(mut self) -> (Vec<TokenStream>, Vec<TokenStream>) {
        (self.fixed, self.frames.remove(0))
    }

    /// A linear index as a tensor, with `let`s written out.
    pub fn linear(&mut self, index: &Node) -> TokenStream {
        self.inline = true;
        let index = self.node(index);
        self.inline = false;
        let krate = &self.krate;
        let code = index.code;
        quote!(#krate::iota(#code))
    }

    /// A call of a method that can fail.
    pub fn call(&self, receiver: TokenStream, name: &Ident, arguments: &TokenStream) -> TokenStream {
        if !self.fallible {
            return quote!(#receiver.#name(#arguments));
        }
        let name = Ident::new(&format!("try_{name}"), name.span());
        self.or_break(quote!(#receiver.#name(#arguments)))
    }

    /// Unwraps a result, or leaves the comprehension with its error.
    fn or_break(&self, result: TokenStream) -> TokenStream {
        let label = syn::Lifetime::new("'_comprehension", Span::mixed_site());
        let (value, error) = (own("value"), own("error"));
        // Without parentheses, syn parses `'label ::` as the start of a loop.
        let failed = parens(quote!(::core::result::Result::Err(#error)));
        quote!(match #result {
            ::core::result::Result::Ok(#value) => #value,
            ::core::result::Result::Err(#error) => break #label #failed,
        })
    }

    /// A node as a tensor with all of these dims.
    fn over(&mut self, node: &Node, dims: &[LoopId]) -> TokenStream {
        let own = self.program.dims(node);
        let body = self.node(node);
        let mut code = self.tensor(body);
        let krate = &self.krate;
        for &id in dims.iter().filter(|id| !own.contains(id)) {
            let dim = &self.names.loops[id];
            code = quote!(#krate::along(#code, #dim));
        }
        code
    }

    /// A value as a tensor.
    fn tensor(&self, value: Lowered) -> TokenStream {
        let code = value.code;
        if value.kind != Rust {
            return code;
        }
        let path = path("scalar", code.span());
        quote!(#path(#code))
    }

    /// A value as an index.
    fn index(&self, value: Lowered) -> TokenStream {
        let code = value.code;
        match value.kind {
            Rust => match syn::parse2::<Lit>(code.clone()) {
                Ok(Lit::Int(literal)) if literal.suffix().is_empty() => {
                    LitInt::new(&format!("{literal}isize"), literal.span()).to_token_stream()
                }
                _ => {
                    let path = path("index", code.span());
                    quote!(#path(#code))
                }
            },
            Index => code,
            Element => {
                let path = path("indices", code.span());
                quote!(#path(#code))
            }
        }
    }

    fn node(&mut self, node: &Node) -> Lowered {
        let beside = std::mem::take(&mut self.depth);
        let mut value = self.operation(node);
        self.depth = match node {
            Node::Rust(_) | Node::Loop(..) => 0,
            // A reference to the variable counts as one more operation.
            Node::Local(id, _) if !self.inline => self.locals[*id].as_ref().map_or(0, |local| local.2 + 1),
            // A reduction is computed, so it does not count.
            Node::Reduce(_) => 0,
            Node::Let(_) => self.depth,
            _ => self.depth + 1,
        };
        let computes = !matches!(node, Node::Local(..) | Node::Let(_)) && value.kind != Rust && !self.inline;
        // In a branch, a part would be computed even at positions where the branch is not taken.
        if computes && self.branches == 0 && self.depth > MOST_DEEP {
            value = self.part(value);
        } else if self.depth > MOST_DEEP_IN_BRANCHES {
            self.too_deep.get_or_insert(place(node, value.code.span()));
        }
        self.depth = self.depth.max(beside);
        value
    }

    /// Computes a value in a statement before the expression that contains it.
    fn part(&mut self, value: Lowered) -> Lowered {
        let code = if value.kind == Index { self.iota(&value.code) } else { value.code };
        let name = own(&format!("part{}", self.parts));
        self.parts += 1;
        self.depth = 1;
        let eval = Ident::new("eval", Span::mixed_site().located_at(code.span()));
        // The value is computed in a closure where possible: without optimization, each value of a
        // function takes up stack space.
        let leaves = leaves(code.clone());
        let mut computed = self.call(code, &eval, &TokenStream::new());
        if !leaves && self.fallible {
            let label = syn::Lifetime::new("'_comprehension", Span::mixed_site());
            computed = self.or_break(quote!((|| #label: { ::core::result::Result::Ok(#computed) })()));
        } else if !leaves {
            computed = quote!((|| #computed)());
        }
        self.statement(quote!(let #name = #computed;));
        Lowered { part: Some(name.clone()), ..lowered(value.kind, parens(quote!(&#name))) }
    }

    fn operation(&mut self, node: &Node) -> Lowered {
        let krate = self.krate.clone();
        match node {
            Node::Rust(code) => lowered(Rust, code.clone()),
            Node::Loop(id, used) => lowered(Index, self.variable(*id, used.span())),
            Node::Local(id, _) if self.inline => self.node(&self.program.locals[*id]),
            Node::Local(id, used) => {
                let (kind, name, _) = self.locals[*id].as_ref().expect("a name is given before it is used");
                let name = own_at(name, used.span());
                lowered(*kind, parens(quote!(&#name)))
            }
            Node::Element(element) => self.element(element),
            Node::Reduce(reduce) => self.reduce(reduce),
            Node::Neg(minus, a) => {
                let a = self.node(a);
                let code = a.code;
                lowered(a.kind, parens(quote!(#minus #code)))
            }
            Node::Not(bang, a) => {
                let a = self.node(a);
                let code = if a.kind == Index { self.iota(&a.code) } else { a.code };
                lowered(a.kind, parens(quote!(#bang #code)))
            }
            Node::Binary(op, a, b) => self.binary(op, a, b),
            Node::Cast(a, token, ty) => {
                let a = self.node(a);
                let code = a.code;
                if a.kind == Index && matches!(&**ty, Type::Path(path) if path.path.is_ident("isize")) {
                    return lowered(Index, code);
                }
                let (path, place) = (path("cast", token.span), Span::mixed_site().located_at(token.span));
                lowered(Element, quote_spanned!(place=> #path::<#ty, _, _>(#code)))
            }
            Node::If(token, parts) => self.choice(token.span, parts),
            Node::Let(stmt) => {
                let (name, value) = (&stmt.name, self.node(&stmt.value));
                let mut code = value.part.map_or(value.code, ToTokens::into_token_stream);
                let Some(local) = stmt.local else {
                    let ty = stmt.ty.as_ref().map(|ty| quote!(: #ty));
                    self.fixed.push(quote!(let #name #ty = #code;));
                    return self.node(&stmt.rest);
                };
                if value.kind == Index {
                    code = self.iota(&code);
                }
                if let Some(ty) = &stmt.ty {
                    let path = path("typed", code.span());
                    code = quote!(#path::<#ty, _, _>(#code));
                }
                // Each `let` gets a unique name, since the `let`s of several blocks become
                // statements of one block.
                let unique = quote::format_ident!("__{name}__let{local}", span = name.span());
                self.statement(quote!(let #unique = #code;));
                let depth = std::mem::take(&mut self.depth);
                self.locals[local] = Some((value.kind, unique, depth));
                self.node(&stmt.rest)
            }
            Node::Method(method) => self.method(method),
            Node::Closure(code, slots) => {
                let mut slots = slots.iter();
                let (first, node) = slots.next().expect("a closure has an element");
                let (mut names, mut values) = (quote!(#first), self.node(node).code);
                for (name, node) in slots {
                    let value = self.node(node).code;
                    (names, values) = (quote!((#names, #name)), quote!(#krate::pairs(#values, #value)));
                }
                let path = path("mapped", code.span());
                lowered(Element, quote!(#path(#values, |#names| #code)))
            }
        }
    }

    fn statement(&mut self, code: TokenStream) {
        self.frames.last_mut().expect("there is the body").push(code);
    }

    fn iota(&self, code: &TokenStream) -> TokenStream {
        let krate = &self.krate;
        quote!(#krate::iota(#code))
    }

    /// A loop variable as a value.
    fn variable(&self, id: LoopId, place: Span) -> TokenStream {
        let one = &self.program.loops[id];
        let name = own_at(&self.names.loops[id], place);
        match &one.range {
            Some(range) if !range.from_zero => {
                let start = &self.names.starts[id];
                parens(quote!(#name + #start))
            }
            _ => quote!(#name),
        }
    }

    fn element(&mut self, element: &super::node::Element) -> Lowered {
        let indices: Vec<TokenStream> = element
            .indices
            .iter()
            .map(|index| match index {
                // A range may end before the axis does, so the index is computed.
                Node::Loop(id, used) if self.program.loops[*id].range.is_some() => {
                    let code = self.variable(*id, used.span());
                    self.iota(&code)
                }
                Node::Rust(code) => position(code),
                index => {
                    let index = self.node(index);
                    if index.kind == Element { lookup(&index.code) } else { index.code }
                }
            })
            .collect();
        // With the user's spans, messages and panics about the operand's rank point at its indices,
        // and those about its type at the operand.
        let mut binder = Group::new(Delimiter::Parenthesis, quote!(#(#indices,)*));
        binder.set_span(element.brackets);
        let at = Ident::new("at", element.base);
        let operand = own_at(&self.names.operands[element.operand], element.base);
        lowered(Element, self.call(quote!(#operand), &at, &binder.into_token_stream()))
    }

    fn reduce(&mut self, reduce: &Reduce) -> Lowered {
        self.frames.push(Vec::new());
        let mut body = self.over(&reduce.body, &reduce.loops);
        if self.program.can_fail(&reduce.body) {
            let krate = &self.krate;
            for guard in self.guards.iter().rev() {
                body = quote!(#krate::masked(#guard, #body));
            }
        }
        let conditions = ["any", "all", "count"].iter().any(|own| reduce.name == own);
        let body = called(if conditions { "conditions" } else { "summands" }, body.span(), &body);
        let stmts = self.frames.pop().expect("the frame was pushed");
        let dims: Vec<&Ident> = reduce.loops.iter().map(|&id| &self.names.loops[id]).collect();
        let dims = match dims[..] {
            [one] => quote!(#one),
            _ => quote!((#(#dims),*)),
        };
        let name = Ident::new(&reduce.name.to_string(), Span::mixed_site().located_at(reduce.name.span()));
        let path = path(if name == "norm" { "LinearAlgebra" } else { "Reductions" }, name.span());
        let body = quote_spanned!(Span::mixed_site().located_at(body.span())=> &#body);
        let code = if self.fallible {
            let name = quote::format_ident!("try_{name}", span = name.span());
            self.or_break(quote!(#path::#name(#body, #dims)))
        } else {
            quote!(#path::#name(#body, #dims))
        };
        lowered(Element, if stmts.is_empty() { code } else { quote!({ #(#stmts)* #code }) })
    }

    fn binary(&mut self, op: &BinOp, a: &Node, b: &Node) -> Lowered {
        if let BinOp::And(_) | BinOp::Or(_) = op {
            return self.logic(op, a, b);
        }
        let (a, b) = (self.node(a), self.node(b));
        if let Some((method, turned)) = comparison(op) {
            return self.comparison(method, turned, op.span(), a, b);
        }
        let bits = matches!(op, BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitXor(_));
        let (kind, a, b) = match (a.kind, b.kind) {
            (Index, Rust | Index) => (Index, a.code.clone(), self.index(b)),
            (Rust, Index) => (Index, self.index(a), b.code),
            (Index, Element) | (Element, Index) => return self.alike(a, b, |a, b| quote!(#a #op #b)),
            (Rust, Element) => {
                let (x, y, a, b) = (own("x"), own("y"), a.code, b.code);
                let (both, place) = (path("combined", a.span()), Span::mixed_site().located_at(a.span()));
                return lowered(
                    Element,
                    quote_spanned!(place=> match #both(#b, #a) { (#y, #x) => #x #op #y }),
                );
            }
            (Rust, Rust) => (Element, self.tensor(a), b.code),
            (Element, _) => (Element, a.code, b.code),
        };
        // Dims have no bit operators, but tensors of their indices do.
        let a = if bits && kind == Index { self.iota(&a) } else { a };
        lowered(kind, parens(quote!(#a #op #b)))
    }

    /// Combines indices and elements, after converting the indices to the elements' type.
    fn alike(&self, a: Lowered, b: Lowered, code: impl FnOnce(&Ident, &Ident) -> TokenStream) -> Lowered {
        let (x, y) = (own("x"), own("y"));
        let (first, second) = (a.code, b.code);
        let path = path("alike", if a.kind == Index { second.span() } else { first.span() });
        let code = code(&x, &y);
        lowered(
            Element,
            if a.kind == Index {
                quote!({ let (#y, #x) = #path(#second, #first); #code })
            } else {
                quote!({ let (#x, #y) = #path(#first, #second); #code })
            },
        )
    }

    fn comparison(&mut self, method: &str, turned: &str, place: Span, a: Lowered, b: Lowered) -> Lowered {
        let (method, a, b) = match (a.kind, b.kind) {
            (Index, _) | (_, Index) if a.kind != Rust => (method, self.index(a), self.index(b)),
            (Rust, Index) => (turned, b.code, self.index(a)),
            (Rust, _) => return compared(turned, place, &b.code, &a.code),
            _ => return compared(method, place, &a.code, &b.code),
        };
        let (path, method) =
            (path("Elementwise", place), Ident::new(method, Span::mixed_site().located_at(place)));
        lowered(Element, quote!(#path::#method(#a, #b)))
    }

    /// `a && b` and `a || b`. If the right side [can fail](Program::can_fail), it is not computed
    /// where the left side decides. The same holds for its reductions that can fail. Its other
    /// reductions are computed everywhere.
    fn logic(&mut self, op: &BinOp, a: &Node, b: &Node) -> Lowered {
        let and = matches!(op, BinOp::And(_));
        let lazy = self.program.can_fail(b);
        let left = self.node(a);
        let left = if is_condition(a) { left } else { checked(left) };
        let mut left = self.tensor(left);
        let guarded = self.program.runs_what_can_fail(b);
        if guarded {
            left = self.condition(left);
            self.guards.push(if and { left.clone() } else { parens(quote!(!#left)) });
        }
        self.branches += usize::from(lazy);
        let right = self.node(b);
        let right = if is_condition(b) { right } else { checked(right) };
        let right = if right.kind == Rust { grouped(right.code) } else { right.code };
        self.branches -= usize::from(lazy);
        if guarded {
            self.guards.pop();
        }
        let place = Span::mixed_site().located_at(op.span());
        lowered(
            Element,
            match (lazy, and) {
                (true, true) => quote_spanned!(place=> #left.select(#right, false)),
                (true, false) => quote_spanned!(place=> #left.select(true, #right)),
                (false, true) => parens(quote_spanned!(place=> #left & #right)),
                (false, false) => parens(quote_spanned!(place=> #left | #right)),
            },
        )
    }

    /// Adds a statement that computes a condition, and returns a reference to its value, which can
    /// be used more than once.
    fn condition(&mut self, code: TokenStream) -> TokenStream {
        let name = own(&format!("condition{}", self.conditions));
        self.conditions += 1;
        self.statement(quote!(let #name = #code;));
        parens(quote!(&#name))
    }

    fn choice(&mut self, place: Span, parts: &[Node; 3]) -> Lowered {
        let [cond, a, b] = parts;
        let select = Ident::new("select", Span::mixed_site().located_at(place));
        let guarded = [a, b].map(|side| self.program.runs_what_can_fail(side));
        let is_condition = is_condition(cond);
        let cond = self.node(cond);
        let mut cond = self.tensor(cond);
        if !is_condition {
            let path = path("condition", cond.span());
            cond = quote!(#path(#cond));
        }
        if guarded[0] || guarded[1] {
            cond = self.condition(cond);
        }
        let guards = [cond.clone(), parens(quote!(!#cond))];
        let [a, b] = [(a, 0), (b, 1)].map(|(side, at)| {
            self.guards.push(guards[at].clone());
            self.branches += 1;
            let side = self.node(side);
            self.branches -= 1;
            self.guards.pop();
            side
        });
        match (a.kind, b.kind) {
            (Index, Rust | Index) | (Rust, Index) => {
                let (a, b) = (self.index(a), self.index(b));
                lowered(Index, quote!(#cond.#select(#a, #b)))
            }
            (Index, Element) | (Element, Index) => self.alike(a, b, |a, b| quote!(#cond.#select(#a, #b))),
            (Rust, Element) => {
                let (x, y, a, b) = (own("x"), own("y"), a.code, b.code);
                let both = path("combined", a.span());
                lowered(Element, quote!(match #both(#b, #a) { (#y, #x) => #cond.#select(#x, #y) }))
            }
            _ => {
                let (a, b) = (a.code, b.code);
                lowered(Element, quote!(#cond.#select(#a, #b)))
            }
        }
    }

    fn method(&mut self, method: &Method) -> Lowered {
        let Method { receiver, name, turbofish, arguments } = method;
        let receiver = self.node(receiver);
        let mut arguments: Vec<Lowered> = arguments.iter().map(|argument| self.node(argument)).collect();
        let with_index = receiver.kind == Index || arguments.iter().any(|argument| argument.kind == Index);
        if with_index && let [_] = arguments[..] {
            let argument = arguments.remove(0);
            return match (receiver.kind, argument.kind) {
                (Index, Element) | (Element, Index) => {
                    self.alike(receiver, argument, |a, b| quote!(#a.#name(#b)))
                }
                (Rust, _) => {
                    let code = self.index(receiver);
                    let code = self.tensor(lowered(Rust, code));
                    let argument = argument.code;
                    lowered(Index, quote!(#code.#name #turbofish(#argument)))
                }
                _ => {
                    let stays = ["maximum", "minimum"].iter().any(|known| name == known);
                    let code = receiver.code;
                    let argument = if stays { self.index(argument) } else { argument.code };
                    lowered(if stays { Index } else { Element }, quote!(#code.#name #turbofish(#argument)))
                }
            };
        }
        let stays =
            receiver.kind == Index && ["abs", "clamp", "signum", "square"].iter().any(|known| name == known);
        // Element types without the method are refused here, where rustc's message is shorter than
        // at the call.
        let function = match having(name) {
            Some(Having::Smooth) => Some("smooth"),
            Some(Having::Floats) => Some("floating"),
            Some(Having::Any) | None => None,
        };
        let mut code = self.tensor(receiver);
        if let Some(function) = function {
            code = called(function, name.span(), &code);
        }
        if takes_tensor(&name.to_string())
            && let [argument, numbers @ ..] = &arguments[..]
            && argument.kind == Rust
        {
            let (x, y) = (own("x"), own("y"));
            let (both, place) = (path("combined", argument.code.span()), code.span());
            let argument = &argument.code;
            let numbers = numbers.iter().map(|number| &number.code);
            return lowered(
                Element,
                quote_spanned!(place=> match #both(#code, #argument) { (#x, #y) => #x.#name #turbofish(#y #(, #numbers)*) }),
            );
        }
        let arguments: Vec<TokenStream> = arguments
            .into_iter()
            .map(|argument| if stays { self.index(argument) } else { argument.code })
            .collect();
        lowered(if stays { Index } else { Element }, quote!(#code.#name #turbofish(#(#arguments),*)))
    }
}

/// Whether code may leave the function or the iteration around it. Such code cannot run in a
/// closure. (A `break` of the macro itself can: the closure has a block with the same label.)
fn leaves(code: TokenStream) -> bool {
    let mut tokens = code.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let leaves = match token {
            TokenTree::Group(group) => leaves(group.stream()),
            TokenTree::Ident(word) if word == "break" => {
                tokens.next_if(|next| matches!(next, TokenTree::Punct(sign) if sign.as_char() == '\''));
                !matches!(tokens.peek(), Some(TokenTree::Ident(label)) if label == "_comprehension")
            }
            TokenTree::Ident(word) => {
                ["return", "await", "continue", "yield"].iter().any(|leaving| word == leaving)
            }
            TokenTree::Punct(sign) => sign.as_char() == '?',
            TokenTree::Literal(_) => false,
        };
        if leaves {
            return true;
        }
    }
    false
}

/// The span of an operation.
fn place(node: &Node, other: Span) -> Span {
    match node {
        Node::Binary(op, ..) => op.span(),
        Node::Method(method) => method.name.span(),
        Node::If(token, _) => token.span,
        Node::Neg(token, _) => token.span,
        Node::Not(token, _) => token.span,
        Node::Cast(_, token, _) => token.span,
        Node::Element(element) => element.base,
        _ => other,
    }
}

/// An index without a loop. It is checked where an element is read, as all indices are. A negative
/// literal counts from the end, also in parentheses.
fn position(index: &TokenStream) -> TokenStream {
    let suffixed = |literal: &LitInt, ty| LitInt::new(&format!("{literal}{ty}"), literal.span());
    let mut expr = syn::parse2::<Expr>(index.clone());
    while let Ok(Expr::Paren(inner)) = expr {
        expr = Ok(*inner.expr);
    }
    match expr {
        Ok(Expr::Unary(ExprUnary { op: UnOp::Neg(minus), expr, .. })) => match &*expr {
            Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) if literal.suffix().is_empty() => {
                let literal = suffixed(literal, "isize");
                return quote!(#minus #literal);
            }
            _ => {}
        },
        Ok(Expr::Lit(ExprLit { lit: Lit::Int(literal), .. })) if literal.suffix().is_empty() => {
            let (path, literal) = (path("position", index.span()), suffixed(&literal, "usize"));
            return quote!(#path(#literal));
        }
        _ => {}
    }
    let path = path("position", index.span());
    quote!(#path(#index))
}

/// The method of a comparison, and the method with the operands swapped.
fn comparison(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::Eq(_) => ("eq", "eq"),
        BinOp::Ne(_) => ("ne", "ne"),
        BinOp::Lt(_) => ("lt", "gt"),
        BinOp::Le(_) => ("le", "ge"),
        BinOp::Gt(_) => ("gt", "lt"),
        BinOp::Ge(_) => ("ge", "le"),
        _ => return None,
    })
}

/// Compares elements. rustc reports the types of both operands before it looks at the method.
fn compared(method: &str, place: Span, a: &TokenStream, b: &TokenStream) -> Lowered {
    let (x, y) = (own("x"), own("y"));
    let both = path("compared", b.span());
    let method = Ident::new(method, Span::mixed_site().located_at(place));
    let path = path("Elementwise", place);
    let place = Span::mixed_site().located_at(a.span());
    lowered(Element, quote_spanned!(place=> match #both(#a, #b) { (#x, #y) => #path::#method(#x, #y) }))
}

/// Elements that must be conditions, which rustc checks.
fn checked(value: Lowered) -> Lowered {
    if value.kind != Element {
        return value;
    }
    let code = called("conditions", value.code.span(), &value.code);
    Lowered { code, ..value }
}

/// Whether a node is syntactically a condition.
fn is_condition(node: &Node) -> bool {
    match node {
        Node::Binary(op, ..) => comparison(op).is_some() || matches!(op, BinOp::And(_) | BinOp::Or(_)),
        Node::Not(..) => true,
        _ => false,
    }
}

/// Elements as indices. They must be integers.
pub fn lookup(code: &TokenStream) -> TokenStream {
    called("lookup", code.span(), code)
}

/// A call of one of the library's functions for macros. Tokens other than the arguments have this
/// span.
fn called(name: &str, place: Span, arguments: &TokenStream) -> TokenStream {
    let (path, place) = (path(name, place), Span::mixed_site().located_at(place));
    quote_spanned!(place=> #path(#arguments))
}
