//! The words in classes and IDs by which sites name the parts of their pages.

use dom_query::NodeRef;

/// Words for parts that are beside the content.
const BESIDE: &[&str] = &[
    "nav",
    "navbar",
    "navigation",
    "navheader",
    "navfooter",
    "megamenu",
    "menubar",
    "submenu",
    "breadcrumb",
    "breadcrumbs",
    "crumbs",
    "sidebar",
    "footer",
    "consent",
    "newsletter",
    "subscribe",
    "signup",
    "share",
    "sharing",
    "sharethis",
    "social",
    "socials",
    "related",
    "recommended",
    "recommendations",
    "recommendation",
    "recirc",
    "popup",
    "offcanvas",
    "advert",
    "advertisement",
    "ads",
    "adsbygoogle",
    "sponsored",
    "pagination",
    "pager",
    "paginator",
    "paging",
    "searchform",
    "searchbar",
    "login",
    "signin",
    "cart",
    "minicart",
    "wishlist",
    "topbar",
    "skip",
    "skiplink",
    "copyright",
    "upsell",
    "crosssell",
    "alsolike",
    "chatbox",
    "joinchat",
    "toc",
    "announcement",
    "feedback",
    "visuallyhidden",
    "reviews",
];

/// Words for parts that are mostly beside the content, and sometimes hold it.
const PERHAPS_BESIDE: &[&str] = &[
    "menu",
    "modal",
    "drawer",
    "overlay",
    "toolbar",
    "ad",
    "promo",
    "banner",
    "search",
    "hidden",
    "sticky",
    "sort",
    "sorting",
    "filter",
    "filters",
    "facets",
    "facet",
    "tags",
    "tag",
    "trending",
    "popular",
    "print",
    "language",
    "languages",
    "swatch",
    "swatches",
    "tooltip",
    "masthead",
    "actions",
    "action",
    "buttons",
    "controls",
    "dropdown",
    "notice",
    "alert",
    "rating",
    "ratings",
    "cta",
    "side",
    "aside",
    "recent",
    "disclaimer",
    "bulletin",
    "signature",
    "reactions",
    "likes",
    "rank",
    "postcount",
    "userextras",
    "usertitle",
    "badge",
    "badges",
    "tools",
    "flair",
    "joined",
    "avatar",
];

/// Several words for parts beside the content.
const BESIDE_PHRASES: [&str; 15] = [
    "top-header",
    "site-header",
    "header-top",
    "global-header",
    "header-bar",
    "sr-only",
    "visually-hidden",
    "screen-reader",
    "cross-sell",
    "also-like",
    "back-to-top",
    "skip-to",
    "load-more",
    "shout-box",
    "doc-comments",
];

/// Parts of words for consent, which frameworks write in one word with their own names.
const CONSENT: [&str; 2] = ["cookie", "gdpr"];

/// First words of classes that describe the style or the state of a part, or the whole page.
const MODIFIERS: [&str; 5] = ["overflow", "has", "with", "no", "wp"];

/// Word for the part with which a page begins, whatever else its name says, such as `hero-banner`.
const CONTENT_WORD: &str = "hero";

/// Maximum number of characters of the classes and the ID of an element that are read.
const MAX_LENGTH: usize = 1_000;

/// The meaning of a part's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedPart {
    Unknown,
    PerhapsBeside,
    Beside,
}

/// The classes and the ID of an element, in lower case and with `-` between words.
pub(super) fn names(node: &NodeRef<'_>) -> Vec<String> {
    let (class, id) = (node.class().unwrap_or_default(), node.id_attr().unwrap_or_default());
    let all = class.split_ascii_whitespace().chain(id.split_ascii_whitespace());
    let mut length = 0;
    let short = all.take_while(|name| {
        length += name.len();
        length <= MAX_LENGTH
    });
    // Classes with other characters are those of frameworks for styles.
    short.filter(|name| !name.contains([':', '['])).map(separated).collect()
}

fn separated(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for c in name.chars() {
        if was_lower && c.is_ascii_uppercase() {
            text.push('-');
        }
        was_lower = c.is_ascii_lowercase();
        text.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
    }
    text
}

/// Returns the words of a name.
pub(super) fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| c == '-' || c.is_ascii_digit()).filter(|word| !word.is_empty()).collect()
}

/// Returns what the names of an element say about it. A name tells by its first and its last word.
pub(super) fn named_part(names: &[String]) -> NamedPart {
    names.iter().map(|name| part_of_name(name)).max().unwrap_or(NamedPart::Unknown)
}

fn part_of_name(name: &str) -> NamedPart {
    if CONSENT.iter().any(|part| name.contains(part)) {
        return NamedPart::Beside;
    }
    let words = words(name);
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return NamedPart::Unknown };
    if MODIFIERS.contains(first) || words.contains(&CONTENT_WORD) {
        return NamedPart::Unknown;
    }
    let has_phrase =
        |phrase: &&str| name.match_indices(*phrase).any(|(at, _)| at == 0 || name.as_bytes()[at - 1] == b'-');
    if BESIDE_PHRASES.iter().any(has_phrase) || BESIDE.contains(first) || BESIDE.contains(last) {
        return NamedPart::Beside;
    }
    let is_perhaps = PERHAPS_BESIDE.contains(first)
        || PERHAPS_BESIDE.contains(last)
        || words.iter().any(|word| BESIDE.contains(word));
    if is_perhaps { NamedPart::PerhapsBeside } else { NamedPart::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_part() {
        let check = |class: &str, expected: NamedPart| {
            let document = dom_query::Document::fragment(format!("<div class='{class}'>x</div>"));
            let node = document.select("div");
            assert_eq!(named_part(&names(&node.nodes()[0])), expected, "{class}");
        };
        check("mainNav", NamedPart::Beside);
        check("site_footer", NamedPart::Beside);
        check("x cookieBanner", NamedPart::Beside);
        check("lm-nav-source", NamedPart::PerhapsBeside);
        check("product-tags", NamedPart::PerhapsBeside);
        check("overflow-hidden", NamedPart::Unknown);
        check("md:hidden has-sidebar", NamedPart::Unknown);
        check("navigate", NamedPart::Unknown);
        check("post-body", NamedPart::Unknown);
    }
}
