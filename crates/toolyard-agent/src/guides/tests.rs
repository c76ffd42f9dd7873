use std::sync::Arc;

use serde_json::json;
use toolyard_core::Backend;
use toolyard_sdk::Server;

use super::*;
use crate::testing::{definitions, read, read_all};

/// All built-in guides.
const GUIDES: [GuideDocument; 6] = [
    crate::scripts::GUIDE,
    crate::memory::GUIDE,
    crate::large::GUIDE,
    crate::skills::GUIDE,
    MCP_GUIDE,
    SEARCH_GUIDE,
];

fn backend(guides: &[GuideDocument]) -> Arc<dyn Backend> {
    let mut book = GuideBook::new();
    for guide in guides {
        book.add(Arc::new(guide.clone())).expect("a good guide");
    }
    add(Server::new("guides", "1.0.0"), Arc::new(book)).expect("tools").into_backend()
}

fn guide(name: &str) -> GuideDocument {
    let document = format!("# {name}\n");
    GuideDocument { name: name.to_owned().into(), summary: "Of tests".into(), document: document.into() }
}

#[test]
fn tool_definitions() {
    insta::assert_snapshot!(definitions(&backend(&[])));
}

#[tokio::test]
async fn guide_tool_results() {
    let bare = read_all(&backend(&[]), None, &[(LIST, json!({})), (GET, json!({"name": "mcp"}))]).await;
    insta::assert_snapshot!(bare, @r#"
    > list_tool_guides {}
    No tool guides are available here.

    > get_tool_guide {"name":"mcp"}
    No tool guide named 'mcp'. No tool guides are available here.
    "#);
    let text = read_all(
        &backend(&GUIDES),
        None,
        &[
            (LIST, json!({})),
            (GET, json!({"name": " weather "})),
            (GET, json!({"name": ""})),
            (GET, json!({})),
            (GET, json!({"name": 7})),
        ],
    )
    .await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn guide_is_returned_for_each_alias() {
    let backend = backend(&GUIDES);
    let check = async |name: &str, expected: &GuideDocument| {
        let text = read(&backend, None, GET, json!({"name": name})).await;
        assert!(text == expected.document, "{name}: {text}");
    };
    for guide in &GUIDES {
        check(&guide.name, guide).await;
        check(&guide.name.to_uppercase(), guide).await;
    }
    for name in ["mcp", "MCP", "mcp_tool_guide", "MCP tool guide", " mcp-tools "] {
        check(name, &MCP_GUIDE).await;
    }
    for name in ["Service_Search", "search"] {
        check(name, &SEARCH_GUIDE).await;
    }
    check("script", &crate::scripts::GUIDE).await;
}

#[test]
fn exact_name_precedes_alias() {
    #[track_caller]
    fn check(guides: &[&str], name: &str, expected: Option<&str>) {
        let mut book = GuideBook::new();
        for name in guides {
            book.add(Arc::new(guide(name))).expect("a good guide");
        }
        assert_eq!(book.find(name).map(GuideProvider::name), expected, "{guides:?} {name}");
    }
    check(&["mcp", "mcp-tool-guide"], "mcp", Some("mcp"));
    check(&["mcp", "mcp-tool-guide"], "mcp-tools", Some("mcp-tool-guide"));
    check(&["Web"], "web-tools", Some("Web"));
    check(&["web-tools"], "web", Some("web-tools"));
    check(&["wisp"], "wisps", Some("wisp"));
    check(&["subagents"], "subagent", Some("subagents"));
    check(&["scheduling"], "web", None);
}

#[test]
fn invalid_guide_is_refused() {
    #[track_caller]
    fn check(guide: GuideDocument, expected: &str) {
        let refused = GuideBook::new().with(super::tests::guide("Taken")).and_then(|book| book.with(guide));
        assert_eq!(refused.expect_err("a bad guide").to_string(), expected);
    }
    let name =
        "is not a valid guide name: expected at most 64 letters, digits, `-` and `_`, such as `web-tools`";
    check(guide(""), &format!("`` {name}"));
    check(guide("a b"), &format!("`a b` {name}"));
    check(guide("../x"), &format!("`../x` {name}"));
    check(guide(&"x".repeat(99)), &format!("`{}` {name}", "x".repeat(64)));
    check(guide("taken"), "there is already a guide named `taken`");
    for summary in ["", " ", "a\nb", &"x".repeat(301)] {
        let bad = GuideDocument { summary: summary.to_owned().into(), ..guide("g") };
        check(bad, "the summary of the guide `g` is not one line of 1 to 300 characters");
    }
    for document in ["\n".to_owned(), "x".repeat(256 * 1024 + 1)] {
        let bad = GuideDocument { document: document.into(), ..guide("g") };
        check(bad, "the guide `g` is empty, or longer than 256 KiB");
    }
    let mut book = GuideBook::new();
    let added = (0..=200).map(|number| book.add(Arc::new(guide(&format!("g{number}")))));
    assert_eq!(added.filter(Result::is_err).collect::<Vec<_>>(), [Err(GuideError::TooMany)]);
}

/// Names of tools in guides that `NAMES` constants do not contain.
const OTHER_TOOLS: [&str; 6] = [
    "mcp_list_services",
    "mcp_get_service_details",
    "mcp_invoke_tool",
    "mcp_register_server",
    "mcp_unregister_server",
    "calendar_create_event",
];

#[test]
fn guides_name_existing_tools() {
    for guide in &GUIDES {
        let document = &guide.document;
        assert!(document.starts_with("# ") && document.ends_with('\n'), "{}", guide.name);
        for before in document.split('(') {
            let name =
                before.rsplit(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default();
            // No JMESPath function except this one has an underscore in its name.
            if !name.contains('_') || name == "sort_by" {
                continue;
            }
            let mut ours = NAMES
                .into_iter()
                .chain(crate::memory::tools::NAMES)
                .chain(crate::skills::NAMES)
                .chain(crate::search::NAMES)
                .chain(OTHER_TOOLS);
            assert!(ours.any(|known| known == name), "{name} in {}", guide.name);
        }
    }
}
