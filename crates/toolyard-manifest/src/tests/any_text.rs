//! Whatever the text is, reading it ends and does not panic.

use proptest::prelude::*;

use super::{handler, http, names, read, toolyard};

/// Lines of what may stand in a document, so that more than the scanner is reached.
fn fragment() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "---\n",
        "...\n",
        "- ",
        "? ",
        ": ",
        "\n",
        "  ",
        "    ",
        "\t",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a ",
        "*a ",
        "!!str ",
        "|\n",
        ">-\n",
        "'",
        "\"",
        "\\",
        "#",
        "%TAG ! x\n",
        "kind: ToolRegistry\n",
        "kind: Toolyard\n",
        "metadata: ",
        "spec:\n",
        "handlers:\n",
        "name: ",
        "type: mcp\n",
        "mcpConfig:\n",
        "transport: stdio\n",
        "limits: ",
        "${",
        "}",
        "0x",
        "1e9",
        "\u{feff}",
        "\u{e9}",
        "\r",
        "\0",
        "~",
        "<<: ",
    ])
    .prop_map(str::to_owned)
}

/// A valid document in which a part was replaced.
fn damaged(document: String) -> impl Strategy<Value = String> {
    let length = document.len();
    (0..length, 0..20_usize, "\\PC{0,8}").prop_map(move |(start, count, text)| {
        let mut damaged = document.clone();
        damaged.replace_range(start..(start + count).min(length), &text);
        damaged
    })
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(text in any::<String>()) {
        let _ = read(&text).map_err(|problems| problems.to_string());
    }

    #[test]
    fn any_fragments_are_read_to_their_end(fragments in prop::collection::vec(fragment(), 0..40)) {
        let _ = read(&fragments.concat()).map_err(|problems| problems.to_string());
    }

    #[test]
    fn damaged_documents_are_read_to_their_end(
        text in prop_oneof![
            damaged(handler("timeout: 3s")),
            damaged(handler(names::EVERYTHING)),
            damaged(http::config(http::EVERYTHING)),
            damaged(toolyard("limits: {sessions: 1, headerBytes: 9KiB}")),
        ],
    ) {
        let _ = read(&text).map_err(|problems| problems.to_string());
    }
}
