//! Tools of the host in JavaScript: the third argument of a handler, and the loop that settles its promise.
//!
//! | member | |
//! | --- | --- |
//! | `call(id, tool, arguments)` | requests the call of a tool; the arguments are a JSON text |
//! | `sleep(id, millis)` | requests a pause |
//! | `progress(done, total, message)` | reports progress |
//! | `evaluate(code, name)` | evaluates a text as the file `name` |
//! | `deliver` | function of the handler that receives `(id, isError, result)` of each request |

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use rquickjs::context::EvalOptions;
use rquickjs::function::Opt;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Exception, Function, Object, Promise, Result, Value};

use super::STALLED;
use super::host_channel::HostChannel;
use super::js::JsError;
use crate::runtime::wire::{CallFailure, ProgressReport, ToolRequest};

/// The third argument of a handler.
pub(super) struct HostObject<'js> {
    object: Object<'js>,
    line: HostChannel,
    /// Number of requests without a result.
    open: Rc<Cell<usize>>,
}

impl<'js> HostObject<'js> {
    pub(super) fn new(ctx: &Ctx<'js>, line: &HostChannel) -> Result<Self> {
        let open = Rc::new(Cell::new(0));
        let object = Object::new(ctx.clone())?;
        let (channel, requests) = (line.clone(), open.clone());
        let call = move |ctx: Ctx<'js>, id: f64, tool: String, arguments: String| {
            request(&ctx, &channel, &requests, id, ToolRequest::Call { tool, arguments })
        };
        object.set("call", Function::new(ctx.clone(), call)?)?;
        let (channel, requests) = (line.clone(), open.clone());
        let sleep = move |ctx: Ctx<'js>, id: f64, millis: f64| {
            request(&ctx, &channel, &requests, id, ToolRequest::Sleep { millis: whole(millis) })
        };
        object.set("sleep", Function::new(ctx.clone(), sleep)?)?;
        let channel = line.clone();
        let progress =
            move |ctx: Ctx<'js>, done: f64, total: Opt<Option<f64>>, message: Opt<Option<String>>| {
                let report = ProgressReport { done, total: total.0.flatten(), message: message.0.flatten() };
                channel.report_progress(report).map_err(|error| Exception::throw_message(&ctx, &error))
            };
        object.set("progress", Function::new(ctx.clone(), progress)?)?;
        let evaluate = |ctx: Ctx<'js>, code: String, name: String| {
            let mut options = EvalOptions::default();
            options.strict = false;
            options.filename = Some(name);
            ctx.eval_with_options::<Value<'js>, _>(code, options)
        };
        object.set("evaluate", Function::new(ctx.clone(), evaluate)?)?;
        Ok(Self { object, line: line.clone(), open })
    }

    pub(super) fn object(&self) -> Object<'js> {
        self.object.clone()
    }

    /// Runs the handler until its promise is settled, and returns the value.
    pub(super) fn settle(
        &self,
        ctx: &Ctx<'js>,
        answer: Value<'js>,
        deadline: Instant,
    ) -> std::result::Result<Value<'js>, JsError> {
        let Some(promise) = answer.clone().into_promise() else { return Ok(answer) };
        let deliver: Function<'js> = self.object.get("deliver")?;
        loop {
            run_jobs(ctx, deadline)?;
            if let Some(settled) = settled(&promise) {
                return Ok(settled?);
            }
            if self.open.get() == 0 {
                return Err(JsError::Failure(CallFailure::Thrown {
                    kind: "Error".to_owned(),
                    message: STALLED.to_owned(),
                    details: String::new(),
                }));
            }
            let result = self.line.tool_result();
            let (header, body) = result.map_err(|error| Exception::throw_message(ctx, &error))?;
            self.open.set(self.open.get() - 1);
            // Exact, because the handler counts its requests.
            deliver.call::<_, ()>((header.id as f64, header.is_error, ctx.json_parse(body)?))?;
        }
    }
}

/// Runs what is ready to run.
fn run_jobs(ctx: &Ctx<'_>, deadline: Instant) -> std::result::Result<(), JsError> {
    loop {
        if Instant::now() > deadline {
            return Err(JsError::Failure(CallFailure::TimedOut));
        }
        if !ctx.execute_pending_job() {
            return Ok(());
        }
    }
}

/// Returns the value of a promise, or its error; `None` while it is pending.
fn settled<'js>(promise: &Promise<'js>) -> Option<Result<Value<'js>>> {
    match promise.state() {
        PromiseState::Pending => None,
        PromiseState::Resolved | PromiseState::Rejected => promise.result(),
    }
}

fn request(
    ctx: &Ctx<'_>,
    line: &HostChannel,
    open: &Cell<usize>,
    id: f64,
    request: ToolRequest,
) -> Result<()> {
    let sent = line.request_tool(whole(id), request);
    sent.map_err(|error| Exception::throw_message(ctx, &error))?;
    open.set(open.get() + 1);
    Ok(())
}

/// Returns a number without its fraction; zero if it is negative or NaN.
fn whole(number: f64) -> u64 {
    number as u64
}
