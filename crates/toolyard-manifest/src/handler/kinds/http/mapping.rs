//! JMESPath expressions, which transform bodies and responses.

use std::fmt;

use crate::cursor::ValueCursor;

/// Maximum number of operators and brackets in a JMESPath expression. Its parser and its interpreter are recursive, for
/// some of them with several functions each.
const MAX_OPERATORS: usize = 200;

/// A JMESPath expression that compiles.
#[derive(Clone)]
pub struct JmesPathExpression(pub(crate) jmespath::Expression<'static>);

impl JmesPathExpression {
    /// The compiled expression.
    #[must_use]
    pub const fn expression(&self) -> &jmespath::Expression<'static> {
        &self.0
    }
}

impl PartialEq for JmesPathExpression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for JmesPathExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JmesPathExpression({})", self.0.as_str())
    }
}

/// Reads an expression.
pub(super) fn read(cursor: ValueCursor<'_>) -> Option<JmesPathExpression> {
    let text = cursor.literal_text()?;
    if text.bytes().filter(|byte| b"([{!&|.=<>*".contains(byte)).count() > MAX_OPERATORS {
        let problem = cursor.problem("this expression is too long");
        cursor.report(
            problem.expected(format!("JMESPath with at most {MAX_OPERATORS} operators and brackets")),
        );
        return None;
    }
    match jmespath::compile(text) {
        Ok(expression) => Some(JmesPathExpression(expression)),
        Err(error) => {
            let problem = cursor.problem(format!("this is not JMESPath: {}", error.reason));
            let at = format!("the error is at character {} of the expression", error.offset + 1);
            cursor.report(problem.expected("an expression such as `items[].name`").hint(at));
            None
        }
    }
}
