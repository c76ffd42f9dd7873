//! How the values of a schema look in XML.

use crate::operation::XmlShape;
use crate::resolve::{At, Files};
use crate::schema::flat;

/// How deep shapes are known: what is deeper has the names of its members.
const DEEPEST: usize = 8;

/// How many shapes a body has at most.
const MOST: usize = 2_000;

/// The shape of what a schema describes. An element without a name of its own is called after its definition.
pub(super) fn shape<'d>(files: &Files<'d>, at: At<'d>) -> XmlShape {
    let mut left = MOST;
    let called = at.reference().and_then(|reference| reference.rsplit('/').next());
    let mut shape = shape_at(files, at, DEEPEST, &mut left);
    if shape.name.is_none() {
        shape.name = called.map(str::to_owned);
    }
    shape
}

fn shape_at<'d>(files: &Files<'d>, at: At<'d>, depth: usize, left: &mut usize) -> XmlShape {
    let Some(at) = files.resolve(at).filter(|_| depth > 0 && *left > 0) else { return XmlShape::default() };
    *left -= 1;
    let flat = flat(files, at);
    let xml = flat.keyword("xml");
    let text = |name| xml.and_then(|xml| xml.node.text(name)).map(str::to_owned);
    let is = |name| xml.is_some_and(|xml| xml.node.is(name));
    // OpenAPI 3.2 says with `nodeType` what were two flags.
    let is_node = |kind: &str| xml.and_then(|xml| xml.node.text("nodeType")) == Some(kind);
    let items = flat.keyword("items");
    XmlShape {
        name: text("name"),
        namespace: text("namespace"),
        prefix: text("prefix"),
        attribute: is("attribute") || is_node("attribute"),
        wrapped: is("wrapped") || (items.is_some() && is_node("element")),
        items: items.map(|items| Box::new(shape_at(files, items, depth - 1, left))),
        members: flat
            .properties
            .iter()
            .map(|(name, at)| ((*name).to_owned(), shape_at(files, *at, depth - 1, left)))
            .collect(),
    }
}
