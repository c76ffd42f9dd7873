//! The growth of data by a JMESPath expression. A running expression cannot be stopped, so its cost is bounded
//! beforehand.

use jmespath::Variable;
use jmespath::ast::Ast;

/// A bound on the result of an expression, and on the work to compute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowthBound {
    /// Maximum number of resulting values for each value of the data.
    pub times: usize,
    /// `true` if it turns values into strings, whose length counts too.
    pub makes_strings: bool,
}

/// A JSON text inside a text has its quotes escaped, which at most doubles its length each time.
const ESCAPED: usize = 2;

/// Bytes of a string that count as one value.
const STRING_BYTES: usize = 8;

impl GrowthBound {
    /// Returns the bound of an expression.
    #[must_use]
    pub fn of(ast: &Ast) -> Self {
        let mut makes_strings = false;
        let times = times(ast, &mut makes_strings);
        Self { times, makes_strings }
    }

    /// Returns the number of values that the expression makes at most of data with so many values and names, in a text of so
    /// many bytes.
    #[must_use]
    pub const fn values(self, values: usize, bytes: usize) -> usize {
        let strings = if self.makes_strings { bytes / STRING_BYTES } else { 0 };
        self.times.saturating_mul(values.saturating_add(strings))
    }
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
        // The second is applied to the result of the first.
        Ast::Subexpr { lhs, rhs, .. } | Ast::Projection { lhs, rhs, .. } => of(lhs).saturating_mul(of(rhs)),
        // Both are applied to the same data.
        Ast::Comparison { lhs, rhs, .. }
        | Ast::And { lhs, rhs, .. }
        | Ast::Or { lhs, rhs, .. }
        | Ast::Condition { predicate: lhs, then: rhs, .. } => of(lhs).saturating_add(of(rhs)),
        Ast::MultiList { elements, .. } => branches(elements.iter(), strings),
        Ast::MultiHash { elements, .. } => branches(elements.iter().map(|pair| &pair.value), strings),
        Ast::Function { name, args, .. } => function(name, args, strings),
    }
}

/// Returns the growth of the parts of a constructed list or object. Parts that begin with different members of the data
/// together use at most all of it.
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

/// Returns the member of the data that an expression begins with.
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
        // The separator is repeated for each item.
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
