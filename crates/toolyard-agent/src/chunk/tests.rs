use std::time::Instant;

use proptest::prelude::*;

use super::*;

/// The pieces of a text in one line each: label, level, content.
fn shown<'a>(chunks: impl IntoIterator<Item = Chunk<'a>>) -> Vec<String> {
    let show = |(number, chunk): (usize, Chunk<'_>)| {
        let label = label(&chunk.heading, chunk.continued, number);
        format!("{}|{label}|{}", chunk.level, chunk.content)
    };
    chunks.into_iter().enumerate().map(show).collect()
}

#[test]
fn a_text_is_cut_at_headings_then_blank_lines_then_anywhere() {
    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        assert_eq!(shown(chunks(text, max)), expected, "{text:?}");
    }
    check("", 10, &["0|Part 0|"]);
    check(" \n", 10, &["0|Part 0|"]);
    check("short", 10, &["0|Part 0|short"]);
    check("# One\nfirst\n## Two\nsecond\n", 10, &["1|One|first\n", "2|Two|second\n"]);
    check("before\n### Deep ###\r\nin it", 10, &["0|Part 0|before\n", "3|Deep|in it"]);
    // Nothing stands under the first heading, and the last section is always there.
    check("# Empty\n\n# Full\ntext\n# Last\n", 10, &["1|Full|text\n", "1|Last|"]);
    // These are no headings.
    check("#One\n#### Four\n # Five\n", 40, &["0|Part 0|#One\n#### Four\n # Five\n"]);
    // Paragraphs are packed as long as they fit.
    check("# A\naaa\n\nbbb\n\nccc", 8, &["1|A|aaa\n\nbbb", "1|A (continued 1)|ccc"]);
    check("aaa\n\n\n\nbbb", 4, &["0|Part 0|aaa\n", "0|Part 1|\nbbb"]);
    check("aaa\n\n\n\n\n\n\n\nbbb", 4, &["0|Part 0|aaa\n", "0|Part 1|bbb"]);
    check("0123456789", 4, &["0|Part 0|0123", "0|Part 1|4567", "0|Part 2|89"]);
    check("# T\n0123456789", 4, &["1|T|0123", "1|T (continued 1)|4567", "1|T (continued 2)|89"]);
    check("äöüäöü", 4, &["0|Part 0|äöüä", "0|Part 1|öü"]);
    check("ab", 0, &["0|Part 0|a", "0|Part 1|b"]);
}

#[test]
fn where_it_must_be_cut_anywhere_a_line_an_item_or_a_word_ends_there_if_one_does_nearby() {
    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        let cut: Vec<_> = chunks(text, max).map(|chunk| chunk.content).collect();
        assert_eq!(cut, expected);
        assert_eq!(cut.concat(), text, "nothing is lost where it is cut so");
    }
    check("0123456789abcd\nf, hijk", 16, &["0123456789abcd\n", "f, hijk"]);
    check("0123456789abc,\"e\":12", 16, &["0123456789abc,\"e", "\":12"]);
    check("0123456789abcd,e\":12", 16, &["0123456789abcd,", "e\":12"]);
    check("0123456789abcd efgh", 16, &["0123456789abcd ", "efgh"]);
    check("012 456789abcdefgh", 16, &["012 456789abcdef", "gh"]);
}

#[test]
fn small_sections_share_a_piece_where_there_are_many() {
    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        assert_eq!(shown(packed(text, max)), expected, "{text:?}");
    }
    check("", 9, &["0|Part 0|"]);
    check("# A\na\n# B\nb\n# C\nc\n", 12, &["1|A … B|# A\na\n# B\nb\n", "1|C|# C\nc\n"]);
    check("x\n# B\nb\n", 12, &["0|Part 0|x\n# B\nb\n"]);
    check("# A\na\n# B\n0123456789", 8, &["1|A|# A\na\n", "1|B|01234567", "1|B (continued 1)|89"]);
    let headings: String = (0..700).map(|n| format!("## Heading {n}\nsome words\n")).collect();
    assert_eq!((chunks(&headings, 20_000).count(), packed(&headings, 20_000).len()), (700, 1));
}

#[test]
fn the_outline_is_indented_as_headings_are() {
    let pieces =
        [(1, "Models Overview", "a/0"), (2, "Pricing", "a/1"), (3, "Tokens", "a/2"), (0, "Part 3", "a/3")];
    insta::assert_snapshot!(outline(pieces), @r"
    ## Document Outline

    - **Models Overview** → `a/0`
      - **Pricing** → `a/1`
        - **Tokens** → `a/2`
    - **Part 3** → `a/3`
    ");
}

#[test]
fn a_heading_with_nothing_under_it_is_found() {
    let check = |text: &str, expected| assert_eq!(has_empty_sections(text), expected, "{text:?}");
    check("", false);
    check("# Title\n## Part\ntext\n# Last", false);
    check("# Title\n## Part\n\n## Other\ntext", true);
    check("# a comment\n# of two lines\nx = 1\n", true);
    check("## Part\n# Title\ntext", true);
}

/// What a piece has is a slice of the text, so that where it is can be computed.
fn place(text: &str, chunk: &Chunk<'_>) -> usize {
    chunk.content.as_ptr() as usize - text.as_ptr() as usize
}

/// Whether a line is one that may be missing: blank, or a heading.
fn may_be_missing(gap: &str) -> bool {
    let is_heading = |line: &str| ["# ", "## ", "### "].iter().any(|marks| line.starts_with(marks));
    gap.lines().all(|line| line.trim().is_empty() || is_heading(line))
}

#[track_caller]
fn check_nothing_is_lost<'a>(text: &'a str, max: usize, chunks: impl Iterator<Item = Chunk<'a>>) {
    let mut behind = 0;
    for chunk in chunks {
        assert!(chunk.content.chars().count() <= max);
        // A blank last piece stands for what it leaves out.
        if chunk.content.is_empty() {
            continue;
        }
        let at = place(text, &chunk);
        assert!(at >= behind && may_be_missing(&text[behind..at]), "{:?} is lost", &text[behind..at]);
        behind = at + chunk.content.len();
    }
    assert!(may_be_missing(&text[behind..]), "{:?} is lost", &text[behind..]);
}

fn texts() -> impl Strategy<Value = String> {
    let line =
        prop_oneof!["(#{1,5} ?)?[a-z, é😀\"]{0,12}\r?", Just(String::new()), "[ \t]{0,4}", "[a-z,]{0,80}",];
    proptest::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn nothing_is_lost_and_no_piece_is_too_long(text in texts(), max in 1_usize..60) {
        check_nothing_is_lost(&text, max, chunks(&text, max));
        check_nothing_is_lost(&text, max, packed(&text, max).into_iter());
    }

    #[test]
    fn the_outline_leads_to_every_piece(text in texts(), max in 1_usize..60) {
        let labels: Vec<_> = chunks(&text, max)
            .enumerate()
            .map(|(i, chunk)| (chunk.level, label(&chunk.heading, chunk.continued, i).into_owned(), format!("k/{i}")))
            .collect();
        let outline = outline(labels.iter().map(|(level, label, key)| (*level, &**label, &**key)));
        let leads: Vec<_> = outline.lines().filter_map(|line| line.rsplit_once("→ ")).map(|(_, key)| key).collect();
        let expected: Vec<_> = (0..labels.len()).map(|i| format!("`k/{i}`")).collect();
        prop_assert_eq!(leads, expected);
    }

    /// What `query_working_memory` relies on: JSON has no line that is a heading, and blank lines mean nothing in it.
    #[test]
    fn the_pieces_of_json_are_the_same_json_when_put_together(
        items in proptest::collection::vec(prop_oneof!["[a-z# ,\n\"\\\\é]{0,30}", " {0,200}"], 0..30), max in 1_usize..90, pretty: bool,
    ) {
        let value = serde_json::json!({ "items": items });
        let text = if pretty { format!("{value:#}").replace(",\n", ",\n\n") } else { value.to_string() };
        let joined: String = chunks(&text, max).map(|chunk| chunk.content).collect();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&joined).ok(), Some(value));
    }
}

/// Were it quadratic in what any of these is made of, this would not end.
#[test]
fn pathological_texts_take_linear_time() {
    const SIZE: usize = 1_000_000;
    for unit in ["x", "\n", "# H\n", "# H\nx\n", "a\n\n", "\n\n\nx", "# \n", "é", " ", "### ", ",", "x\n"] {
        let text = unit.repeat(SIZE / unit.len());
        let start = Instant::now();
        for max in [1_000, 64_000] {
            check_nothing_is_lost(&text, max, chunks(&text, max));
            check_nothing_is_lost(&text, max, packed(&text, max).into_iter());
        }
        assert!(start.elapsed().as_secs() < 30, "{unit:?} took {:?}", start.elapsed());
    }
}
