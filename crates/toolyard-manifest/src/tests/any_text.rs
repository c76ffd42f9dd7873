//! Parsing terminates without a panic for any text.

use proptest::prelude::*;

use super::{handler, http, names, read, toolyard};

/// Lines of documents, so that the parser gets beyond the scanner.
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

/// A valid document with a replaced part.
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
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        let _ = read(&text).map_err(|problems| problems.to_string());
    }

    #[test]
    fn arbitrary_fragments_do_not_panic(fragments in prop::collection::vec(fragment(), 0..40)) {
        let _ = read(&fragments.concat()).map_err(|problems| problems.to_string());
    }

    #[test]
    fn damaged_documents_do_not_panic(
        text in prop_oneof![
            damaged(handler("timeout: 3s")),
            damaged(handler(names::ALL_FIELDS)),
            damaged(http::config(http::ALL_FIELDS)),
            damaged(toolyard("limits: {sessions: 1, headerBytes: 9KiB}")),
        ],
    ) {
        let _ = read(&text).map_err(|problems| problems.to_string());
    }
}
