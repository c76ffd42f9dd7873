//! The XML shapes of schemas.

use crate::operation::XmlShape;
use crate::resolve::{NodeRef, SpecFiles};
use crate::schema::flatten;

/// Maximum depth of shapes; deeper values use the names of their members.
const MAX_SHAPE_DEPTH: usize = 8;

/// Maximum number of shapes of a body.
const MAX_SHAPES: usize = 2_000;

/// Returns the shape for a schema. An element without a name has that of its definition.
pub(super) fn shape<'d>(files: &SpecFiles<'d>, at: NodeRef<'d>) -> XmlShape {
    let mut budget = MAX_SHAPES;
    let definition_name = at.reference().and_then(|reference| reference.rsplit('/').next());
    let mut shape = shape_at(files, at, MAX_SHAPE_DEPTH, &mut budget);
    if shape.name.is_none() {
        shape.name = definition_name.map(str::to_owned);
    }
    shape
}

fn shape_at<'d>(files: &SpecFiles<'d>, at: NodeRef<'d>, depth: usize, budget: &mut usize) -> XmlShape {
    let Some(at) = files.resolve(at).filter(|_| depth > 0 && *budget > 0) else { return XmlShape::default() };
    *budget -= 1;
    let flat = flatten(files, at);
    let xml = flat.keyword("xml");
    let text = |name| xml.and_then(|xml| xml.node.text(name)).map(str::to_owned);
    let is = |name| xml.is_some_and(|xml| xml.node.is_true(name));
    // OpenAPI 3.2 replaces two flags by `nodeType`.
    let is_node = |kind: &str| xml.and_then(|xml| xml.node.text("nodeType")) == Some(kind);
    let items = flat.keyword("items");
    XmlShape {
        name: text("name"),
        namespace: text("namespace"),
        prefix: text("prefix"),
        attribute: is("attribute") || is_node("attribute"),
        wrapped: is("wrapped") || (items.is_some() && is_node("element")),
        items: items.map(|items| Box::new(shape_at(files, items, depth - 1, budget))),
        members: flat
            .properties
            .iter()
            .map(|(name, at)| ((*name).to_owned(), shape_at(files, *at, depth - 1, budget)))
            .collect(),
    }
}
