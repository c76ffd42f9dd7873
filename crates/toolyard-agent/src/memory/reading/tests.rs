use std::fmt::Write;

use futures_util::FutureExt;
use proptest::prelude::*;
use tokio::sync::OwnedSemaphorePermit;

use super::*;

/// Reads a part as a tool does: lines, pattern, context.
fn read_within(text: &str, request: (&str, &str, usize), limits: ReadSettings) -> String {
    let (lines, pattern, context) = request;
    let request = match PartRequest::parse(Some(lines), Some(pattern), false, context) {
        Ok(request) => request,
        Err(error) => return format!("error: {error}"),
    };
    let source = SourceText { text: text.to_owned(), lines_before: 0, lines_after: 0, is_part: false };
    request.read(&source, &limits, Instant::now() + Duration::from_secs(60)).text
}

fn read(text: &str, request: (&str, &str, usize)) -> String {
    read_within(text, request, ReadSettings::default())
}

/// Returns a log of this many lines, of which some are errors.
fn log(lines: usize) -> String {
    let mut log = String::new();
    for line in 1..=lines {
        let level = if line.is_multiple_of(1_000) { "ERROR" } else { "INFO" };
        let _ = writeln!(
            log,
            "2026-11-23T10:00:00Z {level} worker-{} request {line} took {} ms",
            line % 7,
            line % 91
        );
    }
    log
}

#[test]
fn lines_are_read_by_number() {
    #[track_caller]
    fn check(text: &str, lines: &str, expected: &str) {
        assert_eq!(read(text, (lines, "", 0)), expected, "{text:?} {lines}");
    }
    let five = "one\ntwo\nthree\nfour\nfive\n";
    check(five, "2-3", "Lines 2-3 of 5:\ntwo\nthree");
    check(five, "2", "Line 2 of 5:\ntwo");
    check(five, "4-", "Lines 4-5 of 5:\nfour\nfive");
    check(five, "4-99", "Lines 4-5 of 5:\nfour\nfive");
    check(five, "first 2", "Lines 1-2 of 5:\none\ntwo");
    check(five, "last 2", "Lines 4-5 of 5:\nfour\nfive");
    check(five, "last 9", "Lines 1-5 of 5:\none\ntwo\nthree\nfour\nfive");
    check(five, "6-7", "There are no such lines: the last one is 5.");
    // No final line break, line breaks of Windows, empty lines, and nothing at all.
    check("one\ntwo", "2", "Line 2 of 2:\ntwo");
    check("one\r\ntwo\r\n", "1-2", "Lines 1-2 of 2:\none\ntwo");
    check("one\n\n\nfour", "2-4", "Lines 2-4 of 4:\n\n\nfour");
    check("\n", "1", "Line 1 of 1:\n");
    check("", "1", "The text is empty.");
    check("", "last 3", "The text is empty.");
}

#[test]
fn lines_are_found_by_pattern() {
    #[track_caller]
    fn check(text: &str, request: (&str, &str, usize), expected: &str) {
        assert_eq!(read(text, request), expected, "{text:?} {request:?}");
    }
    let five = "one\ntwo\nthree\nfour\nfive\n";
    check(five, ("", "^t", 0), "2 matches in 5 lines:\n2:two\n3:three");
    check(five, ("", "e$", 0), "3 matches in 5 lines:\n1:one\n3:three\n5:five");
    check(five, ("", "four", 1), "1 match in 5 lines:\n3-three\n4:four\n5-five");
    check(five, ("", "one|five", 1), "2 matches in 5 lines:\n1:one\n2-two\n--\n4-four\n5:five");
    check(five, ("", "one|three", 1), "2 matches in 5 lines:\n1:one\n2-two\n3:three\n4-four");
    check(five, ("", "two|three", 9), "2 matches in 5 lines:\n1-one\n2:two\n3:three\n4-four\n5-five");
    check(five, ("3-", "o", 0), "1 match in 3 lines:\n4:four");
    check(five, ("last 1", "o", 0), "No match in 1 line.");
    check(five, ("", "six", 3), "No match in 5 lines.");
    check(five, ("", "", 3), "Lines 1-5 of 5:\none\ntwo\nthree\nfour\nfive");
    check(five, ("", "(?i)ONE", 0), "1 match in 5 lines:\n1:one");
    // Each line is a text of its own, without its end.
    check("one\r\ntwo\r\n", ("", "one$", 0), "1 match in 2 lines:\n1:one");
    check("one\ntwo", ("", r"one\stwo|(?s)e.t", 0), "No match in 2 lines.");
    check("", ("", ".*", 0), "No match in 0 lines.");
    check("größe\nÄ\n", ("", r"\wöß|ä", 0), "1 match in 2 lines:\n1:größe");
}

#[test]
fn invalid_requests_are_explained() {
    let read =
        [("x", ""), ("", "a("), ("5-x", "[")].map(|(lines, pattern)| read("text", (lines, pattern, 0)));
    insta::assert_snapshot!(read.join("\n"));
}

#[test]
fn long_results_are_cut_and_say_where_to_continue() {
    let log = log(5_000);
    let limits = ReadSettings { matches: 3, result_chars: 300, ..ReadSettings::default() };
    let read = [
        ("", "", 0),
        ("2000-", "", 0),
        ("", "ERROR", 0),
        ("", "request", 0),
        ("", "ERROR", 2),
        ("3000-", "ERROR", 1),
    ]
    .map(|request| read_within(&log, request, limits));
    insta::assert_snapshot!(read.join("\n---\n"));
    for read in read {
        assert!(read.chars().count() < 300 + 150, "{read}");
    }
}

#[test]
fn matches_in_long_lines_are_shown_with_their_surroundings() {
    let words: String = (0..60_000).map(|word| format!("word-{word} ")).collect();
    let text = format!("short\n{words}\nend");
    let limits = ReadSettings { result_chars: 400, ..ReadSettings::default() };
    let read = [
        ("", "word-31415 ", 0),
        ("", "word-31415 ", 1),
        ("", "nothing", 0),
        ("", "short|end", 1),
        ("", "word", 0),
        ("", ".*", 0),
        ("", "end$|^wo", 0),
        ("2", "", 0),
        ("1-2", "", 0),
    ]
    .map(|request| read_within(&text, request, limits));
    insta::assert_snapshot!(read.join("\n---\n"));
}

/// A long line is searched in parts.
#[test]
fn match_on_the_border_of_two_parts_is_found() {
    for before in [65_530, 65_536, 131_065, 131_072] {
        let text = format!("{}needle{}", "é".repeat(before / 2), "x".repeat(100_000));
        let part = read(&text, ("", "needle", 0));
        assert!(part.starts_with(&format!("1 match in 1 line:\n1:{}:…", before / 2 + 1)), "{before}: {part}");
        // The match begins in one part and goes on in the next one.
        let part = read(&text, ("", "needlex+", 0));
        assert!(part.contains(":…") && part.starts_with("1 match"), "{before}: {part}");
    }
}

/// In a search of this pattern the engine follows thousands of states for each character.
#[test]
fn costly_search_ends_at_its_deadline_with_a_place_to_continue() {
    let text = "ab\n".repeat(10) + &"ab".repeat(2_000_000);
    let request = PartRequest::parse(None, Some("(a|b)*c"), false, 0).expect("a pattern");
    let source = SourceText { text, lines_before: 100, lines_after: 0, is_part: true };
    let part = request.read(&source, &ReadSettings::default(), Instant::now());
    assert_eq!(part.text, "No match in 0 lines.\n[stopped at the time limit: continue with lines \"101-\"]");
}

/// Returns a reader with one permit, the permit, and a text with a line.
async fn busy_reader() -> (PartReader, OwnedSemaphorePermit, SourceText) {
    let reader = PartReader::new(ReadSettings { concurrent: 1, ..ReadSettings::default() });
    let permit = reader.runner.permits.clone().acquire_owned().await.expect("a permit");
    (reader, permit, SourceText { text: "a".to_owned(), ..SourceText::default() })
}

#[tokio::test(start_paused = true)]
async fn search_without_a_permit_times_out() {
    let (reader, permit, source) = busy_reader().await;
    let request = PartRequest::parse(None, Some("a"), false, 0).expect("a pattern");
    assert_eq!(reader.read(source.clone(), request.clone()).await, Err(PartError::TooSlow));
    drop(permit);
    tokio::time::resume();
    let part = reader.read(source, request).await.map(|part| part.text);
    assert_eq!(part.as_deref(), Ok("1 match in 1 line:\n1:a"));
}

#[tokio::test(start_paused = true)]
async fn search_has_all_of_its_time_after_a_busy_one() {
    let (reader, permit, source) = busy_reader().await;
    let request = PartRequest::parse(None, Some("a"), false, 0).expect("a pattern");
    let mut search = Box::pin(reader.read(source, request));
    assert!((&mut search).now_or_never().is_none(), "the other one is running");
    tokio::time::advance(ReadSettings::default().time + Duration::from_secs(1)).await;
    drop(permit);
    assert_eq!(search.await.map(|part| part.text).as_deref(), Ok("1 match in 1 line:\n1:a"));
}

#[tokio::test(start_paused = true)]
async fn lines_are_read_without_a_permit() {
    let (reader, _permit, source) = busy_reader().await;
    let request = PartRequest::parse(Some("1"), None, false, 0).expect("a range");
    let part = reader.read(source, request).await.map(|part| part.text);
    assert_eq!(part.as_deref(), Ok("Line 1 of 1:\na"));
}

/// Returns the numbers that begin the lines of a search result, of matches only.
fn numbers(result: &str) -> Vec<usize> {
    let numbers = result.lines().skip(1).filter_map(|line| line.split_once(':')?.0.parse().ok());
    numbers.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Lines are those of `str::lines`.
    #[test]
    fn any_range_gives_the_lines_of_the_text(
        lines in proptest::collection::vec("[a-c ]{0,5}\r?", 0..30), ends: bool, first in 1_usize..40, count in 1_usize..40, last: bool,
    ) {
        let text = lines.join("\n") + if ends { "\n" } else { "" };
        let all: Vec<_> = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        let (range, from, to) = match last {
            true => (format!("last {count}"), all.len() - count.min(all.len()), all.len()),
            false => (format!("{first}-{}", first + count), first - 1, (first + count).min(all.len())),
        };
        let lines_text = read(&text, (&range, "", 0));
        let expected = all.get(from..to).filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"));
        let lines_text = lines_text.split_once('\n').map(|(_, lines)| lines.to_owned());
        prop_assert_eq!(lines_text, expected.map(|lines| lines.trim_end_matches('\n').to_owned()));
    }

    /// Whatever the text, the pattern and the limits are: nothing panics, the limit holds, and every match is counted.
    #[test]
    fn matches_are_complete_and_bounded(
        lines in proptest::collection::vec(prop_oneof!["[ab é\r]{0,9}", "[ab é]{600,900}"], 0..20),
        pattern in proptest::sample::select(vec!["a", "é", ".", "ab?", "b+", "[ab]*", "^", "$", "^a", "b$", "(a|b)+", "."]), context in 0_usize..4, matches in 1_usize..6, result_chars in 50_usize..2_000,
    ) {
        let text = lines.join("\n");
        let limits = ReadSettings { matches, result_chars, ..ReadSettings::default() };
        let lines_text = read_within(&text, ("", pattern, context), limits);
        prop_assert!(lines_text.chars().count() <= result_chars + 200 + 2 * context * 700, "{}", lines_text);
        let regex = regex::Regex::new(pattern).expect("a pattern");
        let expected: Vec<_> = (1..).zip(text.split_terminator('\n')).filter(|(_, line)| regex.is_match(line.strip_suffix('\r').unwrap_or(line))).map(|(number, _)| number).collect();
        prop_assert_eq!(lines_text.starts_with("No match"), expected.is_empty(), "{}", lines_text);
        let shown_numbers = numbers(&lines_text);
        prop_assert!(shown_numbers.iter().all(|number| expected.contains(number)), "{} {:?}", lines_text, expected);
        if !lines_text.contains(" more: ") {
            prop_assert!(expected.iter().all(|number| shown_numbers.contains(number)), "{} {:?}", lines_text, expected);
        }
    }
}
