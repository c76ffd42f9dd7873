//! The shape of a JSON value in one line, from which a model can write an expression for a query.

use std::fmt::Write;

use toolyard_core::{Json, Object};

/// Maximum length of a shape in characters, apart from the names and brackets that are open at the end.
const MAX_CHARS: usize = 400;

/// Maximum nesting of a shape.
const MAX_DEPTH: usize = 4;

/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 60;

/// Returns the shape of an object or an array, such as `{data: [3000 of {id: string, price: number}]}`. The items of an
/// array are described by the first one. `None` if the text is not JSON, or neither of them.
pub(super) fn shape(text: &str) -> Option<String> {
    if !matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[')) {
        return None;
    }
    let json = Json::parse(text.to_owned()).ok()?;
    let mut shape = String::new();
    write_shape(&json, MAX_DEPTH, &mut shape);
    Some(shape)
}

fn write_shape(json: &Json, depth: usize, shape: &mut String) {
    match json.as_bytes().first() {
        Some(b'{' | b'[') if depth == 0 => shape.push('…'),
        Some(b'{') => write_object(&json.to_object().unwrap_or_default(), depth, shape),
        Some(b'[') => write_list(&json.to_items().unwrap_or_default(), depth, shape),
        Some(b'"') => shape.push_str("string"),
        Some(b't' | b'f') => shape.push_str("boolean"),
        Some(b'n') => shape.push_str("null"),
        _ => shape.push_str("number"),
    }
}

fn write_object(object: &Object, depth: usize, shape: &mut String) {
    shape.push('{');
    for (at, (name, value)) in object.iter().enumerate() {
        if at > 0 {
            shape.push_str(", ");
        }
        if shape.len() > MAX_CHARS {
            shape.push('…');
            break;
        }
        write_name(&name, shape);
        write_shape(value, depth - 1, shape);
    }
    shape.push('}');
}

fn write_list(items: &[Json], depth: usize, shape: &mut String) {
    match items.first() {
        None => shape.push_str("[]"),
        Some(first) => {
            let _ = write!(shape, "[{} of ", items.len());
            write_shape(first, depth - 1, shape);
            shape.push(']');
        }
    }
}

/// Writes a name as an expression has it: in quotes unless it is an identifier.
fn write_name(name: &str, shape: &mut String) {
    let is_identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let excerpt: String = name.chars().take(MAX_NAME_CHARS).collect();
    let cut = if excerpt.len() < name.len() { "…" } else { "" };
    let _ = match is_identifier {
        true => write!(shape, "{excerpt}{cut}: "),
        false => write!(shape, "{}{cut}: ", Json::string(&excerpt).as_text()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(shape(text).as_deref(), expected);
    }

    #[test]
    fn shape_names_members_and_types() {
        check(
            r#"{"rows": [{"id": "a", "price": 1.5, "tags": []}, {}], "next-page": null, "done": true}"#,
            Some(r#"{rows: [2 of {id: string, price: number, tags: []}], "next-page": null, done: boolean}"#),
        );
        check("[[1, 2], [3]]", Some("[2 of [2 of number]]"));
        check(r#"{"a": {"b": {"c": {"d": {"e": 1}}}}}"#, Some("{a: {b: {c: {d: …}}}}"));
        check("{}", Some("{}"));
    }

    #[test]
    fn text_has_no_shape() {
        check("[INFO] started", None);
        check("\"a text\"", None);
        check("7", None);
    }

    #[test]
    fn shape_is_bounded() {
        let wide: Vec<_> = (0..10_000).map(|n| format!(r#""member {n}": {{"é": {n}}}"#)).collect();
        let wide = shape(&format!("{{{}}}", wide.join(","))).unwrap();
        assert!(wide.chars().count() < MAX_CHARS + 100 && wide.ends_with(", …}"), "{wide}");
        let long = shape(&format!(r#"{{"{}": 1}}"#, "n".repeat(10_000))).unwrap();
        assert_eq!(long, format!("{{{}…: number}}", "n".repeat(MAX_NAME_CHARS)));
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        check(&deep, Some("[1 of [1 of [1 of [1 of …]]]]"));
    }
}
