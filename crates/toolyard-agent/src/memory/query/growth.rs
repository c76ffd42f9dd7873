//! How much more there may be behind an expression than before it.

use jmespath::Variable;
use jmespath::ast::Ast;

/// A bound of what an expression makes of its data, and of what it takes to find that out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    /// How many times as many values as there were.
    pub(super) times: usize,
    /// Whether it makes strings of values, so that their length counts too.
    pub(super) makes_strings: bool,
}

/// A JSON text within a text has its quotes escaped, and so each time twice as long at most.
const ESCAPED: usize = 2;

pub(super) fn of(ast: &Ast) -> Growth {
    let mut makes_strings = false;
    let times = times(ast, &mut makes_strings);
    Growth { times, makes_strings }
}

fn times(ast: &Ast, strings: &mut bool) -> usize {
    let mut of = |ast: &Ast| times(ast, strings);
    match ast {
        Ast::Identity { .. }
        | Ast::Field { .. }
        | Ast::Index { .. }
        | Ast::Slice { .. }
        | Ast::Literal { .. } => 1,
        Ast::Not { node: inner, .. }
        | Ast::Flatten { node: inner, .. }
        | Ast::ObjectValues { node: inner, .. }
        | Ast::Expref { ast: inner, .. } => of(inner),
        // One is given what the other has made.
        Ast::Subexpr { lhs, rhs, .. } | Ast::Projection { lhs, rhs, .. } => of(lhs).saturating_mul(of(rhs)),
        // Both look at the same.
        Ast::Comparison { lhs, rhs, .. }
        | Ast::And { lhs, rhs, .. }
        | Ast::Or { lhs, rhs, .. }
        | Ast::Condition { predicate: lhs, then: rhs, .. } => of(lhs).saturating_add(of(rhs)),
        Ast::MultiList { elements, .. } => branches(elements.iter(), strings),
        Ast::MultiHash { elements, .. } => branches(elements.iter().map(|pair| &pair.value), strings),
        Ast::Function { name, args, .. } => function(name, args, strings),
    }
}

/// Parts of a list or an object that is made. Those that begin with different members of the data are made of different
/// parts of it, which together are no more than all of it.
fn branches<'a>(branches: impl ExactSizeIterator<Item = &'a Ast>, strings: &mut bool) -> usize {
    let made = branches.len();
    let (mut members, mut whole) = (Vec::<(&str, usize)>::new(), 0_usize);
    for branch in branches {
        let grown = times(branch, strings);
        match first_member(branch) {
            None => whole = whole.saturating_add(grown),
            Some(name) => match members.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum = sum.saturating_add(grown),
                None => members.push((name, grown)),
            },
        }
    }
    let members = members.iter().map(|(_, sum)| *sum).max().unwrap_or(0);
    made.saturating_add(whole).saturating_add(members)
}

/// The member of the data that all of an expression is made of.
fn first_member(ast: &Ast) -> Option<&str> {
    match ast {
        Ast::Field { name, .. } => Some(name),
        Ast::Subexpr { lhs: inner, .. }
        | Ast::Projection { lhs: inner, .. }
        | Ast::Flatten { node: inner, .. }
        | Ast::ObjectValues { node: inner, .. } => first_member(inner),
        _ => None,
    }
}

fn function(name: &str, args: &[Ast], strings: &mut bool) -> usize {
    match name {
        // An expression for each item.
        "map" | "sort_by" | "max_by" | "min_by" => {
            args.iter().fold(1, |product: usize, arg| product.saturating_mul(times(arg, strings)))
        }
        // What stands between the items stands there as often as there are items.
        "join" => {
            *strings = true;
            let glue = match args.first() {
                Some(Ast::Literal { value, .. }) => literal_length(value),
                _ => usize::MAX,
            };
            let items = args.get(1).map_or(1, |items| times(items, strings));
            items.saturating_mul(glue.saturating_add(1))
        }
        "to_string" => {
            *strings = true;
            args.iter().map(|arg| times(arg, strings)).max().unwrap_or(1).saturating_mul(ESCAPED)
        }
        _ => args.iter().fold(1, |sum: usize, arg| sum.saturating_add(times(arg, strings))),
    }
}

fn literal_length(value: &Variable) -> usize {
    value.as_string().map_or(0, String::len)
}
