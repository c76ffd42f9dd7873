use std::time::Instant;

use proptest::prelude::*;

use super::*;

/// Renders each chunk in one line: level, label, content.
fn rendered<'a>(chunks: impl IntoIterator<Item = TextChunk<'a>>) -> Vec<String> {
    let show = |(number, chunk): (usize, TextChunk<'_>)| {
        let label = label(&chunk.heading, chunk.continued, number);
        format!("{}|{label}|{}", chunk.level, chunk.content)
    };
    chunks.into_iter().enumerate().map(show).collect()
}

#[test]
fn text_is_split_at_headings_then_blank_lines_then_anywhere() {
    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        assert_eq!(rendered(chunks(text, max)), expected, "{text:?}");
    }
    check("", 10, &["0|Part 0|"]);
    check(" \n", 10, &["0|Part 0|"]);
    check("short", 10, &["0|Part 0|short"]);
    check("# One\nfirst\n## Two\nsecond\n", 10, &["1|One|first\n", "2|Two|second\n"]);
    check("before\n### Deep ###\r\nin it", 10, &["0|Part 0|before\n", "3|Deep|in it"]);
    // An empty section is a part of the next chunk; the last one is always a chunk.
    check("# Empty\n\n# Full\ntext\n# Last\n", 30, &["1|Empty … Full|# Empty\n\n# Full\ntext\n", "1|Last|"]);
    check("\n \n# Full\ntext\n", 30, &["1|Full|text\n"]);
    // These lines are not headings.
    check("#One\n#### Four\n # Five\n", 40, &["0|Part 0|#One\n#### Four\n # Five\n"]);
    // Paragraphs share a chunk as long as they fit.
    check("# A\naaa\n\nbbb\n\nccc", 8, &["1|A|aaa\n\nbbb", "1|A (continued 1)|ccc"]);
    check("aaa\n\n\n\nbbb", 4, &["0|Part 0|aaa\n", "0|Part 1|\nbbb"]);
    check("aaa\n\n\n\n\n\n\n\nbbb", 4, &["0|Part 0|aaa\n", "0|Part 1|bbb"]);
    check("0123456789", 4, &["0|Part 0|0123", "0|Part 1|4567", "0|Part 2|89"]);
    check("# T\n0123456789", 4, &["1|T|0123", "1|T (continued 1)|4567", "1|T (continued 2)|89"]);
    check("äöüäöü", 4, &["0|Part 0|äöüä", "0|Part 1|öü"]);
    check("ab", 0, &["0|Part 0|a", "0|Part 1|b"]);
}

#[test]
fn long_paragraph_is_cut_after_a_line_an_item_or_a_word() {
    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        let contents: Vec<_> = chunks(text, max).map(|chunk| chunk.content).collect();
        assert_eq!(contents, expected);
        assert_eq!(contents.concat(), text, "no text is lost");
    }
    check("0123456789abcd\nf, hijk", 16, &["0123456789abcd\n", "f, hijk"]);
    check("0123456789abc,\"e\":12", 16, &["0123456789abc,\"e", "\":12"]);
    check("0123456789abcd,e\":12", 16, &["0123456789abcd,", "e\":12"]);
    check("0123456789abcd efgh", 16, &["0123456789abcd ", "efgh"]);
    check("012 456789abcdefgh", 16, &["012 456789abcdef", "gh"]);
}

#[test]
fn small_sections_share_a_chunk() {
    #[track_caller]
    fn check(text: &str, max: usize, expected: &[&str]) {
        assert_eq!(rendered(packed_chunks(text, max)), expected, "{text:?}");
    }
    check("", 9, &["0|Part 0|"]);
    check("# A\na\n# B\nb\n# C\nc\n", 12, &["1|A … B|# A\na\n# B\nb\n", "1|C|# C\nc\n"]);
    check("x\n# B\nb\n", 12, &["0|Part 0|x\n# B\nb\n"]);
    check("# A\na\n# B\n0123456789", 8, &["1|A|# A\na\n", "1|B|01234567", "1|B (continued 1)|89"]);
    let headings: String = (0..700).map(|n| format!("## Heading {n}\nsome words\n")).collect();
    assert_eq!((chunks(&headings, 20_000).count(), packed_chunks(&headings, 20_000).len()), (700, 1));
}

#[test]
fn outline_is_indented_by_heading_level() {
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
fn outline_names_headings_without_text() {
    let text = "# Fruits\n\n## Prices\na\n# Vegetables\n\n## Prices\nb\n";
    let chunks: Vec<_> = chunks(text, 1_000).collect();
    let outline = outline(chunks.iter().map(|chunk| (chunk.level, &*chunk.heading, "key")));
    insta::assert_snapshot!(outline, @"
    ## Document Outline

      - **Fruits > Prices** → `key`
      - **Vegetables > Prices** → `key`
    ");
}

#[test]
fn heading_without_text_is_in_the_labels_below_it() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let labels = chunks(text, 1_000).map(|chunk| format!("{} {}", chunk.level, chunk.heading));
        assert_eq!(labels.collect::<Vec<_>>(), expected, "{text:?}");
    }
    let fruits = "# Fruits\n\n## Prices\na\n# Vegetables\n## Prices\nb\n## Sizes\nc\n";
    check(fruits, &["2 Fruits > Prices", "2 Vegetables > Prices", "2 Vegetables > Sizes"]);
    check("# A\n## B\n### C\nx\n## D\ny\n### E\nz\n", &["3 A > B > C", "2 A > D", "3 E"]);
    // A heading with text is a chunk of its own.
    check("# A\nx\n## B\ny\n### C\nz\n", &["1 A", "2 B", "3 C"]);
    check("# A\nx\n## B\n### C\nz\n", &["1 A", "3 B > C"]);
    check("# A\n### C\nx\n## B\ny\n", &["3 A > C", "2 A > B"]);
    // Levels that go up end the path.
    check("# A\n## B\nx\n# C\ny\n", &["2 A > B", "1 C"]);
    // A heading without anything below it stays with the next chunk.
    check("# A\n# B\n## C\nx\n", &["1 A … B > C"]);
    check("# A\n## B\n## C\nx\n# D\n", &["2 A > B … A > C", "1 D"]);
    check("# A\n# B\n", &["1 A … B"]);
}

#[test]
fn lines_of_a_code_block_are_no_headings() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let headings: Vec<_> = chunks(text, 1_000).map(|chunk| chunk.heading.into_owned()).collect();
        assert_eq!(headings, expected, "{text:?}");
    }
    check("# A\n```sh\n# a comment\n```\nx\n# B\ny\n", &["A", "B"]);
    check("# A\n~~~\n# a comment\n```\n# another\n~~~\n# B\ny\n", &["A", "B"]);
    // A block without an end is none.
    check("# A\n```\nx\n# B\ny\n~~~\nz\n# C\n~~~\n", &["A", "B", "C"]);
}

#[test]
fn headings_without_anything_below_are_counted() {
    let check = |text: &str, expected| assert_eq!(empty_sections(text), expected, "{text:?}");
    check("", 0);
    check("# Title\n## Part\ntext\n# Last", 0);
    check("# Title\n## Part\n\n## Other\ntext", 1);
    check("# a comment\n# of two lines\nx = 1\n", 1);
    check("## Part\n# Title\ntext", 1);
}

/// Returns `true` if chunks may leave out these lines: blank lines and headings.
fn may_be_missing(gap: &str) -> bool {
    let is_heading = |line: &str| ["# ", "## ", "### "].iter().any(|marks| line.starts_with(marks));
    gap.lines().all(|line| line.trim().is_empty() || is_heading(line))
}

#[track_caller]
fn check_no_text_is_lost<'a>(text: &'a str, max: usize, chunks: impl Iterator<Item = TextChunk<'a>>) {
    let mut behind = 0;
    for chunk in chunks {
        assert!(chunk.content.chars().count() <= max);
        assert_eq!(&text[chunk.start..chunk.end()], chunk.content);
        let gap = &text[behind..chunk.start];
        assert!(may_be_missing(gap), "{gap:?} is lost");
        behind = chunk.end();
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
    fn chunks_lose_no_text_and_respect_the_limit(text in texts(), max in 1_usize..60) {
        check_no_text_is_lost(&text, max, chunks(&text, max));
        check_no_text_is_lost(&text, max, packed_chunks(&text, max).into_iter());
    }

    #[test]
    fn outline_lists_every_chunk(text in texts(), max in 1_usize..60) {
        let labels: Vec<_> = chunks(&text, max)
            .enumerate()
            .map(|(i, chunk)| (chunk.level, label(&chunk.heading, chunk.continued, i).into_owned(), format!("k/{i}")))
            .collect();
        let outline = outline(labels.iter().map(|(level, label, key)| (*level, &**label, &**key)));
        let leads: Vec<_> = outline.lines().filter_map(|line| line.rsplit_once("→ ")).map(|(_, key)| key).collect();
        let expected: Vec<_> = (0..labels.len()).map(|i| format!("`k/{i}`")).collect();
        prop_assert_eq!(leads, expected);
    }

    /// `query_working_memory` relies on this: JSON has no heading lines, and blank lines have no meaning in it.
    #[test]
    fn joined_chunks_of_json_are_equivalent_json(
        items in proptest::collection::vec(prop_oneof!["[a-z# ,\n\"\\\\é]{0,30}", " {0,200}"], 0..30), max in 1_usize..90, pretty: bool,
    ) {
        let value = serde_json::json!({ "items": items });
        let text = if pretty { format!("{value:#}").replace(",\n", ",\n\n") } else { value.to_string() };
        let joined: String = chunks(&text, max).map(|chunk| chunk.content).collect();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&joined).ok(), Some(value));
    }
}

/// Quadratic time for any of these units would exceed the time limit.
#[test]
fn pathological_texts_take_linear_time_to_split() {
    check_linear_time(&[
        "x", "\n", "# H\n", "# H\nx\n", "a\n\n", "\n\n\nx", "# \n", "é", " ", "### ", ",", "x\n",
    ]);
}

#[test]
fn pathological_code_blocks_take_linear_time_to_split() {
    check_linear_time(&["```\n", "~~~ a\n", "~\n"]);
}

#[track_caller]
fn check_linear_time(units: &[&str]) {
    const SIZE: usize = 1_000_000;
    for unit in units {
        let text = unit.repeat(SIZE / unit.len());
        let start = Instant::now();
        for max in [1_000, 64_000] {
            check_no_text_is_lost(&text, max, chunks(&text, max));
            check_no_text_is_lost(&text, max, packed_chunks(&text, max).into_iter());
        }
        assert!(start.elapsed().as_secs() < 30, "{unit:?} took {:?}", start.elapsed());
    }
}
