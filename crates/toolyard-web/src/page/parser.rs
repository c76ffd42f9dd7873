//! Parses HTML, within a number of elements and a time.
//!
//! A short page can have many elements: each paragraph repeats all open formatting elements, and each start tag looks
//! through all open ones. The input is therefore fed tag by tag, and its rest is left out once a limit is reached.

use std::borrow::Cow;
use std::cell::{Cell, Ref};
use std::time::{Duration, Instant};

use dom_query::{Document, NodeId};
use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ParseOpts, QualName, parse_document};

/// Maximum number of elements. The longest pages of documentation have a third.
const MAX_ELEMENTS: usize = 300_000;

/// Maximum time of parsing.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Number of tags between two looks at the clock.
const TAGS_PER_LOOK: usize = 64;

/// A page as far as the limits allow.
pub(super) struct ParsedPage {
    pub(super) document: Document,
    /// `false`: the page exceeds the limits, and its rest is left out.
    pub(super) is_whole: bool,
}

/// Parses a page, or its beginning if it exceeds the limits.
pub(super) fn parse(html: &str) -> ParsedPage {
    let sink = BoundedSink { document: Document::default(), elements: Cell::new(0) };
    // Scripts are not run, so that `noscript` is content: markup instead of a text.
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(sink, ParseOpts { tree_builder, ..ParseOpts::default() });
    let start = Instant::now();
    let mut is_whole = true;
    for (number, piece) in html.split_inclusive('>').enumerate() {
        let is_late = number % TAGS_PER_LOOK == 0 && start.elapsed() > MAX_TIME;
        if is_late || parser.tokenizer.sink.sink.elements.get() > MAX_ELEMENTS {
            is_whole = false;
            break;
        }
        parser.process(StrTendril::from_slice(piece));
    }
    ParsedPage { document: parser.finish(), is_whole }
}

/// A document that counts its elements.
struct BoundedSink {
    document: Document,
    elements: Cell<usize>,
}

impl TreeSink for BoundedSink {
    type Handle = NodeId;
    type Output = Document;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Document {
        self.document
    }

    /// Errors are of no interest, and a page may have as many as bytes.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.elements.update(|elements| elements + 1);
        self.document.create_element(name, attrs, flags)
    }

    fn get_document(&self) -> NodeId {
        self.document.get_document()
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.document.get_template_contents(target)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.document.set_quirks_mode(mode);
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        x == y
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        self.document.elem_name(target)
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.document.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.document.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.document.append(parent, child);
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.document.append_before_sibling(sibling, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, previous: &NodeId, child: NodeOrText<NodeId>) {
        self.document.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.document.append_doctype_to_document(name, public_id, system_id);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.document.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.document.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.document.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        self.document.is_mathml_annotation_xml_integration_point(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_is_that_of_the_whole_page() {
        for html in [
            "",
            "<p>a<b>c",
            "<!DOCTYPE html><html><body a=1><!-- > --><p title='>'>x</p>",
            "a > b < c &amp; d",
            "<p>a<noscript><b>c</b></noscript>",
        ] {
            let ParsedPage { document, is_whole } = parse(html);
            assert_eq!((document.html(), is_whole), (Document::from(html).html(), true), "{html}");
        }
    }

    #[test]
    fn elements_are_bounded() {
        // Every paragraph repeats all formats that are still open.
        let formats: String = (0..200).map(|number| format!("<b a={number}>")).collect();
        let ParsedPage { document, is_whole } = parse(&format!("<p>{formats}{}", "<p>x".repeat(100_000)));
        assert!(!is_whole);
        let elements = document.root().descendants_it().filter(dom_query::NodeRef::is_element).count();
        assert!((400..=MAX_ELEMENTS + 201).contains(&elements), "{elements}");
    }

    #[test]
    fn deep_page_ends_in_time() {
        let start = Instant::now();
        parse(&"<div>".repeat(1_000_000));
        assert!(start.elapsed() < MAX_TIME * 4);
    }
}
