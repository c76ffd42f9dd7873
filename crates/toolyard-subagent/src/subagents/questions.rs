//! Requests to the client of a task, which polls the task and brings the answers.

use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use toolyard_core::{ClientSession, InputRequest, InputRequestError, Json, Object};

/// Method of requests for a message of the client's model, the only ones here.
const METHOD: &str = "sampling/createMessage";

/// The open requests of a task, by keys that are never reused. A subagent has one at a time.
#[derive(Debug, Default)]
pub(crate) struct TaskQuestions(Mutex<OpenRequests>);

#[derive(Debug, Default)]
struct OpenRequests {
    issued: u64,
    open: Vec<(String, Object, oneshot::Sender<Json>)>,
}

impl TaskQuestions {
    /// Returns the open requests as the client gets them; `None` if there are none.
    pub(super) fn requests(&self) -> Option<Object> {
        let requests = self.lock();
        let request = |params: &Object| {
            Object::new().with("method", Json::string(METHOD)).with("params", params.to_json()).to_json()
        };
        let open = requests.open.iter();
        let all = open.fold(Object::new(), |all, (key, params, _)| all.with(key, request(params)));
        (!all.is_empty()).then_some(all)
    }

    /// Passes answers of the client on. Unknown keys are ignored.
    pub(super) fn answer(&self, answers: &Object) {
        let mut requests = self.lock();
        for (key, params, answer) in std::mem::take(&mut requests.open) {
            match answers.get(&key) {
                // A subagent that has ended receives nothing.
                Some(given) => drop(answer.send(given.detach())),
                None => requests.open.push((key, params, answer)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSession for TaskQuestions {
    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        let (sender, answer) = oneshot::channel();
        let key = {
            let mut requests = self.lock();
            requests.issued += 1;
            let key = format!("sampling-{}", requests.issued);
            requests.open.push((key.clone(), ask.params, sender));
            key
        };
        let open = OpenRequest { questions: self, key };
        async move {
            let answer = answer.await.map_err(|_| InputRequestError::Gone);
            drop(open);
            answer
        }
        .boxed()
    }

    /// A client that no longer polls its task is not noticed: the time of the subagent ends.
    fn ended(&self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }
}

/// Withdraws a request when it is dropped.
struct OpenRequest<'a> {
    questions: &'a TaskQuestions,
    key: String,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.questions.lock().open.retain(|(key, ..)| *key != self.key);
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::InputRequestKind;

    use super::*;

    fn question(text: &str) -> InputRequest {
        let params = Object::new().with("messages", Json::string(text));
        InputRequest { kind: InputRequestKind::Sample, params }
    }

    fn shown(questions: &TaskQuestions) -> String {
        questions.requests().map(|requests| requests.to_json().as_text().to_owned()).unwrap_or_default()
    }

    #[test]
    fn client_answers_by_key() {
        let questions = TaskQuestions::default();
        let mut asking = questions.ask(question("a"));
        assert_eq!(asking.as_mut().now_or_never(), None);
        let expected = r#"{"sampling-1":{"method":"sampling/createMessage","params":{"messages":"a"}}}"#;
        assert_eq!(shown(&questions), expected);
        questions.answer(&Object::new().with("sampling-2", Json::null()));
        assert_eq!(shown(&questions), expected);
        questions.answer(&Object::new().with("sampling-1", Json::string("b")));
        assert_eq!((asking.now_or_never(), &*shown(&questions)), (Some(Ok(Json::string("b"))), ""));
        // A later request has another key, so that a late answer does not fit.
        let _asking = questions.ask(question("c"));
        assert!(shown(&questions).starts_with(r#"{"sampling-2":"#));
    }

    #[test]
    fn dropped_request_is_withdrawn() {
        let questions = TaskQuestions::default();
        drop(questions.ask(question("a")));
        assert_eq!(shown(&questions), "");
    }
}
