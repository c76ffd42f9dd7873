//! The chunks of a result, and their limits.

use super::super::content::LargeContent;
use super::*;

/// One chunk per section is a convenience. Here the limit permits few entries, but much text.
#[tokio::test]
async fn sections_share_a_chunk_near_the_entry_limit() {
    let sections: String = (0..9).map(|n| format!("# Section {n}\nsome words\n")).collect();
    let options = ResultSettings { threshold: 40, least_chunk: 120, ..ResultSettings::default() };
    let limits = MemorySettings { entries: 5, ..MemorySettings::default() };
    let harness = LargeResultHarness::new(json!({"content": [text(&sections)]}), options, limits);
    let answer = harness.result("list_models").await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    assert!(answer.contains("has been split into 2 chunk(s)"), "{answer}");
}

/// Comment lines look like headings.
#[tokio::test]
async fn comment_lines_of_a_program_are_not_lost() {
    let program: String = (0..4000).map(|n| format!("# comment {n},\n# which goes on\nx = {n}\n")).collect();
    let harness = LargeResultHarness::new(
        json!({"content": [text(&program)]}),
        ResultSettings::default(),
        MemorySettings::default(),
    );
    harness.result("list_models").await;
    let records = harness.memory.list(&MemoryNamespace::new("session", "abc123")).await.expect("a store");
    let mut rebuilt = String::new();
    for record in records.iter().filter(|record| record.chunks.is_none()) {
        rebuilt.push_str(&harness.memory.value(record).await.expect("a store").expect("a value"));
    }
    assert!(rebuilt == program, "{} of {} bytes are left", rebuilt.len(), program.len());
}

/// Returns the peak memory of this process in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// Parsing needs one copy of the text; the chunks are slices of it.
#[test]
fn result_of_100_megabytes_is_split_in_bounded_memory() {
    let section = r"## Heading\nwords of the section\n\n";
    let count = 100_000_000 / section.len() + 1;
    let body = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, section.repeat(count));
    let size = body.len();
    let output = CallOutput { body: Object::parse(body).expect("an object"), is_error: false };
    let before = peak();
    let limit = ResultLimit { threshold: 64_000, promises_structure: false, keeps_structure: false };
    let content = LargeContent::open(&output, limit).expect("it is large");
    let opened = peak();
    assert!(opened - before < size * 5 / 4, "{} bytes to open {size}", opened - before);
    let text = content.aside().next().expect("a text");
    let pieces = rules::chunks(&ResultSettings::default(), text, 64_000);
    assert!(pieces.iter().all(|piece| piece.content.chars().count() <= 64_000));
    assert_eq!(pieces.iter().map(|piece| piece.content.matches("words").count()).sum::<usize>(), count);
    assert!(peak() - opened < 16_000_000, "{} bytes to cut it", peak() - opened);
}
