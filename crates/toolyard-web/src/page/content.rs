//! The content of a page that is no article: what is left without the parts beside it.

use std::collections::HashSet;

use dom_query::NodeRef;

use super::class_words::{NamedPart, named_part, names};
use super::outline::{OutlineNode, WordCounts, outline};

/// Part of a page's words that a part must have to be its main one, in percent.
const MAIN_SHARE: usize = 15;

/// Part of the words up to which a part that is named as one beside the content is left out, in percent.
const BESIDE_SHARE: usize = 60;

/// Number of words outside of links with which a part is content that its name leaves open.
const CONTENT_WORDS: usize = 25;

/// Number of words that a page has at least without its menus.
const MIN_WORDS: usize = 30;

/// Part of the words that a page has at least without its menus, in percent.
const INDEX_SHARE: usize = 55;

/// Number of links from which a part can be a menu.
const MENU_LINKS: usize = 3;

/// Part of the words of a menu that are links, in percent.
const MENU_LINK_SHARE: usize = 70;

/// Number of words of ten links of a menu, at most.
const MENU_WORDS_OF_TEN: usize = 45;

/// Number of words from which a text that is there twice is left out, such as one for small screens.
const REPEATED_WORDS: usize = 8;

/// Headings of parts.
const HEADINGS: [&str; 5] = ["h2", "h3", "h4", "h5", "h6"];

/// Beginnings of the headings of parts beside the content, in lower case.
const BESIDE_HEADINGS: &[&str] = &[
    "you may also",
    "you might also",
    "you may like",
    "you might like",
    "related products",
    "related items",
    "related posts",
    "related articles",
    "related topics",
    "related content",
    "related stories",
    "related threads",
    "related discussions",
    "similar products",
    "similar items",
    "similar threads",
    "similar topics",
    "similar posts",
    "similar articles",
    "customers also",
    "customers who",
    "people also",
    "frequently bought",
    "recently viewed",
    "more from",
    "more like",
    "recommended for",
    "share this",
    "share on",
    "follow us",
    "subscribe",
    "sign up",
    "newsletter",
    "join our",
    "stay connected",
    "stay in touch",
    "stay updated",
    "get the latest",
    "get updates",
    "get notified",
    "leave a comment",
    "leave a reply",
    "recent posts",
    "recent articles",
    "latest posts",
    "latest articles",
    "latest news",
];

/// The same on the page of a product.
const BESIDE_PRODUCT_HEADINGS: &[&str] = &[
    "related",
    "similar",
    "you'll also",
    "you\u{2019}ll also",
    "customer review",
    "ratings",
    "be the first to review",
    "featured products",
    "best sellers",
    "new arrivals",
    "trending",
    "popular",
    "as seen",
    "shop the look",
    "get the look",
    "complete the",
    "explore more",
    "compare",
    "more ways to pay",
];

/// Length of a heading in bytes from which it is a title.
const MAX_HEADING: usize = 60;

/// Number of words of links in the line of a heading.
const HEADING_LINKS: usize = 4;

/// Part of the words from which a part is kept whatever its heading says, in percent.
const HEADED_SHARE: usize = 40;

/// Elements that can be a menu.
const MENUS: [&str; 7] = ["ul", "ol", "div", "section", "table", "dl", "p"];

/// Elements that are no part of a text, but hold texts.
const BLOCKS: [&str; 24] = [
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "table",
    "tr",
    "td",
    "th",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "main",
    "blockquote",
    "pre",
    "dl",
    "dt",
    "dd",
    "figure",
];

/// Returns the main part of a page.
pub(super) fn main_part<'a>(body: &NodeRef<'a>) -> NodeRef<'a> {
    let nodes = outline(body);
    let Some(total) = nodes.first().map(|first| first.all.words) else { return *body };
    let is_main = |node: &&OutlineNode<'a>| {
        let is_named = node.name == "main"
            || !node.name.is_empty() && node.node.attr("role").is_some_and(|role| &*role == "main");
        is_named && node.all.words * 100 >= total * MAIN_SHARE
    };
    let main = nodes.iter().filter(is_main).max_by_key(|node| node.all.words);
    main.map_or(*body, |main| main.node)
}

/// Removes the parts beside the content: those that are named so, menus, and texts that were there before.
pub(super) fn remove_beside(root: &NodeRef<'_>, is_product: bool) {
    let nodes = outline(root);
    let mut named = named_beside(&nodes);
    add_headed_beside(&nodes, &mut named, is_product);
    let mut removed = named.clone();
    remove_menus(&nodes, &mut removed);
    // A page that has little else is an index.
    if words_left(&nodes, &removed) < MIN_WORDS.max(words_left(&nodes, &named) * INDEX_SHARE / 100) {
        removed = named;
    }
    if words_left(&nodes, &removed) < MIN_WORDS {
        removed.fill(false);
    }
    remove_repeated(&nodes, &mut removed);
    for (node, is_removed) in nodes.iter().zip(removed) {
        if is_removed {
            node.node.remove_from_parent();
        }
    }
}

/// Returns the number of words outside of what is removed.
fn words_left(nodes: &[OutlineNode<'_>], removed: &[bool]) -> usize {
    let (mut at, mut words) = (0, 0);
    while at < nodes.len() {
        words += if removed[at] { 0 } else { nodes[at].own.words };
        at = if removed[at] { nodes[at].end } else { at + 1 };
    }
    words
}

/// Returns which nodes are named as parts beside the content, or are hidden.
fn named_beside(nodes: &[OutlineNode<'_>]) -> Vec<bool> {
    let total = nodes.first().map_or(0, |first| first.all.words);
    let mut removed = vec![false; nodes.len()];
    let mut at = 1;
    while at < nodes.len() {
        let node = &nodes[at];
        removed[at] = !node.name.is_empty() && is_beside(node, total);
        at = if removed[at] { node.end } else { at + 1 };
    }
    removed
}

fn is_beside(node: &OutlineNode<'_>, total: usize) -> bool {
    if is_hidden(&node.node) {
        return true;
    }
    if node.name == "header" && !node.node.ancestors_it(None).any(|parent| is_text_part(&parent)) {
        return true;
    }
    if node.is_any(&["body", "html", "main", "article"]) {
        return false;
    }
    let WordCounts { words, link_words, .. } = node.all;
    match named_part(&names(&node.node)) {
        NamedPart::Unknown => false,
        NamedPart::Beside => words * 100 < total * BESIDE_SHARE && !lists_chapters(&node.node),
        NamedPart::PerhapsBeside => words - link_words < CONTENT_WORDS || link_words * 2 > words,
    }
}

/// Returns `true` for a table of contents that DocBook made with links to other pages: it is what the first page of a
/// chapter has.
fn lists_chapters(node: &NodeRef<'_>) -> bool {
    let is_list = is_docbook_toc(node) || node.children_it(false).any(|inner| is_docbook_toc(&inner));
    let link = || node.descendants_it().find_map(|inner| inner.attr("href"));
    is_list && link().is_some_and(|href| !href.starts_with('#'))
}

fn is_docbook_toc(node: &NodeRef<'_>) -> bool {
    node.has_name("dl") && node.class().is_some_and(|class| &*class == "toc")
}

fn is_text_part(node: &NodeRef<'_>) -> bool {
    ["main", "article", "section"].iter().any(|name| node.has_name(name))
}

fn is_hidden(node: &NodeRef<'_>) -> bool {
    let Some(style) = node.attr("style") else { return false };
    let style: String =
        style.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect();
    style.contains("display:none") || style.contains("visibility:hidden")
}

/// Adds the parts below headings for what is beside the content.
fn add_headed_beside(nodes: &[OutlineNode<'_>], removed: &mut [bool], is_product: bool) {
    let total = nodes.first().map_or(0, |first| first.all.words);
    for at in 1..nodes.len() {
        if !nodes[at].is_any(&HEADINGS) || !is_heading_beside(&nodes[at].node.text(), is_product) {
            continue;
        }
        // The first part around the heading that has more than it.
        let mut part = at;
        while part != 0 && nodes[part].all.words <= nodes[at].all.words + HEADING_LINKS {
            part = nodes[part].parent;
        }
        let is_page = part == 0 || nodes[part].is_any(&["main", "body", "article"]);
        removed[part] |= !is_page && nodes[part].all.words * 100 < total * HEADED_SHARE;
    }
}

fn is_heading_beside(heading: &str, is_product: bool) -> bool {
    let heading = heading.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let heading = heading.trim_start_matches(|c: char| !c.is_alphanumeric());
    let starts = |starts: &[&str]| starts.iter().any(|start| heading.starts_with(start));
    heading.len() < MAX_HEADING && (starts(BESIDE_HEADINGS) || is_product && starts(BESIDE_PRODUCT_HEADINGS))
}

/// Adds the parts that consist of short links.
fn remove_menus(nodes: &[OutlineNode<'_>], removed: &mut [bool]) {
    let mut counts = vec![WordCounts::default(); nodes.len()];
    for at in (1..nodes.len()).rev() {
        if removed[at] {
            continue;
        }
        let node = &nodes[at];
        counts[at].add(node.own);
        let WordCounts { words, link_words, links } = counts[at];
        let is_menu = links >= MENU_LINKS
            && link_words * 100 > words * MENU_LINK_SHARE
            && link_words * 10 < links * MENU_WORDS_OF_TEN
            && node.is_any(&MENUS)
            && !node.node.ancestors_it(None).any(|parent| is_docbook_toc(&parent));
        if is_menu {
            removed[at] = true;
        } else {
            let own = counts[at];
            counts[node.parent].add(own);
        }
    }
}

/// Adds the texts that were there before.
fn remove_repeated(nodes: &[OutlineNode<'_>], removed: &mut [bool]) {
    let mut has_block = vec![false; nodes.len()];
    for at in (1..nodes.len()).rev() {
        if has_block[at] || nodes[at].is_any(&BLOCKS) {
            has_block[nodes[at].parent] = true;
        }
    }
    let mut seen = HashSet::new();
    let mut at = 1;
    while at < nodes.len() {
        let node = &nodes[at];
        if removed[at] || node.name == "pre" {
            at = node.end;
            continue;
        }
        if !has_block[at] && node.is_any(&BLOCKS) && node.all.words >= REPEATED_WORDS {
            let text = node.node.text().split_whitespace().collect::<Vec<_>>().join(" ");
            removed[at] = !seen.insert(text);
            at = node.end;
            continue;
        }
        at += 1;
    }
}
