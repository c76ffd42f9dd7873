//! The posts of a discussion, such as a thread of a forum or questions with their answers.

use std::collections::{BTreeMap, BTreeSet};

use dom_query::{Document, NodeRef};

use super::class_words::{names, words};
use super::outline::{OutlineNode, outline};

/// Words that name a post.
const POST_WORDS: [&str; 12] = [
    "post",
    "message",
    "comment",
    "reply",
    "answer",
    "question",
    "blockpost",
    "postcontainer",
    "commentitem",
    "topicpost",
    "posting",
    "postbit",
];

/// Last words of the names of what is in a post, or around all.
const NO_POST_WORDS: [&str; 7] = ["body", "content", "text", "wrapper", "list", "count", "number"];

/// Maximum number of words of the name of a post.
const MAX_NAME_WORDS: usize = 3;

/// Types of schema.org.
const POST_TYPES: [&str; 4] = ["Comment", "DiscussionForumPosting", "Answer", "Question"];

/// Types of schema.org, names of software, and words of URLs, of which a discussion has one.
const DISCUSSION_WORDS: [&str; 19] = [
    "discourse",
    "xenforo",
    "phpbb",
    "vbulletin",
    "nodebb",
    "flarum",
    "invision",
    "mybb",
    "fluxbb",
    "punbb",
    "vanilla",
    "forum",
    "thread",
    "topic",
    "/question",
    "community",
    "discussion",
    "/comments/",
    "qapage",
];

/// Number of words of the shortest post.
const MIN_POST_WORDS: usize = 8;

/// Part of the words of a page that the posts must have, in percent.
const POSTS_SHARE: usize = 40;

/// Words that name the author of a post.
const AUTHOR_WORDS: [&str; 10] = [
    "author",
    "username",
    "user-name",
    "author-name",
    "creator",
    "poster",
    "display-name",
    "nickname",
    "message-name",
    "post-author",
];

/// Maximum number of words of the name of an author.
const MAX_AUTHOR_WORDS: usize = 6;

/// Number of words of a list of definitions about the author, such as the date of the first visit.
const AUTHOR_FACTS: usize = 40;

/// Names of the parts of a post about its author, apart from the name.
const ABOUT_AUTHOR: [&str; 9] = [
    "message-user-extras",
    "message-user-title",
    "user-title",
    "usertitle",
    "post-signature",
    "signature",
    "author-stats",
    "c-author-info",
    "ips-comment-author-info",
];

/// Maximum number of words of a line that is a control or a number.
const CONTROL_WORDS: usize = 8;

/// Texts of controls and of ranks, in lower case.
const CONTROLS: [&str; 31] = [
    "reply",
    "quote",
    "like",
    "share",
    "report",
    "link",
    "copy link",
    "offline",
    "online",
    "member",
    "new member",
    "senior member",
    "junior member",
    "full member",
    "active member",
    "well-known member",
    "moderator",
    "administrator",
    "edit",
    "flag",
    "follow",
    "upvote",
    "downvote",
    "post",
    "permalink",
    "more",
    "link to post",
    "link to comment",
    "share on other sites",
    "report post",
    "report inappropriate content",
];

/// First words of a line with a number about the author.
const FACTS: [&str; 8] =
    ["posts", "messages", "topics", "reputation", "joined", "registered", "location", "rank"];

/// Returns `true` if a page is a discussion by what it says about itself.
pub(super) fn is_discussion(document: &Document) -> bool {
    let has = |text: &str| {
        let text = text.to_lowercase();
        DISCUSSION_WORDS.iter().any(|word| text.contains(word))
    };
    let page = document.select("html, body");
    let is_named = page.nodes().iter().any(|node| names(node).iter().any(|name| has(name)));
    let about = document.select(
        "meta[name=generator], meta[property='og:url'], meta[property='og:type'], link[rel=canonical]",
    );
    let says = |node: &NodeRef<'_>| {
        node.attr("content").is_some_and(|text| has(&text))
            || node.attr("href").is_some_and(|text| has(&text))
    };
    is_named
        || about.nodes().iter().any(says)
        || document.select("[itemtype*=DiscussionForumPosting], [itemtype*=QAPage]").exists()
        || document.select("script[type='application/ld+json']").nodes().iter().any(|script| {
            let text = script.text();
            text.contains("DiscussionForumPosting") || text.contains("QAPage")
        })
}

/// Returns the posts of a page in their order. Empty: it has no posts, or they are not most of it.
pub(super) fn posts<'a>(root: &NodeRef<'a>) -> Vec<NodeRef<'a>> {
    let nodes = outline(root);
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate().skip(1).filter(|(_, node)| !node.name.is_empty()) {
        for key in post_names(&node.node) {
            groups.entry(key).or_default().push(at);
        }
    }
    let mut best = (0, Vec::new());
    for group in groups.into_values() {
        let group = outermost(&nodes, group);
        let words: usize = group.iter().map(|at| nodes[*at].all.words).sum();
        let links: usize = group.iter().map(|at| nodes[*at].all.link_words).sum();
        if group.len() >= 2 && links * 2 <= words && words * 100 > best.0 * 115 {
            best = (words, group);
        }
    }
    let total = nodes.first().map_or(0, |first| first.all.words);
    match best.0 * 100 > total * POSTS_SHARE {
        true => best.1.into_iter().map(|at| nodes[at].node).collect(),
        false => Vec::new(),
    }
}

/// Returns the names of a node that are those of posts; questions and answers have one name.
fn post_names(node: &NodeRef<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in names(node) {
        let words = words(&name);
        let (Some(first), Some(last)) = (words.first(), words.last()) else { continue };
        let is_post = words.len() <= MAX_NAME_WORDS
            && (POST_WORDS.contains(first) || POST_WORDS.contains(last))
            && !NO_POST_WORDS.contains(last);
        if is_post {
            found.insert(match *words {
                ["question" | "answer"] => "answer".to_owned(),
                _ => words.join("-"),
            });
        }
    }
    let item = node.attr("itemtype");
    let item = item.as_deref().and_then(|url| url.rsplit('/').next());
    if item.is_some_and(|item| POST_TYPES.contains(&item)) {
        found.insert("itemtype".to_owned());
    }
    found
}

/// Returns the nodes of a group that are in no other one, without the shortest.
fn outermost(nodes: &[OutlineNode<'_>], group: Vec<usize>) -> Vec<usize> {
    let mut end = 0;
    let mut outer = Vec::new();
    for at in group {
        if at >= end {
            end = nodes[at].end;
            outer.push(at);
        }
    }
    outer.retain(|at| nodes[*at].all.words >= MIN_POST_WORDS);
    outer
}

/// Removes controls and what is about the author from a post, and returns the name of the author.
pub(super) fn take_author(post: &NodeRef<'_>) -> Option<String> {
    let author = author(post);
    let nodes = outline(post);
    let mut at = 1;
    while at < nodes.len() {
        let node = &nodes[at];
        if is_about_author(node) {
            node.node.remove_from_parent();
            at = node.end;
        } else {
            at += 1;
        }
    }
    author
}

fn is_about_author(node: &OutlineNode<'_>) -> bool {
    if node.name.is_empty() {
        return false;
    }
    if node.name == "dl" && node.all.words < AUTHOR_FACTS {
        return true;
    }
    const LINES: [&str; 9] = ["div", "span", "li", "p", "dt", "dd", "a", "h4", "h5"];
    if node.all.words < CONTROL_WORDS && node.is_any(&LINES) && is_control(&node.node.text()) {
        return true;
    }
    names(&node.node).iter().any(|name| ABOUT_AUTHOR.contains(&&**name))
}

/// Returns `true` for the text of a control, a number, or a fact about the author.
fn is_control(text: &str) -> bool {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_fact = |fact: &&str| {
        text.strip_prefix(*fact).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let mut words = text.splitn(2, ' ');
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    CONTROLS.contains(&&*text)
        || is_number(text.trim_start_matches('#').trim_start())
        || text.len() <= 50 && FACTS.iter().any(is_fact)
        || is_number(first)
            && second.is_some_and(|noun| {
                ["like", "reply", "replies", "post", "comment"].contains(&noun.trim_end_matches('s'))
            })
}

/// Takes the name of the author out of a post.
fn author(post: &NodeRef<'_>) -> Option<String> {
    let is_author = |node: &NodeRef<'_>| {
        node.attr("itemprop").is_some_and(|property| &*property == "author")
            || node.attr("rel").is_some_and(|relation| &*relation == "author")
            || names(node).iter().any(|name| AUTHOR_WORDS.contains(&&**name))
    };
    let authors: Vec<_> = post.descendants_it().filter(|node| node.is_element() && is_author(node)).collect();
    let name = |node: &NodeRef<'_>| node.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut named = authors.iter().map(|node| (node, name(node)));
    let (node, name) =
        named.find(|(_, name)| (1..=MAX_AUTHOR_WORDS).contains(&super::outline::count_words(name)))?;
    node.remove_from_parent();
    Some(name)
}
