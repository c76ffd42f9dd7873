use insta::assert_snapshot;
use serde_json::{Value, json};

use super::clients::{ALL, BOTH, HTTP, LEGACY, MODERN, McpdoSession, connected, inspector, python};

#[test]
fn seen_by_python() {
    let number = |number: i32| json!({"action": "accept", "content": {"number": number}});
    let steps = json!([
        ["tools"],
        ["answer", {"action": "accept", "content": {"guests": 4, "seats": "Outside", "dog": true}}],
        ["call", "book_table", {}],
        ["answer", {"action": "accept", "content": {"guests": 1, "seats": "Inside"}}],
        ["call", "book_table", {}],
        ["answer", {"action": "accept", "content": {"guests": "many", "seats": "Inside"}}],
        ["call", "book_table", {}],
        ["answer", {"action": "decline"}],
        ["call", "book_table", {}],
        ["answer", {"action": "cancel"}],
        ["call", "book_table", {}],
        ["answer", {"action": "accept"}],
        ["call", "sign_in", {}],
        ["answer", {"action": "decline"}],
        ["call", "sign_in", {}],
        ["answer", number(42), number(57)],
        ["call", "quiz", {}],
        ["answer", number(42), {"action": "cancel"}],
        ["call", "quiz", {}],
    ]);
    assert_snapshot!(python("elicitation", &ALL, &steps), @r#"
    tools
      - book_table
      - sign_in
      - quiz
    answer {"action": "accept", "content": {"guests": 4, "seats": "Outside", "dog": true}}
    call book_table {}
      asked A table for tonight: tell us more. (guests, seats, dog)
      => A table for 4 and a dog is booked (Outside).
    answer {"action": "accept", "content": {"guests": 1, "seats": "Inside"}}
    call book_table {}
      asked A table for tonight: tell us more. (guests, seats, dog)
      => A table for 1 is booked (Inside).
    answer {"action": "accept", "content": {"guests": "many", "seats": "Inside"}}
    call book_table {}
      asked A table for tonight: tell us more. (guests, seats, dog)
      => failed the client's answer does not fit: /guests: value is not of type "integer"
    answer {"action": "decline"}
    call book_table {}
      asked A table for tonight: tell us more. (guests, seats, dog)
      => No table is booked, as you said no.
    answer {"action": "cancel"}
    call book_table {}
      asked A table for tonight: tell us more. (guests, seats, dog)
      => No table is booked. Ask again when the user has time.
    answer {"action": "accept"}
    call sign_in {}
      asked Sign in to see your bookings. (https://example.com/sign-in)
      => Call me again when the page says that you are signed in.
    answer {"action": "decline"}
    call sign_in {}
      asked Sign in to see your bookings. (https://example.com/sign-in)
      => Without signing in there is nothing to see.
    answer {"action": "accept", "content": {"number": 42}} {"action": "accept", "content": {"number": 57}}
    call quiz {}
      asked What is 6 times 7? (number)
      asked And 7 times 8? (number)
      => 1 of 2 were right.
    answer {"action": "accept", "content": {"number": 42}} {"action": "cancel"}
    call quiz {}
      asked What is 6 times 7? (number)
      asked And 7 times 8? (number)
      => Another time, then.
    "#);
}

/// `mcp-inspector` declares no support for questions; `mcpdo` answers them.
#[test]
fn elicitation_fails_without_user() {
    let asks: [&[&str]; 1] = [&["--method", "tools/list"]];
    assert_snapshot!(inspector("elicitation", &BOTH, &asks), @r#"{"result":{"tools":[{"description":"Books a table; asks the user for how many.","inputSchema":{"additionalProperties":false,"properties":{},"type":"object"},"name":"book_table"},{"description":"Lets the user sign in.","inputSchema":{"additionalProperties":false,"properties":{},"type":"object"},"name":"sign_in"},{"description":"Asks the user a few questions while the food is cooking.","inputSchema":{"additionalProperties":false,"properties":{},"type":"object"},"name":"quiz"}]}}"#);
    let asks: [&[&str]; 1] = [&["--method", "tools/call", "--tool-name", "book_table"]];
    assert_snapshot!(inspector("elicitation", &LEGACY, &asks), @r#"{"error":{"code":"error","message":"The client lacks a capability that this needs"}}"#);
    // The message of the Inspector for the error code of the stateless era.
    assert_snapshot!(inspector("elicitation", &MODERN, &asks), @r#"{"error":{"code":"error","message":"Missing required client capability"}}"#);
}

fn answer_everything(inspector: &McpdoSession) -> String {
    let question = |mut answer: Value| answer["elicitationPending"].take();
    let respond = |question: &Value, answer: &str| {
        inspector.run_json(&["elicitation/respond", question["elicitationId"].as_str().unwrap(), answer])
    };
    let form = question(inspector.run_json(&["tools/call", "book_table"]));
    let booked = respond(&form, r#"{"guests": 4, "seats": "Outside"}"#);
    let page = question(inspector.run_json(&["tools/call", "sign_in"]));
    let opened = respond(&page, "--done");
    let first = question(inspector.run_json(&["tools/call", "quiz"]));
    let second = question(respond(&first, r#"{"number": 42}"#));
    let score = respond(&second, r#"{"number": 56}"#);

    let requests = [&form["requestedSchema"], &page["url"], &first["message"], &second["message"]];
    let answers = [&booked, &opened, &score].map(|answer| &answer["content"][0]["text"]);
    requests.into_iter().chain(answers).map(|value| format!("{value}\n")).collect()
}

#[test]
fn seen_by_the_inspector_and_its_user() {
    assert_snapshot!(connected("elicitation", &HTTP, answer_everything), @r#"
    {"properties":{"dog":{"default":false,"description":"You bring a dog","type":"boolean"},"guests":{"description":"Number of guests","maximum":12,"minimum":1,"type":"integer"},"seats":{"description":"Preferred seats","oneOf":[{"const":"Inside","title":"In the dining room"},{"const":"Outside","title":"On the terrace"}],"type":"string"}},"required":["guests","seats"],"type":"object"}
    "https://example.com/sign-in"
    "What is 6 times 7?"
    "And 7 times 8?"
    "A table for 4 is booked (Outside)."
    "Call me again when the page says that you are signed in."
    "2 of 2 were right."
    "#);
}
