//! The folders that a client lets servers work on (MCP, client/roots).

use serde::Deserialize;
use toolyard_core::{Ask, AskKind, Json, Object};

use crate::rounds::{BadAnswer, BadQuestion, Need, Prepared, Question, sealed};

/// The question which folders the client lets servers work on, as a value: for
/// [`InputRequired::ask`](crate::InputRequired::ask). [`Context::roots`](crate::Context::roots) asks it at once.
///
/// ```
/// use toolyard_sdk::{InputRequired, RootsRequest};
///
/// let asks = InputRequired::new().ask("folders", RootsRequest);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RootsRequest;

/// A folder or file that the client thinks relevant. It is a hint, and not a permission: nothing keeps a server
/// within it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Where it is: a `file://` URI.
    pub uri: String,
    /// Its name for people.
    pub name: Option<String>,
}

impl sealed::Sealed for RootsRequest {}

impl Question for RootsRequest {
    type Answer = Vec<Root>;

    fn prepare(self) -> Result<Prepared, BadQuestion> {
        Ok(Prepared { ask: Ask { kind: AskKind::Roots, params: Object::new() }, need: Need::Roots })
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
    fn what_clients_answer() {
        check(r#"{"roots":[]}"#, Ok(&[]));
        check(
            r#"{"roots":[{"uri":"file:///a","name":"A","_meta":{}},{"uri":"file:///b"}],"_meta":{}}"#,
            Ok(&[("file:///a", Some("A")), ("file:///b", None)]),
        );
        check(r#"{"roots":[{}]}"#, Err("its answer cannot be used: missing field `uri` at line 1 column 12"));
        check(r#"{}"#, Err("its answer cannot be used: missing field `roots` at line 1 column 2"));
    }
}
