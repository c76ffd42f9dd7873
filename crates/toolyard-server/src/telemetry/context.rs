//! The trace context of a call (W3C Trace Context). In a [`Call`] it is in `_meta`, as in MCP (SEP-414).

use http::HeaderName;
use http::request::Parts;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use toolyard_core::{Call, Json};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

const PARENT_HEADER: HeaderName = HeaderName::from_static(PARENT);
const STATE_HEADER: HeaderName = HeaderName::from_static(STATE);
const BAGGAGE_HEADER: HeaderName = HeaderName::from_static(BAGGAGE);

/// Extracts and injects the trace context of calls.
#[derive(Debug, Default)]
pub(super) struct TraceCarrier(TraceContextPropagator);

impl TraceCarrier {
    /// Extracts the context of a call: from its parameters, else from the headers of its HTTP request, which it copies
    /// into the parameters. An invalid context is forwarded unchanged.
    pub(super) fn extract(&self, call: &mut Call) -> Option<Context> {
        let head = call.origin.as_ref().and_then(|origin| origin.downcast_ref::<Parts>());
        let header = |name| head?.headers.get(name)?.to_str().ok().map(str::to_owned);
        let (baggage, parent) = (header(BAGGAGE_HEADER), header(PARENT_HEADER));
        let state = parent.as_ref().and_then(|_| header(STATE_HEADER));
        if let Some(baggage) = baggage.filter(|_| call.meta.get(BAGGAGE).is_none()) {
            call.meta.set(BAGGAGE, Json::string(&baggage));
        }
        if call.meta.get(PARENT).is_some() {
            return self.extract_meta(call);
        }
        let context = self.parse(&TraceHeaders { parent: parent?, state })?;
        self.inject(context.span().span_context(), call);
        Some(context)
    }

    /// Extracts the context from the parameters of a call.
    pub(super) fn extract_meta(&self, call: &Call) -> Option<Context> {
        let text = |name| call.meta.get_str(name).map(std::borrow::Cow::into_owned);
        self.parse(&TraceHeaders { parent: text(PARENT)?, state: text(STATE) })
    }

    /// Returns the context of a `traceparent`.
    pub(super) fn parent(&self, parent: &str) -> Option<Context> {
        self.parse(&TraceHeaders { parent: parent.to_owned(), state: None })
    }

    fn parse(&self, headers: &TraceHeaders) -> Option<Context> {
        let context = self.0.extract_with_context(&Context::new(), headers);
        context.has_active_span().then_some(context)
    }

    /// Injects a span as the parent of what the call leads to.
    pub(super) fn inject(&self, span: &SpanContext, call: &mut Call) {
        let mut injector = TraceInjector(Vec::with_capacity(2));
        self.0.inject_context(&Context::new().with_remote_span_context(span.clone()), &mut injector);
        for (name, text) in injector.0 {
            match text.is_empty() {
                true => drop(call.meta.remove(name)),
                false => call.meta.set(name, Json::string(&text)),
            }
        }
    }
}

struct TraceHeaders {
    parent: String,
    state: Option<String>,
}

impl Extractor for TraceHeaders {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            PARENT => Some(&self.parent),
            STATE => self.state.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![PARENT, STATE]
    }
}

struct TraceInjector(Vec<(&'static str, String)>);

impl Injector for TraceInjector {
    fn set(&mut self, key: &str, value: String) {
        let name = [PARENT, STATE].into_iter().find(|name| *name == key);
        self.0.extend(name.map(|name| (name, value)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-00000000000000000000000000000001-0000000000000002-00";

    /// Names and values.
    type Named<'a> = &'a [(&'a str, &'a str)];

    /// Returns what is left of a context in `meta`, in the headers, or in both.
    fn extracted(meta: Named<'_>, headers: Named<'_>) -> String {
        let mut call = Call::tool("t", Json::null());
        for (name, value) in meta {
            call.meta.set(name, Json::parse((*value).to_owned()).unwrap_or_else(|_| Json::string(value)));
        }
        let request = headers
            .iter()
            .fold(http::Request::post("/mcp"), |request, (name, value)| request.header(*name, *value));
        call.origin = Some(Arc::new(request.body(()).unwrap().into_parts().0));
        let context = TraceCarrier::default().extract(&mut call);
        let trace = context.map(|context| context.span().span_context().trace_id().to_string());
        format!("{} {}", trace.as_deref().unwrap_or("none"), call.meta.to_json().as_text())
    }

    #[test]
    fn context_comes_from_meta_or_headers() {
        let cases: [(Named<'_>, Named<'_>); 8] = [
            (&[], &[]),
            (&[(PARENT, CONTEXT), (STATE, "a=b"), (BAGGAGE, "k=v")], &[]),
            (&[], &[(PARENT, CONTEXT), (STATE, "a=b"), (BAGGAGE, "k=v")]),
            (&[(PARENT, CONTEXT)], &[(PARENT, OTHER), (STATE, "a=b")]),
            (&[(PARENT, "00-4BF9-00f0-01"), (STATE, "a=b")], &[]),
            (&[(PARENT, "7")], &[(PARENT, CONTEXT)]),
            (&[(STATE, "a=b")], &[]),
            (&[(BAGGAGE, "k=v")], &[(BAGGAGE, "k=w"), (PARENT, "junk")]),
        ];
        insta::assert_snapshot!(cases.map(|(meta, headers)| extracted(meta, headers)).join("\n"), @r#"
        none {}
        4bf92f3577b34da6a3ce929d0e0e4736 {"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b","baggage":"k=v"}
        4bf92f3577b34da6a3ce929d0e0e4736 {"baggage":"k=v","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b"}
        4bf92f3577b34da6a3ce929d0e0e4736 {"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
        none {"traceparent":"00-4BF9-00f0-01","tracestate":"a=b"}
        none {"traceparent":7}
        none {"tracestate":"a=b"}
        none {"baggage":"k=v"}
        "#);
    }
}
