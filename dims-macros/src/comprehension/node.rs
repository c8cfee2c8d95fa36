//! A checked comprehension as a tree: its loops, and the parts that depend on them.

use proc_macro2::{Ident, Span, TokenStream};
use std::collections::BTreeSet;
use syn::{BinOp, Lit, Token, Type};

/// The position of a loop in [`Program::loops`].
pub type LoopId = usize;
/// The position in [`Program::locals`] of a `let` that reads elements or depends on loops.
pub type LocalId = usize;

/// A whole comprehension.
pub struct Program {
    pub loops: Vec<Loop>,
    /// The indexed operands, each evaluated once.
    pub operands: Vec<TokenStream>,
    /// The values of `let`s that read elements or depend on loops.
    pub locals: Vec<Node>,
    /// Integers that are computed once, before the loops, each with its name in the expansion.
    pub hoisted: Vec<(Ident, TokenStream)>,
    /// The axes of the result, each made of one or more loops.
    pub axes: Vec<Vec<LoopId>>,
    pub body: Node,
    /// How loops get their sizes. Empty if binding the operands determines all sizes.
    pub sizes: Vec<Step>,
}

/// How one loop gets its size before operands are bound.
pub enum Step {
    /// The size of the whole axis.
    Axis { operand: usize, at: usize, rank: usize, of: LoopId },
    /// The greatest size for which the index stays within the axis.
    Fit { operand: usize, at: usize, rank: usize, index: Node },
}

/// A loop variable.
pub struct Loop {
    pub name: Ident,
    /// Whether it is a dim of the surrounding scope, `$i`.
    pub outer: bool,
    pub range: Option<Range>,
}

/// `0..n`
pub struct Range {
    pub tokens: TokenStream,
    /// Whether it starts at a literal 0, so that the dim's index is the value of the variable.
    pub from_zero: bool,
}

/// A part of the body.
#[derive(Clone)]
pub enum Node {
    /// Rust code without loop variables: a captured value.
    Rust(TokenStream),
    /// A use of a loop variable.
    Loop(LoopId, Ident),
    /// A use of a name bound by `let`.
    Local(LocalId, Ident),
    /// An element of an operand.
    Element(Element),
    Reduce(Box<Reduce>),
    Neg(Token![-], Box<Node>),
    Not(Token![!], Box<Node>),
    Binary(BinOp, Box<Node>, Box<Node>),
    Cast(Box<Node>, Token![as], Box<Type>),
    /// `if`: the condition, the value if it holds, and the value otherwise.
    If(Token![if], Box<[Node; 3]>),
    Let(Box<Let>),
    /// A method of the library.
    Method(Box<Method>),
    /// Any other Rust code that reads elements or depends on loops. Each part that does so has a
    /// name in the code.
    Closure(TokenStream, Vec<(Ident, Node)>),
}

/// `a[i, j + 1]`
#[derive(Clone)]
pub struct Element {
    pub operand: usize,
    pub indices: Vec<Node>,
    /// The source text, for messages.
    pub text: String,
    /// The span of the operand's last token.
    pub base: Span,
    /// The span of the indices.
    pub brackets: Span,
}

/// `sum[k](..)`
#[derive(Clone)]
pub struct Reduce {
    pub name: Ident,
    pub loops: Vec<LoopId>,
    pub body: Node,
}

/// `let x = ..;` and the code after it.
#[derive(Clone)]
pub struct Let {
    pub name: Ident,
    pub ty: Option<Type>,
    /// The local, if the value reads elements or depends on loops.
    pub local: Option<LocalId>,
    pub value: Node,
    pub rest: Node,
}

/// `x.clamp(0.0, 1.0)`
#[derive(Clone)]
pub struct Method {
    pub receiver: Node,
    pub name: Ident,
    pub turbofish: Option<TokenStream>,
    pub arguments: Vec<Node>,
}

impl Node {
    /// Whether the node neither reads elements nor depends on loops.
    pub fn is_rust(&self) -> bool {
        matches!(self, Node::Rust(_))
    }

    /// Whether the node is a literal, which may be negative.
    pub fn is_literal(&self) -> bool {
        matches!(self, Node::Rust(code) if syn::parse2::<Lit>(code.clone()).is_ok())
    }

    /// The direct children.
    pub fn parts(&self) -> Vec<&Node> {
        match self {
            Node::Rust(_) | Node::Loop(..) | Node::Local(..) => Vec::new(),
            Node::Element(element) => element.indices.iter().collect(),
            Node::Reduce(reduce) => vec![&reduce.body],
            Node::Neg(_, a) | Node::Not(_, a) | Node::Cast(a, ..) => vec![a],
            Node::Binary(_, a, b) => vec![a, b],
            Node::If(_, parts) => parts.iter().collect(),
            Node::Let(stmt) => vec![&stmt.value, &stmt.rest],
            Node::Method(method) => std::iter::once(&method.receiver).chain(&method.arguments).collect(),
            Node::Closure(_, slots) => slots.iter().map(|(_, node)| node).collect(),
        }
    }

    /// Calls `visit` with this node and its descendants. The value of a `let` is visited at the
    /// `let`, not where its name is used.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        visit(self);
        for part in self.parts() {
            part.walk(visit);
        }
    }
}

impl Program {
    /// The loops that a node depends on.
    pub fn dims(&self, node: &Node) -> BTreeSet<LoopId> {
        match node {
            Node::Loop(id, _) => BTreeSet::from([*id]),
            Node::Local(id, _) => self.dims(&self.locals[*id]),
            // The value of a `let` counts where it is used.
            Node::Let(stmt) => self.dims(&stmt.rest),
            Node::Reduce(reduce) => {
                let mut dims = self.dims(&reduce.body);
                dims.retain(|id| !reduce.loops.contains(id));
                dims
            }
            _ => node.parts().into_iter().flat_map(|part| self.dims(part)).collect(),
        }
    }

    /// Whether computing the elements of a node can fail. Any index may be out of range, except a
    /// loop over the whole axis. Rust code that runs for each element may panic, or have effects.
    /// The quotient of integers panics where the divisor is 0. (`remainder` and `floor_div` count
    /// as fallible even if the divisor is a literal.)
    pub fn can_fail(&self, node: &Node) -> bool {
        let own = match node {
            Node::Element(element) => element.indices.iter().any(|index| !self.is_whole_axis(index)),
            Node::Local(id, _) => self.can_fail(&self.locals[*id]),
            Node::Closure(..) => true,
            Node::Binary(BinOp::Div(_) | BinOp::Rem(_), _, divisor) => !divisor.is_literal(),
            Node::Method(method) => ["map", "remainder", "floor_div"].iter().any(|name| method.name == name),
            _ => false,
        };
        own || node.parts().into_iter().any(|part| self.can_fail(part))
    }

    /// Whether an index is a loop over the whole axis.
    pub fn is_whole_axis(&self, index: &Node) -> bool {
        match index {
            Node::Loop(id, _) => self.loops[*id].range.is_none(),
            _ => false,
        }
    }

    /// All elements that are read, including those in `let`s.
    pub fn elements(&self) -> Vec<&Element> {
        let mut elements = Vec::new();
        self.body.walk(&mut |node| {
            if let Node::Element(element) = node {
                elements.push(element);
            }
        });
        elements
    }
}
