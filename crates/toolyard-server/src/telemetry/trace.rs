//! Spans of calls: one of the gateway as a server, and one of its way to the owner of what is called.

use std::sync::Arc;

use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, Status as SpanStatus, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use toolyard_core::layers::{Ended, Observation, Observer};
use toolyard_core::{Call, Code, Entry, Target, ToolError};
use toolyard_mcp::wire::{meta, method_for};

use super::context::Carrier;
use super::labels::Status;
use super::{SCOPE, names};

/// What the conventions call an operation that runs a tool.
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

/// Makes the spans of calls. Where there is no collector it makes none, and only takes in the context that a client sends, so
/// that it goes on to servers.
pub(super) struct Traces {
    tracer: Option<SdkTracer>,
    carrier: Carrier,
}

/// The same, as far as the way to the owners of what is called is concerned.
pub(super) struct Legs(pub(super) Arc<Traces>);

impl Traces {
    pub(super) fn new(tracers: Option<SdkTracerProvider>) -> Self {
        Self { tracer: tracers.map(|tracers| tracers.tracer(SCOPE)), carrier: Carrier::default() }
    }

    /// Begins a span, and has what the call goes on to belong to it.
    fn span(
        &self,
        tracer: &SdkTracer,
        kind: SpanKind,
        parent: Option<Context>,
        call: &mut Call,
        entry: &Entry,
    ) -> Span {
        let name = if kind == SpanKind::Client { &entry.own } else { &entry.name };
        let builder = tracer.span_builder(method_for(&call.target)).with_kind(kind);
        let mut span = builder.start_with_context(tracer, &parent.unwrap_or_default());
        // Only now is it known whether anybody will see what it says.
        if span.is_recording() {
            span.update_name(span_name(&call.target, name));
            span.set_attributes(attributes(call, entry, name));
        }
        self.carrier.write(span.span_context(), call);
        span
    }
}

impl Observer for Traces {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        let parent = self.carrier.take_in(call);
        let Some(tracer) = &self.tracer else {
            return Box::new(Followed(parent.map(|parent| parent.span().span_context().clone())));
        };
        let mut span = self.span(tracer, SpanKind::Server, parent, call, entry);
        if span.is_recording() {
            span.set_attributes(of_client(call));
        }
        let context = span.span_context().clone();
        match span.is_recording() {
            true => Box::new(Traced { span, context: Some(context) }),
            false => Box::new(Followed(Some(context))),
        }
    }
}

impl Observer for Legs {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        // Lines of the log name the trace already.
        const NOTHING: Followed = Followed(None);
        let Some(tracer) = &self.0.tracer else { return Box::new(NOTHING) };
        let parent = self.0.carrier.read(call);
        // Of a trace that is not kept nothing is, and the call says so already.
        if parent.as_ref().is_some_and(|parent| !parent.span().span_context().is_sampled()) {
            return Box::new(NOTHING);
        }
        Box::new(Traced { span: self.0.span(tracer, SpanKind::Client, parent, call, entry), context: None })
    }
}

/// A call in a trace that nothing is said of here.
struct Followed(Option<SpanContext>);

impl Observation for Followed {
    fn scope(&self) -> tracing::Span {
        scope(self.0.as_ref())
    }

    fn end(self: Box<Self>, _ended: Ended<'_>) {}
}

/// A call with a span of its own.
struct Traced {
    span: Span,
    /// Of the span; `None` where it is the way to the owner only.
    context: Option<SpanContext>,
}

/// The trace is named in the lines of the log.
fn scope(context: Option<&SpanContext>) -> tracing::Span {
    match context {
        // The most urgent level, so that no filter leaves it out.
        Some(context) => tracing::error_span!("call", trace_id = %context.trace_id()),
        None => tracing::Span::none(),
    }
}

impl Observation for Traced {
    fn scope(&self) -> tracing::Span {
        scope(self.context.as_ref())
    }

    fn end(self: Box<Self>, ended: Ended<'_>) {
        let Self { mut span, context } = *self;
        if let Some(error) = Status::of(ended.verdict()).error_type() {
            span.set_attribute(error);
            let message = ended.answer.and_then(|answer| answer.as_ref().err());
            let outline = message.map_or_else(String::new, |error| error.outline().to_string());
            span.set_status(SpanStatus::error(outline));
            let code = message.and_then(|error| rpc_status(error, context.is_none()));
            span.set_attributes(code.map(|code| KeyValue::new(names::RPC_STATUS, code)));
        }
        span.end();
    }
}

/// The code of the JSON-RPC error that there is: a server's own, which goes on as it came, else the yard's, which a server has
/// not sent.
fn rpc_status(error: &ToolError, is_leg: bool) -> Option<String> {
    let of_peer =
        error.peer().and_then(|error| Some(error.to_object().ok()?.get("code")?.as_text().to_owned()));
    // What does not fit is told in a result.
    let is_ours = !is_leg && error.code() != Code::InvalidArguments;
    of_peer.or_else(|| is_ours.then(|| error.code().row().json_rpc.to_string()))
}

/// The conventions want names of which there are few: URIs are none.
fn span_name(target: &Target, name: &str) -> String {
    let method = method_for(target);
    match target {
        Target::Tool(_) | Target::Prompt(_) | Target::Function(_) => format!("{method} {name}"),
        Target::Resource(_) | Target::Completion(_) | Target::Task(_) => method.to_owned(),
    }
}

fn attributes(call: &Call, entry: &Entry, name: &Arc<str>) -> Vec<KeyValue> {
    let mut attributes = Vec::with_capacity(8);
    attributes.push(KeyValue::new(names::METHOD, method_for(&call.target)));
    attributes.push(KeyValue::new(names::TOOLYARD_HANDLER, entry.handler.name.clone()));
    match &call.target {
        Target::Tool(_) => {
            attributes.push(KeyValue::new(names::GEN_AI_TOOL, name.clone()));
            attributes.push(KeyValue::new(names::GEN_AI_OPERATION, EXECUTE_TOOL));
        }
        Target::Prompt(_) => attributes.push(KeyValue::new(names::GEN_AI_PROMPT, name.clone())),
        Target::Resource(uri) => attributes.push(KeyValue::new(names::RESOURCE, uri.clone())),
        Target::Function(name) => attributes.push(KeyValue::new(names::FUNCTION, name.clone())),
        Target::Completion(_) | Target::Task(_) => {}
    }
    attributes
}

/// What is known of the client.
fn of_client(call: &Call) -> impl Iterator<Item = KeyValue> {
    let session = call.caller.session.clone().map(|session| KeyValue::new(names::SESSION, session));
    let version = call.meta.get_str(meta::PROTOCOL_VERSION);
    let version = version.map(|version| KeyValue::new(names::PROTOCOL_VERSION, version.into_owned()));
    let transport = KeyValue::new(names::TRANSPORT, if call.origin.is_some() { "tcp" } else { "pipe" });
    [session, version, Some(transport)].into_iter().flatten()
}
