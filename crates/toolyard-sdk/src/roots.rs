//! Roots: the folders that servers may work on (MCP, client/roots).

use serde::Deserialize;
use toolyard_core::{InputRequest, InputRequestKind, Json, Object};

use crate::input_required::{
    BadAnswer, BadQuestion, ClientQuestion, PreparedQuestion, RequiredCapability, sealed,
};

/// The question for the client's folders, as a value for [`InputRequired::ask`](crate::InputRequired::ask).
/// [`Context::roots`](crate::Context::roots) asks it at once.
///
/// ```
/// use toolyard_sdk::{InputRequired, RootsRequest};
///
/// let asks = InputRequired::new().ask("folders", RootsRequest);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RootsRequest;

/// A folder or file that the client considers relevant. It is a hint, not a permission: nothing confines a server to
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// The display name.
    pub name: Option<String>,
}

impl sealed::Sealed for RootsRequest {}

impl ClientQuestion for RootsRequest {
    type Answer = Vec<Root>;

    fn prepare(self) -> Result<PreparedQuestion, BadQuestion> {
        Ok(PreparedQuestion {
            ask: InputRequest { kind: InputRequestKind::Roots, params: Object::new() },
            need: RequiredCapability::Roots,
        })
    }

    fn read(answer: &Json) -> Result<Vec<Root>, BadAnswer> {
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        Ok(serde_json::from_slice::<Roots>(answer.as_bytes())?.roots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Result<&[(&str, Option<&str>)], &str>) {
        let read = RootsRequest::read(&Json::parse(answer.to_owned()).unwrap());
        let read = read.map_err(|error| error.to_string());
        let expected = expected.map_err(str::to_owned).map(|roots| {
            let root =
                |(uri, name): &(&str, Option<&str>)| Root { uri: (*uri).into(), name: name.map(Into::into) };
            roots.iter().map(root).collect::<Vec<_>>()
        });
        assert_eq!(read, expected, "{answer}");
    }

    #[test]
    fn answer_is_parsed() {
        check(r#"{"roots":[]}"#, Ok(&[]));
        check(
            r#"{"roots":[{"uri":"file:///a","name":"A","_meta":{}},{"uri":"file:///b"}],"_meta":{}}"#,
            Ok(&[("file:///a", Some("A")), ("file:///b", None)]),
        );
        check(r#"{"roots":[{}]}"#, Err("invalid answer: missing field `uri` at line 1 column 12"));
        check(r#"{}"#, Err("invalid answer: missing field `roots` at line 1 column 2"));
    }
}
