//! The elements and texts of a page in their order, with the numbers of their words and links.

use dom_query::NodeRef;

/// Elements that a link may hold only if it is a card: a title with a text, and not a word of a menu.
const CARD_PARTS: [&str; 9] = ["h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "article"];

const HEADINGS: [&str; 4] = ["h1", "h2", "h3", "h4"];

/// Numbers of a part of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordCounts {
    pub(super) words: usize,
    /// Words of links that are no cards.
    pub(super) link_words: usize,
    /// Links with a text.
    pub(super) links: usize,
}

impl WordCounts {
    pub(super) fn add(&mut self, other: WordCounts) {
        self.words += other.words;
        self.link_words += other.link_words;
        self.links += other.links;
    }
}

/// An element or a text.
pub(super) struct OutlineNode<'a> {
    pub(super) node: NodeRef<'a>,
    /// Name of the element; empty for a text.
    pub(super) name: String,
    /// Position of the parent; its own for the first one.
    pub(super) parent: usize,
    /// Position behind the last descendant.
    pub(super) end: usize,
    /// Numbers of the node alone: of a text, or the link that an element is.
    pub(super) own: WordCounts,
    /// Numbers of the node with its descendants.
    pub(super) all: WordCounts,
}

impl OutlineNode<'_> {
    pub(super) fn is_any(&self, names: &[&str]) -> bool {
        names.contains(&&*self.name)
    }
}

/// Returns the nodes below and including `root`, each before its descendants.
pub(super) fn outline<'a>(root: &NodeRef<'a>) -> Vec<OutlineNode<'a>> {
    let mut nodes = in_order(root);
    let mut has_card_part = vec![false; nodes.len()];
    for at in (1..nodes.len()).rev() {
        if has_card_part[at] || nodes[at].is_any(&CARD_PARTS) {
            has_card_part[nodes[at].parent] = true;
        }
    }
    let mut is_linked = vec![false; nodes.len()];
    for at in 0..nodes.len() {
        let parent = nodes[at].parent;
        let is_link = nodes[at].name == "a" && !has_card_part[at] && !nodes[parent].is_any(&HEADINGS);
        is_linked[at] = is_link || at > 0 && is_linked[parent];
        if nodes[at].name.is_empty() {
            let words = count_words(&nodes[at].node.text());
            let link_words = if is_linked[at] { words } else { 0 };
            nodes[at].own = WordCounts { words, link_words, links: 0 };
        }
    }
    for at in (0..nodes.len()).rev() {
        let mut all = nodes[at].all;
        all.add(nodes[at].own);
        if nodes[at].name == "a" && all.words > 0 {
            nodes[at].own.links = 1;
            all.links += 1;
        }
        nodes[at].all = all;
        let parent = nodes[at].parent;
        if parent != at {
            nodes[parent].all.add(all);
        }
    }
    nodes
}

fn in_order<'a>(root: &NodeRef<'a>) -> Vec<OutlineNode<'a>> {
    let mut nodes: Vec<OutlineNode<'a>> = Vec::new();
    let mut open = vec![(*root, 0)];
    while let Some((node, parent)) = open.pop() {
        let at = nodes.len();
        let name = match node.is_text() {
            true => String::new(),
            false => match node.node_name() {
                Some(name) => name.to_string(),
                None => continue,
            },
        };
        let (own, all) = (WordCounts::default(), WordCounts::default());
        nodes.push(OutlineNode { node, name, parent, end: at + 1, own, all });
        open.extend(node.children_it(true).map(|child| (child, at)));
    }
    for at in (1..nodes.len()).rev() {
        let (parent, end) = (nodes[at].parent, nodes[at].end);
        nodes[parent].end = nodes[parent].end.max(end);
    }
    nodes
}

/// Returns the number of words, which consist of letters, digits and `_`.
pub(super) fn count_words(text: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count()
}
