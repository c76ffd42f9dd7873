//! JMESPath over raw JSON, with limits: data from a server or a caller cannot make a mapping of the manifest
//! expensive.

use std::io;

use jmespath::Expression;
use serde_json::Value;
use toolyard_core::growth::GrowthBound;
use toolyard_core::{ErrorCode, Json, ToolError};

/// Maximum number of values that a mapping creates: a few seconds of CPU time.
const MAX_MAPPED_VALUES: usize = 8_000_000;

/// Maximum cost of a mapping on a connection's thread, in bytes read or copied: a millisecond or two.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// A JMESPath expression with its limits.
#[derive(Debug, Clone)]
pub struct JmesPathMapping {
    expression: Expression<'static>,
    growth: GrowthBound,
    max_bytes: usize,
}

impl JmesPathMapping {
    /// Creates a mapping whose results have at most `max_bytes` bytes.
    #[must_use]
    pub fn new(expression: Expression<'static>, max_bytes: usize) -> Self {
        let growth = GrowthBound::of(expression.as_ast());
        Self { expression, growth, max_bytes }
    }

    /// True if data of `bytes` bytes can be mapped on a connection's thread.
    #[must_use]
    pub const fn is_brief(&self, bytes: usize) -> bool {
        self.growth.times.saturating_mul(bytes) <= MAX_INLINE_BYTES
    }

    /// Maps a value. The expression sees parsed values: numbers beyond 64 bits lose digits, and members are sorted by
    /// name.
    ///
    /// # Errors
    /// [`ErrorCode::ExecutionFailed`] if the expression does not fit the value, or a limit is exceeded.
    pub fn apply(&self, json: &Json) -> Result<Json, ToolError> {
        let failed =
            || ToolError::new(ErrorCode::ExecutionFailed, "A mapping of this tool does not fit the data");
        let value = json.to_value();
        if self.growth.values(count_values(&value), json.as_bytes().len()) > MAX_MAPPED_VALUES {
            let problem = "The data is too large for a mapping of this tool, which copies it many times over";
            return Err(ToolError::new(ErrorCode::ExecutionFailed, problem));
        }
        let mapped = self.expression.search(value).map_err(|error| failed().caused_by(error))?;
        let mut text = LimitedBuffer { content: Vec::new(), max_bytes: self.max_bytes };
        serde_json::to_writer(&mut text, &mapped).map_err(|error| match error.io_error_kind() {
            Some(_) => too_large(self.max_bytes),
            None => failed().caused_by(error),
        })?;
        Json::parse(text.content).map_err(|error| failed().caused_by(error))
    }
}

fn too_large(max_bytes: usize) -> ToolError {
    let problem = format!("The result of a mapping of this tool is larger than {max_bytes} bytes");
    ToolError::new(ErrorCode::ExecutionFailed, problem)
}

/// Counts the values in a value, itself included.
fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

/// A buffer that refuses to grow beyond its limit.
struct LimitedBuffer {
    content: Vec<u8>,
    max_bytes: usize,
}

impl io::Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.content.len() + bytes.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, most_bytes: usize, data: &str, expected: &str) {
        let mapping = JmesPathMapping::new(jmespath::compile(expression).unwrap(), most_bytes);
        let mapped = mapping.apply(&Json::parse(data.to_owned()).unwrap());
        let mapped = mapped.map_or_else(|error| error.message().to_owned(), |json| json.as_text().to_owned());
        assert_eq!(mapped, expected);
    }

    #[test]
    fn results_are_limited() {
        check("[a, a]", 7, r#"{"a":12}"#, "[12,12]");
        check("[a, a]", 6, r#"{"a":12}"#, "The result of a mapping of this tool is larger than 6 bytes");
    }

    #[test]
    fn data_cannot_make_a_mapping_expensive() {
        let costly = "The data is too large for a mapping of this tool, which copies it many times over";
        // Separator and items come from the server: joined, their size is the product of the two.
        let (separator, items) = ("x".repeat(1 << 20), vec![r#""y""#; 1 << 18].join(","));
        check("join(s, i)", 1 << 30, &format!(r#"{{"s":"{separator}","i":[{items}]}}"#), costly);
        let twice = vec!["[@, @]"; 30].join(" | ");
        check(&twice, 1 << 30, "[1,2,3]", costly);
        check("i[0]", 1 << 30, &format!(r#"{{"i":[{items}]}}"#), r#""y""#);
    }

    #[test]
    fn brief_mappings_are_small_in_growth_and_data() {
        let is_brief =
            |text, bytes| JmesPathMapping::new(jmespath::compile(text).unwrap(), usize::MAX).is_brief(bytes);
        assert!(is_brief("a.b", 1000));
        assert!(!is_brief("a.b", 1 << 20));
        assert!(!is_brief("join(a, b)", 1000));
    }
}
