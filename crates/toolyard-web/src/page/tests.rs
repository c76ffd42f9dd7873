use std::time::{Duration, Instant};

use bytes::Bytes;

use super::*;
use crate::web_url::WebUrl;

fn page(content_type: &str, body: impl Into<Bytes>) -> FetchedPage {
    FetchedPage {
        url: WebUrl::parse("https://example.com/docs/page.html").expect("a URL"),
        content_type: Some(content_type.to_owned()),
        body: body.into(),
    }
}

fn read(html: &str) -> String {
    page_text(&page("text/html", html.to_owned())).expect("a text").markdown()
}

/// A page as sites have it: an article among all that is beside it.
const ARTICLE: &str = r##"<!DOCTYPE html>
<html><head><title>Install the pump | Pump Makers</title>
<style>p { color: red }</style><script>var tracking = 1;</script></head>
<body>
<header><a href="/">Pump Makers</a> <form><input name="q"><button>Search</button></form></header>
<nav><ul><li><a href="/a">Products</a></li><li><a href="/b">Support</a></li></ul></nav>
<aside class="sidebar"><h2>Popular</h2><p>Ten pumps that you will love, chosen by our editors, with pictures.</p></aside>
<main><article>
<h1>Install the pump</h1>
<p>The pump is installed in <em>three</em> steps, which take <strong>an hour</strong> altogether. Read all of them
before you begin, and keep the <a href="../manual.html#parts">manual</a> within reach, because it names the parts.</p>
<h2>Before you begin</h2>
<ol start="3"><li>Close the valve, and wait until the pressure is gone.</li>
<li>Check the parts:<ul><li>a pump</li><li>a hose of two metres</li></ul></li></ol>
<h2>Pressures</h2>
<table><thead><tr><th>Pump</th><th>Pressure</th></tr></thead>
<tbody><tr><td>P1</td><td>2 bar | 29 psi</td></tr><tr><td>P2</td><td>3 bar</td></tr></tbody></table>
<h2>Configure</h2>
<p>Write this file, in which <code>pressure</code> is in bar:</p>
<pre><code class="language-toml">[pump]
pressure = 2

# of the hose
length = 2
</code></pre>
<blockquote><p>Never run the pump dry, as its seal is cooled by the water that it moves.</p></blockquote>
<p>Ask <a href="mailto:help@example.com">support</a>, or <a href="javascript:chat()">chat</a>.
<img src="/logo.png"><img src="/step.png" alt="The pump and its hose"></p>
</article></main>
<footer><p>© Pump Makers. <a href="/privacy">Privacy</a></p></footer>
<script>load()</script>
</body></html>"##;

#[test]
fn article_is_markdown_without_what_is_beside_it() {
    insta::assert_snapshot!(read(ARTICLE), @r"
    # Install the pump | Pump Makers

    The pump is installed in *three* steps, which take **an hour** altogether. Read all of them before you begin, and keep the [manual](https://example.com/manual.html#parts) within reach, because it names the parts.

    ## Before you begin

    3. Close the valve, and wait until the pressure is gone.
    4. Check the parts:
        - a pump
        - a hose of two metres

    ## Pressures

    | Pump | Pressure |
    | ---- | -------- |
    | P1 | 2 bar \| 29 psi |
    | P2 | 3 bar |

    ## Configure

    Write this file, in which `pressure` is in bar:

    ```toml
    [pump]
    pressure = 2

    # of the hose
    length = 2
    ```

    > Never run the pump dry, as its seal is cooled by the water that it moves.

    Ask [support](mailto:help@example.com), or chat. ![The pump and its hose](https://example.com/step.png)
    ");
}

/// Returns a short page with this content as Markdown, without its title.
fn content(html: &str) -> String {
    read(&format!("<title>T</title><body>{html}<p>End.</p>")).replacen("# T\n\n", "", 1)
}

#[test]
fn tables_keep_their_cells_apart() {
    let check = |html: &str, expected: &str| {
        assert_eq!(content(html), format!("{expected}\n\nEnd."), "{html}");
    };
    let heads = "<tr><th>H1</th><th>H2</th></tr>";
    check(
        &format!("<table>{heads}<tr><td colspan=2>zz</td></tr><tr><td>cc</td><td>dd</td></tr></table>"),
        "| H1 | H2 |\n| -- | -- |\n| zz |  |\n| cc | dd |",
    );
    check(
        &format!("<table>{heads}<tr><td rowspan=2>rr</td><td>d1</td></tr><tr><td>d2</td></tr></table>"),
        "| H1 | H2 |\n| -- | -- |\n| rr | d1 |\n|  | d2 |",
    );
    check(
        "<table><tr><th colspan=2>Title</th></tr><tr><th>a</th><td>1</td></tr></table>",
        "| Title |  |\n| ----- | - |\n| a | 1 |",
    );
    // Rows of different lengths, and one without cells.
    check(
        &format!("<table>{heads}<tr></tr><tr><td>aa</td></tr><tr><td>bb</td><td>cc</td></tr></table>"),
        "| H1 | H2 |\n| -- | -- |\n| aa |  |\n| bb | cc |",
    );
    check(
        "<table><tr><td rowspan=0 colspan=x>aa</td><td>bb</td></tr><tr><td>cc</td></tr></table>",
        "|   |   |\n| - | - |\n| aa | bb |\n|  | cc |",
    );
    check(
        &format!(
            "<table>{heads}<tr><td><table><tr><td>n1</td><td>n2</td></tr></table></td><td>dd</td></tr></table>"
        ),
        "H1\n\nH2\n\n|   |   |\n| - | - |\n| n1 | n2 |\n\ndd",
    );
    check(
        "<table><tr><td><pre>l1\nl2</pre></td><td><a href='/x'>x</a></td></tr></table>",
        "```\nl1\nl2\n```\n\n[x](https://example.com/x)",
    );
    check("<table><tr><td colspan=100000>aa</td></tr><tr><td>bb</td></tr></table>", "aa\n\nbb");
}

#[test]
fn added_cells_are_limited() {
    let wide = "<tr><td colspan=200>x</td></tr>".repeat(1_000);
    let text = content(&format!("<table>{wide}</table>"));
    assert!(text.len() < 10_000 && text.starts_with("x\n\nx"), "{} bytes", text.len());
}

#[test]
fn lines_of_code_and_definitions_are_kept_apart() {
    assert_eq!(content("<pre><span>a</span><br><span>b</span></pre>"), "```\na\nb\n```\n\nEnd.");
    assert_eq!(
        content("<dl><dt>term</dt><dd>first</dd><dd>second</dd></dl>"),
        "term\n\nfirst\n\nsecond\n\nEnd."
    );
}

#[test]
fn page_that_is_no_article_keeps_its_list() {
    let links: String =
        (1..=4).map(|number| format!("<li><a href='/item/{number}'>Item {number}</a></li>")).collect();
    let html = format!(
        "<title>Index</title><base href='https://cdn.example.com/x/'><nav><a href=/home>Home</a></nav><h1>All items</h1>\
         <ul>{links}</ul><a href='rel'>more</a><footer>© 2026</footer>"
    );
    insta::assert_snapshot!(read(&html), @"
    # Index

    ## All items

    - [Item 1](https://cdn.example.com/item/1)
    - [Item 2](https://cdn.example.com/item/2)
    - [Item 3](https://cdn.example.com/item/3)
    - [Item 4](https://cdn.example.com/item/4)

    [more](https://cdn.example.com/x/rel)
    ");
}

#[test]
fn product_has_what_only_scripts_show() {
    let check = |product: &str, html: &str, expected: &str| {
        let script = format!("<script type='application/ld+json'>{product}</script>");
        assert_eq!(read(&format!("<title>T</title>{script}<body>{html}")), format!("# T\n\n{expected}"));
    };
    let pump = r#"{"@type": "Product", "description": "&lt;p&gt;Moves <b>water</b>.&lt;/p&gt;", "offers": [
        {"priceSpecification": [{"price": 9.5, "priceCurrency": "EUR"}]}]}"#;
    check(pump, "<p>Only here.</p>", "Price: 9.5 EUR\n\nMoves water.\n\nOnly here.");
    check(pump, "<p>It moves water for 9,5 EUR.</p>", "It moves water for 9,5 EUR.");
    check(
        r#"{"@type": "Product"}"#,
        "<p>It has two hoses, a pump, a valve, and a long manual.</p>",
        "It has two hoses, a pump, a valve, and a long manual.",
    );
    let two = format!("[{pump}, {pump}]");
    check(&two, "<p>Two pumps.</p>", "Two pumps.");
}

#[test]
fn headings_that_are_buttons_stay() {
    assert_eq!(content("<h3><button>How?</button></h3><p>So.</p>"), "### How?\n\nSo.\n\nEnd.");
    assert_eq!(content("<button><h3>How?</h3></button><p>So.</p>"), "### How?\n\nSo.\n\nEnd.");
    assert_eq!(content("<button>Buy</button><p>So.</p>"), "So.\n\nEnd.");
}

#[test]
fn texts_stay_as_they_are() {
    let check = |content_type: &str, body: &str| {
        let text = page_text(&page(content_type, body.to_owned())).expect("a text");
        assert_eq!((text.title.as_deref(), text.markdown().as_str()), (None, body), "{content_type}");
    };
    check("text/plain", "  a\n<b>\n\n\n# c ");
    check("text/markdown; charset=utf-8", "# Title\n\n*a*");
    check("application/json", "{\"a\": [1, 2]}\n");
    check("application/feed+json", "[]");
}

#[test]
fn chapter_of_docbook_keeps_its_contents_and_loses_its_navigation() {
    let sections: String =
        (1..=8).map(|section| format!("<dt><a href=s{section}.html>Section {section}</a>")).collect();
    let html = format!(
        "<div class=navheader><table><tr><th>Prev</table></div><h2>Chapter 11. Indexes</h2>\
         <div class=toc><p>Contents</p><dl class=toc><dt><a href=types.html>Types</a><dd><dl>{sections}</dl></dl></div>\
         <p>{}</p><div class=navfooter><table><tr><td>Next</table></div>",
        "Indexes are a common way to enhance database performance. ".repeat(5)
    );
    let text = page_text(&page("text/html", html)).expect("a text").markdown();
    let words = ["Contents", "Types", "Section 1", "Section 8", "Prev", "Next"];
    let found: Vec<_> = words.into_iter().filter(|words| text.contains(words)).collect();
    assert_eq!(found, ["Contents", "Types", "Section 1", "Section 8"], "{text}");
}

#[test]
fn page_without_text_is_an_error() {
    let check = |content_type: &str, body: &str, expected: &str| {
        let error = page_text(&page(content_type, body.to_owned())).expect_err("no text");
        assert_eq!(error.to_string(), expected, "{body}");
    };
    let empty = "The page has no text. It may need scripts, which are not run here: use another source.";
    check("text/html", "", empty);
    check("text/html", "<title>App</title><div id=root></div><script>render()</script>", empty);
    let product = "<meta property=og:type content=product><script src=a.js></script><p>I am looking for</p>";
    check("text/html", product, empty);
    let product =
        "<meta property=og:type content=product><h1>Shop</h1><div id=root> </div><footer>Help</footer>";
    check("text/html", product, empty);
    check("text/plain", " \n", empty);
    let pdf = "The content type `application/pdf` cannot be read here: only HTML and other texts. Look for an HTML version.";
    check("application/pdf", "%PDF-1.7", pdf);
}

#[test]
fn encodings_are_decoded() {
    let text = "<title>Привет</title><p>Привет, мир</p>";
    let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(text);
    let page = page("text/html; charset=windows-1251", bytes.into_owned());
    assert_eq!(page_text(&page).expect("a text").markdown(), "# Привет\n\nПривет, мир");
}

#[test]
fn hostile_pages_are_converted_within_limits() {
    let nested = |open: &str, number: usize| format!("some text {}", open.repeat(number));
    let formats: String = (0..300).map(|number| format!("<b a={number}>")).collect();
    let pages = [
        ("nested elements", nested("<div>", 10_000)),
        ("nested lists", nested("<ul><li>", 5_000)),
        ("nested quotes", nested("<blockquote>", 8_000)),
        ("nested tables", nested("<table><tr><td>", 5_000)),
        ("nested links", nested("<a href=x>", 10_000)),
        ("formats that each paragraph repeats", format!("<p>{formats}{}", "<p>x".repeat(100_000))),
        ("one long word", format!("<p>{}", "x".repeat(2_000_000))),
        ("many cells", format!("<table>{}", "<tr><td>x<td>y".repeat(50_000))),
        ("long attribute", format!("<a href=\"{}\">some text</a>", "x".repeat(1_000_000))),
        ("entities", "&amp;&lt;&#x41;".repeat(50_000)),
        (
            "headings of parts beside the content",
            format!("{}{}", nested("<div>", 250), "<h2>related posts</h2>".repeat(20_000)),
        ),
        ("unclosed comment", format!("some text <!-- {}", "x".repeat(1_000_000))),
        ("binary", (0..200_000).map(|number| char::from(u8::try_from(number % 255).unwrap_or(0))).collect()),
    ];
    for (name, html) in pages {
        let (length, start) = (html.len(), Instant::now());
        let text = page_text(&page("text/html", html)).map(|page| page.text.len());
        let time = start.elapsed();
        println!("{name}: {length} bytes, {text:?} bytes of Markdown in {time:?}");
        assert!(time < Duration::from_secs(60), "{name}: {time:?}");
        assert!(text.as_ref().is_ok_and(|text| *text <= length * 20 + 1000), "{name}: {text:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_page_is_converted_without_panic(html in "([ -~é\n]|<(p|ul|li|table|td|a href=x|pre|b)>|</(p|ul|table|b)>){0,200}") {
        let _ = page_text(&page("text/html", html));
    }
}

#[test]
fn page_beyond_the_limits_of_parsing_is_not_reported_as_empty() {
    let check = |html: String, expected: Result<&str, &str>| {
        let text = page_text(&page("text/html", html)).map(|page| page.text);
        match (&text, expected) {
            (Ok(text), Ok(end)) => assert!(text.starts_with("first") && text.ends_with(end), "{text:.80}"),
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            _ => panic!("{text:?}"),
        }
    };
    let elements = "<link>".repeat(300_001);
    check(format!("<p>first</p>{elements}<p>last"), Ok(CUT));
    check(
        format!("{elements}<p>last"),
        Err("The HTML of the page is too complex to be read here. Use another source."),
    );
}
