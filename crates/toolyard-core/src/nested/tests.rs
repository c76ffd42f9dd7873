use std::sync::Mutex;

use futures_util::FutureExt;
use tokio::sync::watch;

use super::*;
use crate::gate::GateSize;
use crate::gateway::Observers;
use crate::layers::CallResult;
use crate::outcome::Outcome;
use crate::testing::{FakeBackend, handler, registry_of};

/// A gateway that runs one call at a time. Of the handler `own`, `outer` calls the tool that its argument `tool` names
/// for as long as it runs, `later` in the background, and `inner` returns what it sees of its call, as `far` of the
/// handler `other` does.
fn gateway(callers: Option<Arc<dyn CallerDirectory>>) -> Arc<Gateway> {
    Arc::new_cyclic(|gateway| {
        let mut nested = NestedGateway::new(gateway.clone(), "own");
        nested.callers = callers;
        let tools = [r#"{"name":"outer"}"#, r#"{"name":"later"}"#, r#"{"name":"inner"}"#];
        let own = FakeBackend::new(&tools, Box::new(move |call| run(call, nested.clone()).boxed()));
        let far = |call: Call| async move { Ok(Outcome::Done(CallOutput::text(&seen(&call)))) }.boxed();
        let other = FakeBackend::new(&[r#"{"name":"far"}"#], Box::new(far));
        let (_, registry) = watch::channel(registry_of(&[handler("own", own), handler("other", other)]));
        let size = GateSize { running: 1, waiting: 0 };
        Gateway::new(registry, Gateway::layers(Observers::default(), size, None, None))
    })
}

async fn run(call: Call, nested: NestedGateway) -> CallResult {
    let calls = match &**call.target.name() {
        "outer" => nested.within(&call, "a1"),
        "later" => nested.after(&call, "a1"),
        _ => return Ok(Outcome::Done(CallOutput::text(&seen(&call)))),
    };
    let arguments = call.arguments().cloned().unwrap_or_else(Json::null);
    let tool = arguments.to_object().unwrap_or_default().get_str("tool").unwrap_or_default().into_owned();
    calls.call(&tool, arguments, None).await.map(Outcome::Done)
}

/// The parts of a call that depend on its parent.
fn seen(call: &Call) -> String {
    let parent = call.parent.as_ref().map(|parent| format!("{} at {}", parent.id, parent.depth));
    let principal = call.caller.principal.as_deref().unwrap_or("no key");
    let (meta, has_origin) = (call.meta.to_json(), call.origin.is_some());
    format!("{principal} {} {} {has_origin}", parent.unwrap_or_default(), meta.as_text())
}

/// Calls a tool with the argument `tool`, and returns the result's text or the error's code.
async fn called(gateway: &Gateway, tool: &str, inner: &str) -> String {
    let arguments = Object::new().with("tool", Json::string(inner)).to_json();
    let meta =
        Object::new().with("traceparent", Json::string("00-1-2-01")).with("progressToken", Json::integer(7));
    let caller = Caller { principal: Some("key".into()), ..Caller::default() };
    let origin: Option<Arc<dyn std::any::Any + Send + Sync>> = Some(Arc::new("head"));
    let call = Call { meta, caller, origin, ..Call::tool(tool, arguments) };
    match gateway.invoke_to_end(call).await {
        Ok(output) => {
            let body = output.body.to_json().to_value();
            body["content"][0]["text"].as_str().unwrap_or_default().to_owned()
        }
        Err(error) => format!("{:?}", error.code()),
    }
}

#[tokio::test]
async fn nested_call_is_its_callers() {
    let gateway = gateway(None);
    let check = async |tool: &str, inner: &str, expected: &str| {
        assert_eq!(called(&gateway, tool, inner).await, expected, "{tool} {inner}");
    };
    check("inner", "", r#"key  {"traceparent":"00-1-2-01","progressToken":7} true"#).await;
    // Neither waits for the permit of the gateway, which its parent holds.
    check("outer", "inner", r#"key a1 at 1 {"traceparent":"00-1-2-01"} true"#).await;
    check("outer", "far", r#"key a1 at 1 {"traceparent":"00-1-2-01"} true"#).await;
    check("outer", "missing", "ToolNotFound").await;
    // The tool calls itself.
    check("outer", "outer", "InvalidArguments").await;
    // A call of an activity in the background needs a permit, and there is only one.
    check("later", "far", "Overloaded").await;
}

/// Knows one key, until it is revoked.
struct OneKey(Mutex<Option<Caller>>);

impl CallerDirectory for OneKey {
    fn current<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Caller, ToolError>> {
        let caller = self.0.lock().unwrap().clone();
        async { caller.ok_or_else(|| ToolError::new(ErrorCode::Denied, "the key was revoked")) }.boxed()
    }
}

#[tokio::test]
async fn excluded_tools_are_not_reached_through_others() {
    let gateway = gateway(None);
    let nested = NestedGateway::new(Arc::downgrade(&gateway), "own");
    let check = async |tool: &str, inner: &str, expected: &str| {
        let calls = nested.within(&Call::tool("outer", Json::null()), "a1").without(&["inner"]);
        let listed = calls.registry().await.unwrap().tool(tool).is_ok();
        let arguments = Object::new().with("tool", Json::string(inner)).to_json();
        let ended = calls.call(tool, arguments, None).await.map(drop).map_err(|error| error.code());
        assert_eq!(format!("{listed} {ended:?}"), expected, "{tool} {inner}");
    };
    check("inner", "", "false Err(ToolNotFound)").await;
    check("far", "", "true Ok(())").await;
    check("outer", "far", "true Ok(())").await;
    check("outer", "inner", "true Err(ToolNotFound)").await;
}

#[tokio::test]
async fn background_call_has_the_current_rights_of_its_key() {
    let renewed = Caller { principal: Some("renewed".into()), ..Caller::default() };
    let keys = Arc::new(OneKey(Mutex::new(Some(renewed))));
    let gateway = gateway(Some(keys.clone()));
    let nested = NestedGateway::new(Arc::downgrade(&gateway), "own").refreshed_by(keys.clone());
    let calls = nested.after(&Call::tool("later", Json::null()), "a1");
    let check = async |expected: &str| {
        let ended = calls.call("far", Json::null(), None).await;
        let text = ended.map(|output| output.body.to_json().as_text().contains("renewed a1"));
        assert_eq!(format!("{:?}", text.map_err(|error| error.code())), expected);
    };
    check("Ok(true)").await;
    keys.0.lock().unwrap().take();
    check("Err(Denied)").await;
    drop(gateway);
    check("Err(Unavailable)").await;
}

#[tokio::test]
async fn exclusions_hold_for_background_calls_below() {
    let keys = Arc::new(OneKey(Mutex::new(Some(Caller::default()))));
    let gateway = gateway(Some(keys.clone()));
    let nested = NestedGateway::new(Arc::downgrade(&gateway), "own").refreshed_by(keys);
    let check = async |inner: &str, expected: &str| {
        let calls = nested.within(&Call::tool("outer", Json::null()), "a1").without(&["inner"]);
        let arguments = Object::new().with("tool", Json::string(inner)).to_json();
        let ended = calls.call("later", arguments, None).await.map(drop).map_err(|error| error.code());
        assert_eq!(format!("{ended:?}"), expected, "{inner}");
    };
    check("far", "Ok(())").await;
    check("inner", "Err(ToolNotFound)").await;
}
