//! JavaScript: QuickJS, with what the language itself has and no more. There is no I/O to be had.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Rest;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Runtime, Value};

use super::line::Line;
use super::{Call, NO_FETCH, no_handler, no_json};
use crate::runtime::wire::{Failure, FetchRequest, FetchResponse, Load, Told};

/// What there is of the language. Nothing of it reaches out of the engine.
type Parts = (
    (intrinsic::Date, intrinsic::Eval, intrinsic::RegExp, intrinsic::RegExpCompiler),
    (intrinsic::Json, intrinsic::Proxy, intrinsic::MapSet, intrinsic::TypedArrays),
    (intrinsic::Promise, intrinsic::WeakRef),
);

const ASYNCHRONOUS: &str =
    "the handler is asynchronous: it has to be synchronous, and to return its answer instead of a Promise";

/// How deep calls may nest, in bytes of the stack. That of the process is eight times as large.
const STACK_BYTES: usize = 1 << 20;

pub(super) struct Engine {
    source: Vec<u8>,
    entry: String,
    handler: String,
    environment: Vec<(String, String)>,
    network: bool,
    memory_bytes: usize,
    output_bytes: usize,
    line: Line,
}

pub(super) struct State {
    runtime: Runtime,
    context: Context,
    deadline: Rc<Cell<Option<Instant>>>,
}

impl super::Engine for Engine {
    type State = State;

    fn load(load: &Load, source: Vec<u8>, line: &Line) -> Result<Self, String> {
        std::str::from_utf8(&source).map_err(|error| format!("{} is not UTF-8: {error}", load.entry))?;
        let engine = Self {
            source,
            entry: load.entry.clone(),
            handler: load.handler.clone(),
            environment: load.environment.clone(),
            network: load.network,
            memory_bytes: usize::try_from(load.memory_bytes).unwrap_or(usize::MAX) / 4 * 3,
            output_bytes: load.output_bytes,
            line: line.clone(),
        };
        let state = engine.prepare().map_err(|_| "there is not enough memory".to_owned())?;
        state.context.with(|ctx| engine.check(&ctx))?;
        Ok(engine)
    }

    fn prepare(&self) -> Result<State, Failure> {
        let none = |_| Failure::OutOfMemory;
        let runtime = Runtime::new().map_err(none)?;
        runtime.set_memory_limit(self.memory_bytes);
        runtime.set_max_stack_size(STACK_BYTES);
        let deadline = Rc::new(Cell::new(None));
        let watched = deadline.clone();
        let is_late = move || watched.get().is_some_and(|deadline| Instant::now() > deadline);
        runtime.set_interrupt_handler(Some(Box::new(is_late)));
        let context = Context::custom::<Parts>(&runtime).map_err(none)?;
        context.with(|ctx| self.furnish(&ctx)).map_err(none)?;
        Ok(State { runtime, context, deadline })
    }

    fn answer(&self, state: &State, call: Call) -> Result<Vec<u8>, Failure> {
        let deadline = call.deadline;
        state.deadline.set(Some(deadline));
        let result = state.context.with(|ctx| {
            self.run(&ctx, call).map_err(|stopped| {
                // To tell of an error may run code of the handler's, and it may have been late before.
                let failure = failure(&ctx, stopped);
                if Instant::now() > deadline { Failure::TimedOut } else { failure }
            })
        });
        match result {
            // There was no memory for an error.
            Err(Failure::Thrown { kind, .. }) if kind == "null" && self.is_full(&state.runtime) => {
                Err(Failure::OutOfMemory)
            }
            result => result,
        }
    }
}

/// Why there is no answer.
enum Stopped {
    Failure(Failure),
    Error(rquickjs::Error),
}

impl From<rquickjs::Error> for Stopped {
    fn from(error: rquickjs::Error) -> Self {
        Self::Error(error)
    }
}

impl Engine {
    fn is_full(&self, runtime: &Runtime) -> bool {
        usize::try_from(runtime.memory_usage().malloc_size).is_ok_and(|used| used > self.memory_bytes / 2)
    }

    /// Runs what stands outside of functions, and finds the handler.
    fn read<'js>(&self, ctx: &Ctx<'js>) -> Result<Function<'js>, Stopped> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(self.entry.clone());
        ctx.eval_with_options::<(), _>(&*self.source, options)?;
        // It may be a member of the global object, or a constant beside it.
        let name = &self.handler;
        let found: Value<'js> = ctx.eval(format!("typeof {name} === 'undefined' ? undefined : {name}"))?;
        found.into_function().ok_or_else(|| Stopped::Failure(no_handler(name)))
    }

    /// Whether there is a handler that can be called, and what is wrong with the code otherwise.
    fn check(&self, ctx: &Ctx<'_>) -> Result<(), String> {
        match self.read(ctx) {
            Ok(handler) if is_async(ctx, &handler) => Err(ASYNCHRONOUS.to_owned()),
            Ok(_) => Ok(()),
            Err(stopped) => Err(match failure(ctx, stopped) {
                Failure::Thrown { kind, message, details } => match details.lines().next() {
                    Some(place) => format!("{kind}: {message} {}", place.trim()),
                    None => format!("{kind}: {message}"),
                },
                Failure::NotLoaded { message } => message,
                _ => "it takes more memory than it may have".to_owned(),
            }),
        }
    }

    fn run(&self, ctx: &Ctx<'_>, call: Call) -> Result<Vec<u8>, Stopped> {
        let handler = self.read(ctx)?;
        let event = ctx.json_parse(call.event)?;
        let answer: Value<'_> = handler.call((event, told(ctx, &call.context)?))?;
        if answer.is_promise() {
            return Err(Stopped::Failure(Failure::NotLoaded { message: ASYNCHRONOUS.to_owned() }));
        }
        let kind = answer.type_name();
        let text = ctx.json_stringify(answer)?.ok_or_else(|| Stopped::Failure(no_json(kind)))?.to_string()?;
        if text.len() > self.output_bytes {
            return Err(Stopped::Failure(Failure::OutputTooLarge));
        }
        Ok(text.into_bytes())
    }

    /// What a handler finds beside the language.
    fn furnish<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<()> {
        let globals = ctx.globals();
        let console = Object::new(ctx.clone())?;
        let line = self.line.clone();
        let print = Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
            let words: Vec<_> = values.iter().map(|value| shown(&ctx, value)).collect();
            line.log(&words.join(" "));
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
                return Err(thrown(NO_FETCH));
            }
            let request = request(&ctx, &values)?;
            let response = line.fetch(request).map_err(|message| thrown(&format!("fetch: {message}")))?;
            response_object(&ctx, response)
        })
    }
}

fn failure(ctx: &Ctx<'_>, stopped: Stopped) -> Failure {
    let error = match stopped {
        Stopped::Failure(failure) => return failure,
        Stopped::Error(error) => error,
    };
    match Err::<(), _>(error).catch(ctx) {
        Ok(()) | Err(CaughtError::Error(rquickjs::Error::Allocation)) => Failure::OutOfMemory,
        Err(CaughtError::Error(error)) => thrown("Error", error.to_string(), ""),
        Err(CaughtError::Value(value)) => thrown(value.type_name(), shown(ctx, &value), ""),
        Err(CaughtError::Exception(exception)) => {
            let kind = exception.get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
            let message = exception.message().unwrap_or_default();
            if message == "out of memory" {
                return Failure::OutOfMemory;
            }
            thrown(&kind, message, &exception.stack().unwrap_or_default())
        }
    }
}

fn thrown(kind: &str, message: String, details: &str) -> Failure {
    Failure::Thrown { kind: kind.to_owned(), message, details: details.trim_end().to_owned() }
}

/// A value as it is printed: texts as they are, others as JSON where they can be.
fn shown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(text) = value.as_string() {
        return text.to_string().unwrap_or_default();
    }
    let json = ctx.json_stringify(value.clone()).ok().flatten();
    // What it throws is not what was to be printed.
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

/// The second argument of a handler.
fn told<'js>(ctx: &Ctx<'js>, told: &Told) -> rquickjs::Result<Object<'js>> {
    let context = Object::new(ctx.clone())?;
    context.set("function_id", &*told.function_id)?;
    context.set("version", &*told.version)?;
    context.set("request_id", &*told.request_id)?;
    context.set("deadline", &*told.deadline)?;
    // Exact: no deadline is a hundred thousand years away.
    context.set("remaining_ms", told.remaining_ms as f64)?;
    Ok(context)
}

/// What `fetch(url, {method, headers, body})` asks for.
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
