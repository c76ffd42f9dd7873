//! Validates arguments against the published schema.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{CallResult, Layer, NextLayer, in_time};
use crate::call::{Call, CallTarget};
use crate::error::{ErrorCode, ToolError};
use crate::json::{self, DEFAULT_DEPTH, Json};
use crate::long_work::{BackgroundSpawner, LongWork};
use crate::schema::ValidationBudget;
use crate::tool::Tool;

/// Refuses arguments that do not match the schema. The text of the arguments is passed on unchanged; a typed value
/// exists for validation only.
///
/// Most validations take microseconds and run at once. A longer one starts again in the background, and ends with its
/// call.
pub struct ArgumentValidation {
    long_work: Option<LongWork>,
    max_depth: usize,
}

impl ArgumentValidation {
    /// Creates the layer with a spawner for long validations. Without one they run at once as well.
    #[must_use]
    pub fn new(background: Option<BackgroundSpawner>) -> Self {
        Self::by(background.map(LongWork::new))
    }

    /// Creates the layer with permits that long validations share with other long work.
    #[must_use]
    pub const fn by(long_work: Option<LongWork>) -> Self {
        Self { long_work, max_depth: DEFAULT_DEPTH }
    }

    /// Sets the maximum nesting of arguments, of tools and of everything else that is called.
    #[must_use]
    pub fn nested_at_most(self, max_depth: usize) -> Self {
        Self { max_depth, ..self }
    }

    async fn check(&self, tool: &Arc<Tool>, call: &Call) -> Result<(), ToolError> {
        let max_depth = self.max_depth;
        let budget = |arguments: Option<&Json>| {
            ValidationBudget::of(arguments.map_or(0, |arguments| arguments.as_bytes().len()))
        };
        let Some(long_work) = &self.long_work else {
            return tool.check_within(call.arguments(), max_depth, &budget(call.arguments()));
        };
        let (tool, arguments) = (tool.clone(), call.arguments().cloned());
        let check = long_work.run(call, move |stop| {
            let budget = budget(arguments.as_ref()).until(stop.flag());
            tool.check_within(arguments.as_ref(), max_depth, &budget)
        });
        let broken = |_| ToolError::new(ErrorCode::ExecutionFailed, "The arguments could not be checked");
        check.await.map_err(broken)?
    }
}

impl Layer for ArgumentValidation {
    fn name(&self) -> &'static str {
        "argument_validation"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        // Other targets publish no schema, and the arguments of a task were validated when it began.
        let (CallTarget::Tool(_), Some(tool)) = (&call.target, &next.entry.tool) else {
            return match call.arguments().is_some_and(|arguments| arguments.is_deeper_than(self.max_depth)) {
                true => Box::pin(std::future::ready(Err(too_deep(self.max_depth)))),
                false => next.run(call),
            };
        };
        match tool.check_briefly(call.arguments(), self.max_depth) {
            Some(Ok(())) => next.run(call),
            Some(Err(error)) => Box::pin(std::future::ready(Err(error))),
            None => Box::pin(async move {
                let check = self.check(tool, &call);
                match call.deadline {
                    Some(deadline) => in_time(deadline, &*call.client, check).await??,
                    None => check.await?,
                }
                next.run(call).await
            }),
        }
    }
}

fn too_deep(max_depth: usize) -> ToolError {
    let problem = format!("Invalid arguments: {}", json::too_deep(max_depth));
    ToolError::new(ErrorCode::InvalidArguments, problem)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::sync::watch;

    use super::*;
    use crate::gateway::Gateway;
    use crate::long_work::AT_ONCE;
    use crate::outcome::{CallOutput, Outcome};
    use crate::testing::{FakeBackend, handler, registry_of};

    type Jobs = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

    /// Returns a gateway that keeps background jobs instead of running them.
    fn gateway(jobs: &Jobs) -> Gateway {
        let tool = r#"{"name":"t","inputSchema":{"properties":{"a":{"items":{"type":"integer"}}}}}"#;
        let done = |_| async { Ok(Outcome::Done(CallOutput::text("done"))) }.boxed();
        let registry = registry_of(&[handler("h", FakeBackend::new(&[tool], Box::new(done)))]);
        let jobs = jobs.clone();
        let background: BackgroundSpawner =
            Arc::new(move |job| jobs.lock().unwrap_or_else(PoisonError::into_inner).push(job));
        Gateway::new(watch::channel(registry).1, vec![Box::new(ArgumentValidation::new(Some(background)))])
    }

    fn call(items: usize, last: &str) -> Call {
        let items = "1,".repeat(items);
        Call::tool("t", Json::parse(format!(r#"{{"a":[{items}{last}]}}"#)).unwrap())
    }

    fn take(jobs: &Jobs) -> Vec<Box<dyn FnOnce() + Send>> {
        std::mem::take(&mut *jobs.lock().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn long_checks_run_in_the_background() {
        let jobs = Jobs::default();
        let gateway = gateway(&jobs);
        for (items, last, expected, in_background) in [
            (10, "1", true, false),
            (10, "null", false, false),
            (10_000, "1", true, true),
            (10_000, "null", false, true),
            (100_000, "1", true, true),
        ] {
            let mut answer = Box::pin(gateway.invoke(call(items, last)));
            assert_eq!((&mut answer).now_or_never().is_none(), in_background, "{items} {last}");
            let jobs = take(&jobs);
            assert_eq!(jobs.len(), usize::from(in_background), "{items} {last}");
            jobs.into_iter().for_each(|job| job());
            if in_background {
                assert_eq!(answer.await.is_ok(), expected, "{items} {last}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_check_ends_with_its_call() {
        let jobs = Jobs::default();
        let gateway = gateway(&jobs);
        let late = Call {
            deadline: Some(tokio::time::Instant::now() + Duration::from_secs(1)),
            ..call(10_000, "1")
        };
        let error = gateway.invoke(late).await.err().map(|error| error.code());
        assert_eq!(error, Some(ErrorCode::Timeout));
        let [job] = take(&jobs).try_into().unwrap_or_else(|_| panic!("one job"));
        job();

        let mut calls: Vec<_> = (0..3).map(|_| Box::pin(gateway.invoke(call(10_000, "1")))).collect();
        for call in &mut calls {
            assert!(call.now_or_never().is_none());
        }
        let running = take(&jobs);
        assert_eq!(running.len(), AT_ONCE, "the third one waits");
        drop(calls.drain(..2));
        assert!((&mut calls[0]).now_or_never().is_none());
        assert_eq!(take(&jobs).len(), 0, "while the others have their threads");
        running.into_iter().for_each(|job| job());
        assert!((&mut calls[0]).now_or_never().is_none());
        let [job] = take(&jobs).try_into().unwrap_or_else(|_| panic!("the third one"));
        job();
        assert!(calls.remove(0).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_many_checks_does_not_keep_others_waiting() {
        let jobs = Jobs::default();
        let gateway = gateway(&jobs);
        let by = |principal: &str| {
            let caller = crate::call::Caller { principal: Some(principal.into()), ..Default::default() };
            Call { caller, ..call(10_000, "1") }
        };
        let mut many: Vec<_> = (0..50).map(|_| Box::pin(gateway.invoke(by("greedy")))).collect();
        for call in &mut many {
            assert!(call.now_or_never().is_none());
        }
        let mut other = Box::pin(gateway.invoke(by("other")));
        assert!((&mut other).now_or_never().is_none());
        let first = take(&jobs).into_iter().next().unwrap();
        first();
        // The free permit goes to the caller without one, although fifty others came before.
        assert!((&mut other).now_or_never().is_none());
        let next = take(&jobs);
        assert_eq!(next.len(), 1);
        next.into_iter().for_each(|job| job());
        assert!(other.await.is_ok());
    }

    #[tokio::test]
    async fn dropped_background_job_fails_the_call() {
        let jobs = Jobs::default();
        let gateway = gateway(&jobs);
        let mut answer = Box::pin(gateway.invoke(call(10_000, "1")));
        assert!((&mut answer).now_or_never().is_none());
        drop(take(&jobs));
        assert_eq!(answer.await.err().map(|error| error.code()), Some(ErrorCode::ExecutionFailed));
    }
}
