//! The answer to a request of the API server (`admission.k8s.io/v1`).

use serde_json::{Value, json};

/// Path of the webhook.
pub const VALIDATE_PATH: &str = "/validate";

/// Maximum size of a request in bytes: two objects of at most 3 MiB, which is the limit of the API server.
pub const REVIEW_BYTES: usize = 7 * 1024 * 1024;

/// Maximum number of problems in a message.
const MAX_PROBLEMS: usize = 20;

/// The body is not a request of the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The body is not JSON.
    #[error("the body is not JSON: send an AdmissionReview of admission.k8s.io/v1")]
    NotJson,
    /// The body is another document.
    #[error("the body is not a request: send an AdmissionReview of admission.k8s.io/v1 with `request.uid`")]
    NotReview,
}

/// Answers a request. `problems` returns the problems of an object of a kind, one text each.
///
/// Only new objects and changes of `spec` are refused: the finalizer of an invalid object, and its labels, can be
/// changed.
///
/// # Errors
/// If the body is not a request.
pub fn review(body: &[u8], problems: impl Fn(&str, &Value) -> Vec<String>) -> Result<Value, ReviewError> {
    let review: Value = serde_json::from_slice(body).map_err(|_| ReviewError::NotJson)?;
    let request = &review["request"];
    let is_review = review["apiVersion"] == "admission.k8s.io/v1" && review["kind"] == "AdmissionReview";
    let uid = request["uid"].as_str().filter(|_| is_review).ok_or(ReviewError::NotReview)?;
    let found = match request["kind"]["kind"].as_str() {
        Some(kind) if is_validated(request) => problems(kind, &request["object"]),
        _ => Vec::new(),
    };
    let mut response = json!({"uid": uid, "allowed": found.is_empty()});
    if !found.is_empty() {
        response["status"] = json!({
            "status": "Failure", "reason": "Invalid", "code": 422, "message": message(&found),
        });
    }
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// Returns `true` for a request that stores another specification.
fn is_validated(request: &Value) -> bool {
    let is_subresource = request["subResource"].as_str().is_some_and(|name| !name.is_empty());
    let is_deleted = request["object"]["metadata"]["deletionTimestamp"].is_string();
    let is_other = match request["operation"].as_str() {
        Some("CREATE") => true,
        Some("UPDATE") => request["object"]["spec"] != request["oldObject"]["spec"],
        _ => false,
    };
    is_other && !is_subresource && !is_deleted
}

/// Joins problems, the first ones if there are many.
fn message(problems: &[String]) -> String {
    let mut message = problems.iter().take(MAX_PROBLEMS).map(String::as_str).collect::<Vec<_>>().join("; ");
    if let Some(further) = problems.len().checked_sub(MAX_PROBLEMS).filter(|further| *further > 0) {
        message.push_str(&format!("; and {further} more"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers a request whose objects have one problem for each `x` in `spec.problems`.
    fn answer(request: Value) -> String {
        let body =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let problems = |kind: &str, object: &Value| {
            let count = object["spec"]["problems"].as_str().unwrap_or_default().len();
            (0..count).map(|number| format!("{kind}.{number}: wrong")).collect()
        };
        let answered = review(body.to_string().as_bytes(), problems);
        let response = &answered.unwrap()["response"];
        match response["status"]["message"].as_str() {
            Some(message) => format!("{} {} {message}", response["uid"], response["allowed"]),
            None => format!("{} {}", response["uid"], response["allowed"]),
        }
    }

    fn request(operation: &str, old: Option<&str>, new: Option<&str>) -> Value {
        let object = |problems: &str| json!({"metadata": {"name": "a"}, "spec": {"problems": problems}});
        json!({
            "uid": "u", "kind": {"group": "g", "version": "v1", "kind": "Tool"}, "operation": operation,
            "object": new.map(object), "oldObject": old.map(object),
        })
    }

    #[test]
    fn new_specifications_with_problems_are_refused() {
        let check = |request: Value, expected: &str| assert_eq!(answer(request), expected);
        check(request("CREATE", None, Some("")), r#""u" true"#);
        check(request("CREATE", None, Some("xx")), r#""u" false Tool.0: wrong; Tool.1: wrong"#);
        check(request("UPDATE", Some(""), Some("x")), r#""u" false Tool.0: wrong"#);
        check(request("UPDATE", Some("x"), Some("x")), r#""u" true"#);
        check(request("DELETE", Some("x"), None), r#""u" true"#);
        check(request("CONNECT", None, Some("x")), r#""u" true"#);
        let mut deleted = request("UPDATE", Some(""), Some("x"));
        deleted["object"]["metadata"]["deletionTimestamp"] = "2026-11-24T00:00:00Z".into();
        check(deleted, r#""u" true"#);
        let mut status = request("UPDATE", Some(""), Some("x"));
        status["subResource"] = "status".into();
        check(status, r#""u" true"#);
    }

    #[test]
    fn long_lists_of_problems_are_cut() {
        let answer = answer(request("CREATE", None, Some(&"x".repeat(30))));
        assert!(answer.ends_with("Tool.19: wrong; and 10 more"), "{answer}");
    }

    #[test]
    fn other_documents_are_errors() {
        let check = |body: &str, expected: ReviewError| {
            assert_eq!(review(body.as_bytes(), |_, _| Vec::new()), Err(expected), "{body}");
        };
        check("", ReviewError::NotJson);
        check("{", ReviewError::NotJson);
        check("null", ReviewError::NotReview);
        check("{}", ReviewError::NotReview);
        check(r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#, ReviewError::NotReview);
        let old = r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "u"}}"#;
        check(old, ReviewError::NotReview);
    }
}
