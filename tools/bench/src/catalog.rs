//! The tools of the upstream.

use serde_json::{Value, json};

/// `echo`, and further tools up to `tools` in all.
pub(super) fn catalog(tools: usize) -> Value {
    let echo = json!({
        "name": "echo",
        "description": "Returns its argument.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text to return."}},
            "required": ["text"]
        }
    });
    std::iter::once(echo).chain((1..tools).map(search_tool)).collect()
}

/// A tool of about 500 bytes with a nested schema, as large as published tools are on average.
fn search_tool(number: usize) -> Value {
    json!({
        "name": format!("search_orders_{number:04}"),
        "description": "Finds the orders of a customer, newest first.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "The customer's number."},
                "placed": {
                    "type": "object",
                    "properties": {
                        "from": {"type": "string", "format": "date"},
                        "to": {"type": "string", "format": "date"}
                    }
                },
                "states": {"type": "array", "items": {"enum": ["open", "paid", "sent"]}},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
            },
            "required": ["customer"]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_tool_has_about_500_bytes() {
        let size = search_tool(1).to_string().len();
        assert!((450..=550).contains(&size), "{size}");
    }

    #[test]
    fn catalog_begins_with_echo() {
        let catalog = catalog(3);
        assert_eq!(catalog[0]["name"], "echo");
        assert_eq!(catalog.as_array().map(Vec::len), Some(3));
    }
}
