use insta::assert_snapshot;
use serde_json::json;

use super::clients::{ALL, BOTH, LEGACY, MODERN, inspector, python};

#[test]
fn tools_and_prompts_seen_by_python() {
    let steps = json!([
        ["tools"],
        ["call", "add_note", {"name": "milk", "text": "Buy oat milk."}],
        ["call", "search_notes", {"text": "oat"}],
        ["call", "add_note", {"name": "no spaces", "text": ""}],
        ["prompts"],
        ["prompt", "summarize", {"name": "milk"}],
        ["prompt", "summarize", {}],
        ["complete", "summarize", "name", ""],
        ["complete", "summarize", "name", "mi"],
        ["complete", "note:///{name}", "name", "w"],
        ["complete", "note:///{name}", "name", "x"],
        ["call", "remove_note", {"name": "milk"}],
        ["call", "remove_note", {"name": "milk"}],
        ["call", "search_notes", {"text": "oat"}],
        ["prompt", "summarize", {"name": "milk"}],
    ]);
    assert_snapshot!(python("notes", &ALL, &steps), @r#"
    tools
      - add_note
      - remove_note
      - search_notes
    call add_note {"name": "milk", "text": "Buy oat milk."}
      => {"notes":["note:///milk"]}
    call search_notes {"text": "oat"}
      => {"notes":["note:///milk"]}
    call add_note {"name": "no spaces", "text": ""}
      => failed Invalid arguments: /name: value does not match "^[a-z0-9-]{1,64}$"
    prompts
      - summarize(name)
    prompt summarize {"name": "milk"}
      => user: Summarize this note in one sentence.
      => user: note:///milk Buy oat milk.
    prompt summarize {}
      => error -32602 Missing required argument: `name`
    complete summarize name ""
      => milk, welcome
    complete summarize name mi
      => milk
    complete note:///{name} name w
      => welcome
    complete note:///{name} name x
      => nothing
    call remove_note {"name": "milk"}
      => {"notes":["note:///milk"]}
    call remove_note {"name": "milk"}
      => failed there is no such note: search for its text
    call search_notes {"text": "oat"}
      => {"notes":[]}
    prompt summarize {"name": "milk"}
      => error -32602 there is no such note
    "#);
}

#[test]
fn resources_seen_by_python() {
    let steps = json!([
        ["resources"],
        ["read", "note:///welcome"],
        ["follow", "note:///milk"],
        ["call", "add_note", {"name": "milk", "text": "Buy oat milk."}],
        ["await_changes", "list of resources"],
        ["resources"],
        ["read", "note:///milk"],
        ["call", "add_note", {"name": "milk", "text": "Buy soy milk."}],
        ["await_changes", "note:///milk"],
        ["read", "note:///milk"],
        ["call", "remove_note", {"name": "milk"}],
        ["await_changes", "list of resources", "note:///milk"],
        ["resources"],
    ]);
    assert_snapshot!(python("notes", &ALL, &steps), @r#"
    resources
      - note:///welcome
      - note:///{name}
    read note:///welcome
      => text/plain Add a note with add_note.
    follow note:///milk
    call add_note {"name": "milk", "text": "Buy oat milk."}
      => {"notes":["note:///milk"]}
    await_changes list of resources
      => list of resources
    resources
      - note:///welcome
      - note:///milk
      - note:///{name}
    read note:///milk
      => text/plain Buy oat milk.
    call add_note {"name": "milk", "text": "Buy soy milk."}
      => {"notes":["note:///milk"]}
    await_changes note:///milk
      => note:///milk
    read note:///milk
      => text/plain Buy soy milk.
    call remove_note {"name": "milk"}
      => {"notes":["note:///milk"]}
    await_changes list of resources note:///milk
      => list of resources, note:///milk
    resources
      - note:///welcome
      - note:///{name}
    "#);
}

/// The error codes of the eras differ.
#[test]
fn removed_note_is_not_found() {
    let steps = json!([
        ["call", "add_note", {"name": "milk", "text": "Buy oat milk."}],
        ["follow", "note:///milk"],
        ["read", "note:///milk"],
        ["call", "remove_note", {"name": "milk"}],
        ["await_changes", "list of resources", "note:///milk"],
        ["read", "note:///milk"],
    ]);
    assert_snapshot!(python("notes", &LEGACY[1..], &steps), @r#"
    call add_note {"name": "milk", "text": "Buy oat milk."}
      => {"notes":["note:///milk"]}
    follow note:///milk
    read note:///milk
      => text/plain Buy oat milk.
    call remove_note {"name": "milk"}
      => {"notes":["note:///milk"]}
    await_changes list of resources note:///milk
      => list of resources, note:///milk
    read note:///milk
      => error -32002 Resource not found
    "#);
    assert_snapshot!(python("notes", &MODERN[1..], &steps), @r#"
    call add_note {"name": "milk", "text": "Buy oat milk."}
      => {"notes":["note:///milk"]}
    follow note:///milk
    read note:///milk
      => text/plain Buy oat milk.
    call remove_note {"name": "milk"}
      => {"notes":["note:///milk"]}
    await_changes list of resources note:///milk
      => list of resources, note:///milk
    read note:///milk
      => error -32602 Resource not found
    "#);
}

#[test]
fn tools_and_prompts_seen_by_the_inspector() {
    let asks: [&[&str]; 4] = [
        &["--method", "tools/list"],
        &["--method", "tools/call", "--tool-name", "search_notes", "--tool-arg", "text=Add"],
        &["--method", "prompts/list"],
        &["--method", "prompts/get", "--prompt-name", "summarize", "--prompt-args", "name=welcome"],
    ];
    assert_snapshot!(inspector("notes", &BOTH, &asks), @r#"
    {"result":{"tools":[{"description":"Adds or changes a note.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"name":{"description":"The name: lower-case letters, digits and hyphens","pattern":"^[a-z0-9-]{1,64}$","type":"string"},"text":{"description":"The text","type":"string"}},"required":["name","text"],"type":"object"},"name":"add_note","outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"notes":{"description":"The URIs of the notes","items":{"type":"string"},"type":"array"}},"required":["notes"],"type":"object"}},{"description":"Removes a note.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"name":{"description":"The name of the note","type":"string"}},"required":["name"],"type":"object"},"name":"remove_note","outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"notes":{"description":"The URIs of the notes","items":{"type":"string"},"type":"array"}},"required":["notes"],"type":"object"}},{"description":"Finds the notes that contain a text.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"text":{"description":"The text to search for","type":"string"}},"required":["text"],"type":"object"},"name":"search_notes","outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"notes":{"description":"The URIs of the notes","items":{"type":"string"},"type":"array"}},"required":["notes"],"type":"object"}}]}}
    {"result":{"content":[{"text":"{\"notes\":[\"note:///welcome\"]}","type":"text"}],"structuredContent":{"notes":["note:///welcome"]}}}
    {"result":{"prompts":[{"arguments":[{"description":"The name of the note","name":"name","required":true}],"description":"Asks for a summary of a note.","name":"summarize"}]}}
    {"result":{"messages":[{"content":{"text":"Summarize this note in one sentence.","type":"text"},"role":"user"},{"content":{"resource":{"mimeType":"text/plain","text":"Add a note with add_note.","uri":"note:///welcome"},"type":"resource"},"role":"user"}]}}
    "#);
}

#[test]
fn resources_seen_by_the_inspector() {
    let asks: [&[&str]; 3] = [
        &["--method", "resources/list"],
        &["--method", "resources/templates/list"],
        &["--method", "resources/read", "--uri", "note:///welcome"],
    ];
    assert_snapshot!(inspector("notes", &BOTH, &asks), @r#"
    {"result":{"resources":[{"mimeType":"text/plain","name":"welcome","uri":"note:///welcome"}]}}
    {"result":{"resourceTemplates":[{"mimeType":"text/plain","name":"note","uriTemplate":"note:///{name}"}]}}
    {"result":{"cacheScope":"private","contents":[{"mimeType":"text/plain","text":"Add a note with add_note.","uri":"note:///welcome"}],"ttlMs":60000}}
    "#);
}
