//! Spans of calls: one for the gateway as a server, and one for the upstream request.

use std::sync::Arc;

use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, Status as SpanStatus, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use toolyard_core::layers::{CallEnding, CallObserver, ObservedCall};
use toolyard_core::secrets::hide_sealed_ids;
use toolyard_core::{Call, CallTarget, ErrorCode, RegistryEntry, ToolError};
use toolyard_mcp::wire::{meta, target_method};

use super::context::TraceCarrier;
use super::labels::CallStatus;
use super::{SCOPE, names};

/// Operation name of a tool call by the semantic conventions.
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

/// Name of the tool whose scripts arrive on the message bus.
pub(super) const SCRIPT_TOOL: &str = "execute_python_script";

/// Creates the spans of calls. Without a collector it creates none, and only extracts the context of the client, so
/// that it is forwarded to upstreams.
pub(super) struct CallTraces {
    tracer: Option<SdkTracer>,
    carrier: TraceCarrier,
}

/// Creates the spans of upstream requests.
pub(super) struct UpstreamTraces(pub(super) Arc<CallTraces>);

impl CallTraces {
    pub(super) fn new(tracers: Option<SdkTracerProvider>) -> Self {
        Self { tracer: tracers.map(|tracers| tracers.tracer(SCOPE)), carrier: TraceCarrier::default() }
    }

    /// Starts the span of a script that arrived on the message bus, if traces are exported.
    pub(super) fn script_span(&self, parent: Option<&str>) -> Option<Span> {
        let tracer = self.tracer.as_ref()?;
        let parent = parent.and_then(|parent| self.carrier.parent(parent));
        let tool = SCRIPT_TOOL;
        let attributes =
            [KeyValue::new(names::GEN_AI_TOOL, tool), KeyValue::new(names::GEN_AI_OPERATION, EXECUTE_TOOL)];
        let builder = tracer.span_builder(format!("script.invoke {tool}")).with_kind(SpanKind::Consumer);
        let builder = builder.with_attributes(attributes);
        Some(builder.start_with_context(tracer, &parent.unwrap_or_default()))
    }

    /// Starts a span and injects it into the call.
    fn span(
        &self,
        tracer: &SdkTracer,
        kind: SpanKind,
        parent: Option<Context>,
        call: &mut Call,
        entry: &RegistryEntry,
    ) -> Span {
        let name = if kind == SpanKind::Client { &entry.own } else { &entry.name };
        let builder = tracer.span_builder(target_method(&call.target)).with_kind(kind);
        let mut span = builder.start_with_context(tracer, &parent.unwrap_or_default());
        // Attributes are set only if the span is recorded.
        if span.is_recording() {
            span.update_name(span_name(&call.target, name));
            span.set_attributes(attributes(call, entry, name));
        }
        self.carrier.inject(span.span_context(), call);
        span
    }
}

impl CallObserver for CallTraces {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        let parent = self.carrier.extract(call);
        let Some(tracer) = &self.tracer else {
            return Some(Box::new(FollowedTrace(parent?.span().span_context().clone())));
        };
        let mut span = self.span(tracer, SpanKind::Server, parent, call, entry);
        if span.is_recording() {
            span.set_attributes(client_attributes(call));
        }
        let context = span.span_context().clone();
        Some(match span.is_recording() {
            true => Box::new(TracedCall { span, context: Some(context) }),
            false => Box::new(FollowedTrace(context)),
        })
    }
}

impl CallObserver for UpstreamTraces {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        let tracer = self.0.tracer.as_ref()?;
        let parent = self.0.carrier.extract_meta(call);
        // A trace that is not sampled has no spans, and the call already carries its context.
        if parent.as_ref().is_some_and(|parent| !parent.span().span_context().is_sampled()) {
            return None;
        }
        let span = self.0.span(tracer, SpanKind::Client, parent, call, entry);
        // Log lines already name the trace.
        Some(Box::new(TracedCall { span, context: None }))
    }
}

/// A call in a trace without a span of the gateway.
struct FollowedTrace(SpanContext);

impl ObservedCall for FollowedTrace {
    fn scope(&self) -> tracing::Span {
        scope(Some(&self.0))
    }

    fn end(self: Box<Self>, _ended: CallEnding<'_>) {}
}

/// A call with a span of its own.
struct TracedCall {
    span: Span,
    /// Context of the span. `None` for an upstream request.
    context: Option<SpanContext>,
}

/// Returns the span that names the trace in log lines.
fn scope(context: Option<&SpanContext>) -> tracing::Span {
    match context {
        // The most severe level, so that no filter removes it.
        Some(context) => tracing::error_span!("call", trace_id = %context.trace_id()),
        None => tracing::Span::none(),
    }
}

impl ObservedCall for TracedCall {
    fn scope(&self) -> tracing::Span {
        scope(self.context.as_ref())
    }

    fn end(self: Box<Self>, ended: CallEnding<'_>) {
        let Self { mut span, context } = *self;
        if let Some(error) = CallStatus::of(ended.verdict()).error_type() {
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

/// Returns the JSON-RPC error code: that of the upstream, which is forwarded, else the gateway's own if this is not an
/// upstream request.
fn rpc_status(error: &ToolError, is_upstream: bool) -> Option<String> {
    let peer_code =
        error.peer().and_then(|error| Some(error.to_object().ok()?.get("code")?.as_text().to_owned()));
    // Invalid arguments are reported in a result.
    let is_gateway_error = !is_upstream && error.code() != ErrorCode::InvalidArguments;
    peer_code.or_else(|| is_gateway_error.then(|| error.code().row().json_rpc.to_string()))
}

/// Returns a span name of low cardinality, as the conventions require. URIs are left out.
fn span_name(target: &CallTarget, name: &str) -> String {
    let method = target_method(target);
    match target {
        CallTarget::Tool(_) | CallTarget::Prompt(_) | CallTarget::Function(_) => format!("{method} {name}"),
        CallTarget::Resource(_) | CallTarget::Completion(_) | CallTarget::Task(_) => method.to_owned(),
    }
}

fn attributes(call: &Call, entry: &RegistryEntry, name: &Arc<str>) -> Vec<KeyValue> {
    let mut attributes = Vec::with_capacity(8);
    attributes.push(KeyValue::new(names::METHOD, target_method(&call.target)));
    attributes.push(KeyValue::new(names::TOOLYARD_HANDLER, entry.handler.name.clone()));
    match &call.target {
        CallTarget::Tool(_) => {
            attributes.push(KeyValue::new(names::GEN_AI_TOOL, name.clone()));
            attributes.push(KeyValue::new(names::GEN_AI_OPERATION, EXECUTE_TOOL));
        }
        CallTarget::Prompt(_) => attributes.push(KeyValue::new(names::GEN_AI_PROMPT, name.clone())),
        CallTarget::Resource(uri) => {
            attributes.push(KeyValue::new(names::RESOURCE, hide_sealed_ids(uri).into_owned()));
        }
        CallTarget::Function(name) => attributes.push(KeyValue::new(names::FUNCTION, name.clone())),
        CallTarget::Completion(_) | CallTarget::Task(_) => {}
    }
    attributes
}

/// Returns the attributes of the client.
fn client_attributes(call: &Call) -> impl Iterator<Item = KeyValue> {
    let session = call.caller.session.clone().map(|session| KeyValue::new(names::SESSION, session));
    let version = call.meta.get_str(meta::PROTOCOL_VERSION);
    let version = version.map(|version| KeyValue::new(names::PROTOCOL_VERSION, version.into_owned()));
    let transport = KeyValue::new(names::TRANSPORT, if call.origin.is_some() { "tcp" } else { "pipe" });
    [session, version, Some(transport)].into_iter().flatten()
}
