//! Which walls this machine has, for operators.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::json;
use toolyard_sandbox::{Isolation, LayerReport};

use super::{Problem, Rest, query, written};
use crate::keys::Visitor;

/// `GET /sandbox`: whether functions and scripts can run here, and behind what. The first time this takes a moment: the
/// walls are tried.
pub(super) async fn show(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let isolation = match rest.sandbox.isolation() {
        Isolation::Required => "required",
        Isolation::BestEffort => "best-effort",
        Isolation::None => "none",
    };
    let ready = rest.sandbox.ready().await.is_ok();
    // What is not wanted needs no help.
    let hints = rest.sandbox.isolation() != Isolation::None;
    let layers: Vec<_> = rest.sandbox.report().await.iter().map(|report| layer(report, hints)).collect();
    Ok(written(StatusCode::OK, &json!({"isolation": isolation, "ready": ready, "layers": layers})))
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
