//! The texts that a model reads instead of a large result.

use super::super::message::{StoredText, VisibleKeys};
use super::*;

/// The page has the message as far as its advice.
#[test]
fn message_matches_the_documentation() {
    let (namespace, _) = MemoryNamespace::of_path("session/abc123/x").expect("a path");
    let base = keys::base_of_run(&namespace, "list_models", "a1b2c3");
    let result = "x".repeat(462_000);
    let chunks: Vec<_> = chunk::chunks(&result, 20_087).collect();
    let visible = VisibleKeys { base, has_id: false };
    let pieces = message::pieces(&visible, &chunks);
    let stored = StoredText::new("list_models".into(), &result, pieces, &visible, usize::MAX);
    let message = stored.message(64_000);
    let page = include_str!("../../../../../docs/agent-tools.md");
    let (documented, _) = message.split_once("\nCall get_from_working_memory").expect("what to do");
    assert!(page.contains(&format!("```text\n{documented}\n```")), "{documented}");
    insta::assert_snapshot!(message);
}

#[test]
fn outline_matches_the_documentation() {
    let (namespace, _) = MemoryNamespace::of_path("session/abc123/x").expect("a path");
    let base = keys::base_of_run(&namespace, "list_models", "a1b2c3");
    let result = "# Models Overview\na\n# Pricing\nb\n# Context Windows\nc\n# Token Limits\nd\n";
    let chunks: Vec<_> = chunk::chunks(result, 20_000).collect();
    let visible = VisibleKeys { base, has_id: false };
    insta::assert_snapshot!(message::outline(&visible, &message::pieces(&visible, &chunks), &chunks));
}

/// The texts of a result whose keys have an id, as long as those that the gateway makes.
#[test]
fn id_is_written_once_for_many_chunks() {
    let base = format!("session/tyid_{}/tool-log-a1b2c3", "A".repeat(67));
    let page =
        |sections: usize| -> String { (0..sections).map(|n| format!("# Part {n}\nwords\n")).collect() };
    let texts = |sections: usize, has_id: bool| {
        let page = page(sections);
        let chunks: Vec<_> = chunk::chunks(&page, 20_000).collect();
        let visible = VisibleKeys { base: base.clone(), has_id };
        let pieces = message::pieces(&visible, &chunks);
        let outline = message::outline(&visible, &pieces, &chunks);
        let stored = StoredText::new("log".into(), &page, pieces, &visible, usize::MAX);
        [stored.message(64_000), stored.note(), outline]
    };
    insta::assert_snapshot!(texts(4, true).join("\n---\n").replace(&"A".repeat(67), "ID"));
    // Few keys are whole.
    for sections in 1..4 {
        assert_eq!(texts(sections, true), texts(sections, false));
    }
    let tokens = |has_id| texts(31, has_id).map(|text| toolyard_core::tokens::estimate(text.len()));
    assert_eq!((tokens(false), tokens(true)), ([1035, 88, 881], [417, 50, 263]));
}

#[tokio::test]
async fn many_small_sections_make_a_short_table() {
    let headings: String = (0..5000).map(|n| format!("## Heading {n}\nsome words\n")).collect();
    let harness = LargeResultHarness::new(
        json!({"content": [text(&headings)]}),
        ResultSettings::default(),
        MemorySettings::default(),
    );
    let answer = harness.result("list_models").await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    insta::assert_snapshot!(answer);
}

#[test]
fn guides_name_existing_memory_tools() {
    for guide in [GUIDE, crate::memory::GUIDE] {
        let named = guide.document.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        for name in named.filter(|word| word.ends_with("_working_memory")) {
            assert!(tools::NAMES.contains(&name), "{name} in {}", guide.name);
        }
        assert!(guide.document.starts_with("# ") && !guide.summary.contains('\n'));
    }
}

#[test]
fn json_that_is_too_long_for_a_query_is_read_by_lines() {
    let visible = VisibleKeys { base: "session/abc123/tool-a-a1b2c3".to_owned(), has_id: false };
    let json = r#"{"rows": [1, 2, 3]}"#;
    let message =
        |max_query| StoredText::new("a".into(), json, Vec::new(), &visible, max_query).message(64_000);
    assert!(message(json.len()).contains("query_working_memory(key, expression)"));
    let long = message(json.len() - 1);
    assert!(!long.contains("query_working_memory") && long.contains("grep: \"PATTERN\""), "{long}");
}
