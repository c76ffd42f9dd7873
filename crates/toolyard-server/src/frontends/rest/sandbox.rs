//! `/sandbox`: the isolation layers of this machine, for operators.

use axum::extract::State;
use http::StatusCode;
use serde_json::json;
use toolyard_sandbox::{IsolationRequirement, LayerReport};

use super::query::NoQuery;
use super::{Rest, RestResult, json_value};

/// `GET /sandbox`: whether functions and scripts can run here, and the isolation layers. The first request takes a
/// moment because it probes the layers.
pub(super) async fn show(State(rest): Rest, _: NoQuery) -> RestResult {
    let isolation = match rest.sandbox.isolation() {
        IsolationRequirement::Required => "required",
        IsolationRequirement::BestEffort => "best-effort",
        IsolationRequirement::None => "none",
    };
    let ready = rest.sandbox.ready().await.is_ok();
    let level = rest.sandbox.level().await.name();
    // Without isolation no hints are needed.
    let hints = rest.sandbox.isolation() != IsolationRequirement::None;
    let layers: Vec<_> = rest.sandbox.report().await.iter().map(|report| layer(report, hints)).collect();
    let report = json!({"isolation": isolation, "level": level, "ready": ready, "layers": layers});
    json_value(StatusCode::OK, &report)
}

fn layer(report: &LayerReport, hints: bool) -> serde_json::Value {
    match &report.missing {
        None => json!({"name": report.layer.name(), "enforced": true}),
        Some(why) => {
            let layer = json!({"name": report.layer.name(), "enforced": false, "missing": why});
            if hints { with(layer, "hint", report.layer.hint()) } else { layer }
        }
    }
}

fn with(mut layer: serde_json::Value, name: &str, text: &str) -> serde_json::Value {
    layer[name] = text.into();
    layer
}
