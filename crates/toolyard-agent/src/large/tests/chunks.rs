//! The chunks of a result, and their limits.

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
