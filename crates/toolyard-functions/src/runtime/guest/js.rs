//! JavaScript: QuickJS with the built-in objects of the language only, without any I/O.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Rest;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Runtime, Value};

use super::host_channel::HostChannel;
use super::js_tools::HostObject;
use super::{FETCH_DISABLED, GuestCall, invalid_json, missing_handler};
use crate::runtime::wire::{CallFailure, FetchRequest, FetchResponse, HandlerContext, LoadRequest};

/// Built-in objects of the language. None of them reaches out of the engine.
type JsIntrinsics = (
    (intrinsic::Date, intrinsic::Eval, intrinsic::RegExp, intrinsic::RegExpCompiler),
    (intrinsic::Json, intrinsic::Proxy, intrinsic::MapSet, intrinsic::TypedArrays),
    (intrinsic::Promise, intrinsic::WeakRef),
);

const ASYNCHRONOUS: &str = "the handler must be synchronous and return its answer instead of a Promise";

/// Maximum stack size of nested calls, in bytes. The stack of the process is eight times as large.
const STACK_BYTES: usize = 1 << 20;

pub(super) struct JsEngine {
    source: Vec<u8>,
    entry: String,
    handler: String,
    environment: Vec<(String, String)>,
    network: bool,
    tools: bool,
    memory_bytes: usize,
    output_bytes: usize,
    line: HostChannel,
}

pub(super) struct JsState {
    runtime: Runtime,
    context: Context,
    deadline: Rc<Cell<Option<Instant>>>,
}

impl super::ScriptEngine for JsEngine {
    type State = JsState;

    fn load(load: &LoadRequest, source: Vec<u8>, line: &HostChannel) -> Result<Self, String> {
        std::str::from_utf8(&source).map_err(|error| format!("{} is not UTF-8: {error}", load.entry))?;
        let engine = Self {
            source,
            entry: load.entry.clone(),
            handler: load.handler.clone(),
            environment: load.environment.clone(),
            network: load.network,
            tools: load.tools,
            memory_bytes: usize::try_from(load.memory_bytes).unwrap_or(usize::MAX) / 4 * 3,
            output_bytes: load.output_bytes,
            line: line.clone(),
        };
        let state = engine.prepare().map_err(|_| "out of memory".to_owned())?;
        state.context.with(|ctx| engine.check(&ctx))?;
        Ok(engine)
    }

    fn prepare(&self) -> Result<JsState, CallFailure> {
        let none = |_| CallFailure::OutOfMemory;
        let runtime = Runtime::new().map_err(none)?;
        runtime.set_memory_limit(self.memory_bytes);
        runtime.set_max_stack_size(STACK_BYTES);
        let deadline = Rc::new(Cell::new(None));
        let watched = deadline.clone();
        let is_late = move || watched.get().is_some_and(|deadline| Instant::now() > deadline);
        runtime.set_interrupt_handler(Some(Box::new(is_late)));
        let context = Context::custom::<JsIntrinsics>(&runtime).map_err(none)?;
        context.with(|ctx| self.install_globals(&ctx)).map_err(none)?;
        Ok(JsState { runtime, context, deadline })
    }

    fn answer(&self, state: &JsState, call: GuestCall) -> Result<Vec<u8>, CallFailure> {
        let deadline = call.deadline;
        state.deadline.set(Some(deadline));
        let result = state.context.with(|ctx| {
            self.run(&ctx, call).map_err(|stopped| {
                // Formatting an error may run code of the handler, and the deadline may have passed before.
                let failure = failure(&ctx, stopped);
                if Instant::now() > deadline { CallFailure::TimedOut } else { failure }
            })
        });
        match result {
            // There was no memory for the error.
            Err(CallFailure::Thrown { kind, .. }) if kind == "null" && self.is_full(&state.runtime) => {
                Err(CallFailure::OutOfMemory)
            }
            result => result,
        }
    }
}

/// Reason why there is no answer.
pub(super) enum JsError {
    Failure(CallFailure),
    Error(rquickjs::Error),
}

impl From<rquickjs::Error> for JsError {
    fn from(error: rquickjs::Error) -> Self {
        Self::Error(error)
    }
}

impl JsEngine {
    fn is_full(&self, runtime: &Runtime) -> bool {
        usize::try_from(runtime.memory_usage().malloc_size).is_ok_and(|used| used > self.memory_bytes / 2)
    }

    /// Runs the top-level code and returns the handler.
    fn load_handler<'js>(&self, ctx: &Ctx<'js>) -> Result<Function<'js>, JsError> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(self.entry.clone());
        ctx.eval_with_options::<(), _>(&*self.source, options)?;
        // The handler may be a member of the global object, or a constant beside it.
        let name = &self.handler;
        let handler: Value<'js> = ctx.eval(format!("typeof {name} === 'undefined' ? undefined : {name}"))?;
        handler.into_function().ok_or_else(|| JsError::Failure(missing_handler(name)))
    }

    /// Checks that the code has a handler that can be called.
    fn check(&self, ctx: &Ctx<'_>) -> Result<(), String> {
        match self.load_handler(ctx) {
            Ok(handler) if !self.tools && is_async(ctx, &handler) => Err(ASYNCHRONOUS.to_owned()),
            Ok(_) => Ok(()),
            Err(stopped) => Err(match failure(ctx, stopped) {
                CallFailure::Thrown { kind, message, details } => match details.lines().next() {
                    Some(place) => format!("{kind}: {message} {}", place.trim()),
                    None => format!("{kind}: {message}"),
                },
                CallFailure::NotLoaded { message } => message,
                _ => "it exceeds its memory limit".to_owned(),
            }),
        }
    }

    fn run(&self, ctx: &Ctx<'_>, call: GuestCall) -> Result<Vec<u8>, JsError> {
        let handler = self.load_handler(ctx)?;
        let event = ctx.json_parse(call.event)?;
        let context = context_object(ctx, &call.context)?;
        let answer: Value<'_> = match self.tools {
            false => handler.call((event, context))?,
            true => {
                let host = HostObject::new(ctx, &self.line)?;
                let answer = handler.call((event, context, host.object()))?;
                host.settle(ctx, answer, call.deadline)?
            }
        };
        if answer.is_promise() {
            return Err(JsError::Failure(CallFailure::NotLoaded { message: ASYNCHRONOUS.to_owned() }));
        }
        let kind = answer.type_name();
        let text =
            ctx.json_stringify(answer)?.ok_or_else(|| JsError::Failure(invalid_json(kind)))?.to_string()?;
        if text.len() > self.output_bytes {
            return Err(JsError::Failure(CallFailure::OutputTooLarge));
        }
        Ok(text.into_bytes())
    }

    /// Adds the globals of handlers.
    fn install_globals<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<()> {
        let globals = ctx.globals();
        let console = Object::new(ctx.clone())?;
        let line = self.line.clone();
        let print = Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
            let words: Vec<_> = values.iter().map(|value| format_value(&ctx, value)).collect();
            line.print_line(&words.join(" "));
        })?;
        for name in ["log", "info", "warn", "error", "debug"] {
            console.set(name, print.clone())?;
        }
        globals.set("console", console)?;
        let environment = Object::new(ctx.clone())?;
        for (name, value) in &self.environment {
            environment.set(&**name, &**value)?;
        }
        let process = Object::new(ctx.clone())?;
        process.set("env", environment)?;
        globals.set("process", process)?;
        globals.set("fetch", self.fetch(ctx)?)
    }

    fn fetch<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
        let (line, network) = (self.line.clone(), self.network);
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
            let thrown = |message: &str| rquickjs::Exception::throw_type(&ctx, message);
            if !network {
                return Err(thrown(FETCH_DISABLED));
            }
            let request = request(&ctx, &values)?;
            let response = line.fetch(request).map_err(|message| thrown(&format!("fetch: {message}")))?;
            response_object(&ctx, response)
        })
    }
}

fn failure(ctx: &Ctx<'_>, stopped: JsError) -> CallFailure {
    let error = match stopped {
        JsError::Failure(failure) => return failure,
        JsError::Error(error) => error,
    };
    match Err::<(), _>(error).catch(ctx) {
        Ok(()) | Err(CaughtError::Error(rquickjs::Error::Allocation)) => CallFailure::OutOfMemory,
        Err(CaughtError::Error(error)) => thrown("Error", error.to_string(), ""),
        Err(CaughtError::Value(value)) => thrown(value.type_name(), format_value(ctx, &value), ""),
        Err(CaughtError::Exception(exception)) => {
            let kind = exception.get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
            let message = exception.message().unwrap_or_default();
            if message == "out of memory" {
                return CallFailure::OutOfMemory;
            }
            thrown(&kind, message, &exception.stack().unwrap_or_default())
        }
    }
}

fn thrown(kind: &str, message: String, details: &str) -> CallFailure {
    CallFailure::Thrown { kind: kind.to_owned(), message, details: details.trim_end().to_owned() }
}

/// Formats a value for printing: strings unchanged, others as JSON if possible.
fn format_value<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(text) = value.as_string() {
        return text.to_string().unwrap_or_default();
    }
    let json = ctx.json_stringify(value.clone()).ok().flatten();
    // Clears an exception of the conversion.
    let _gone = ctx.catch();
    json.and_then(|json| json.to_string().ok()).unwrap_or_else(|| value.type_name().to_owned())
}

fn is_async<'js>(ctx: &Ctx<'js>, handler: &Function<'js>) -> bool {
    let tag = |ctx: &Ctx<'js>| -> rquickjs::Result<String> {
        let tag: Function<'js> = ctx.eval("(f) => Object.prototype.toString.call(f)")?;
        tag.call((handler.clone(),))
    };
    tag(ctx).is_ok_and(|tag| tag == "[object AsyncFunction]" || tag == "[object AsyncGeneratorFunction]")
}

/// Returns the second argument of a handler.
fn context_object<'js>(ctx: &Ctx<'js>, told: &HandlerContext) -> rquickjs::Result<Object<'js>> {
    let context = Object::new(ctx.clone())?;
    context.set("function_id", &*told.function_id)?;
    context.set("version", &*told.version)?;
    context.set("request_id", &*told.request_id)?;
    context.set("deadline", &*told.deadline)?;
    // Exact, because no deadline is a hundred thousand years away.
    context.set("remaining_ms", told.remaining_ms as f64)?;
    Ok(context)
}

/// Parses the arguments of `fetch(url, {method, headers, body})`.
fn request<'js>(ctx: &Ctx<'js>, values: &[Value<'js>]) -> rquickjs::Result<FetchRequest> {
    let url = values.first().and_then(Value::as_string).map(|url| url.to_string()).transpose()?;
    let url = url.ok_or_else(|| rquickjs::Exception::throw_type(ctx, "fetch needs a URL"))?;
    let options = values.get(1).and_then(Value::as_object);
    let text = |name: &str| -> rquickjs::Result<Option<String>> {
        options.map_or(Ok(None), |options| options.get(name))
    };
    let method = text("method")?.unwrap_or_else(|| "GET".to_owned());
    let body = text("body")?;
    let headers: Option<Object<'js>> = options.map_or(Ok(None), |options| options.get("headers"))?;
    let headers = headers.map(|headers| headers.props::<String, String>().collect()).transpose()?;
    Ok(FetchRequest { url, method, headers: headers.unwrap_or_default(), body })
}

fn response_object<'js>(ctx: &Ctx<'js>, response: FetchResponse) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("status", response.status)?;
    object.set("statusText", response.status_text)?;
    object.set("ok", (200..300).contains(&response.status))?;
    let headers = Object::new(ctx.clone())?;
    for (name, value) in response.headers {
        headers.set(name, value)?;
    }
    object.set("headers", headers)?;
    let body = Rc::<str>::from(response.body);
    object.set("body", &*body)?;
    let text = body.clone();
    object.set("text", Function::new(ctx.clone(), move || text.to_string())?)?;
    object.set("json", Function::new(ctx.clone(), move |ctx: Ctx<'js>| ctx.json_parse(&*body))?)?;
    Ok(object)
}
