//! Lists, page by page, and argument completion.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use serde_json::json;

use crate::client::MatrixClient;
use crate::script::{CompletionStep, FeatureScript, ListKind, RESOURCES, TOOLS};

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 1000;

pub(super) async fn complete(client: &mut MatrixClient, completion: &CompletionStep) -> anyhow::Result<()> {
    let CompletionStep { prompt, argument, typed, values } = completion;
    let reference = json!({"type": "ref/prompt", "name": prompt});
    let argument = json!({"name": argument, "value": typed});
    let params = json!({"ref": reference, "argument": argument});
    let result = client.request("completion/complete", params).await?;
    ensure!(result["completion"]["values"] == json!(values), "unexpected result: {result}");
    Ok(())
}

/// Lists are complete and without duplicates, and an invalid cursor is refused.
pub(super) async fn pages(client: &mut MatrixClient, script: &FeatureScript) -> anyhow::Result<()> {
    let prompts = ListKind { kind: "prompts", key: "name", filter: "" };
    let expectations =
        [(&TOOLS, script.call.tool), (&RESOURCES, script.resource), (&prompts, script.complete.prompt)];
    for (list, expected) in expectations {
        let names = list_names(client, list).await?;
        ensure!(names.contains(expected), "no {expected} among the {} {}", names.len(), list.kind);
        let method = format!("{}/list", list.kind);
        match client.request(&method, json!({"cursor": "invalid-cursor"})).await {
            Ok(result) => bail!("an invalid cursor was accepted: {result}"),
            Err(error) => {
                let refusal = format!("{error:#}");
                ensure!(refusal.contains("-32602"), "unexpected error for an invalid cursor: {refusal}");
            }
        }
    }
    Ok(())
}

/// The keys of the entries on all pages of a list.
pub(super) async fn list_names(
    client: &mut MatrixClient,
    list: &ListKind,
) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = client.request(&format!("{}/list", list.kind), params).await?;
        for entry in page[list.kind].as_array().context("no list")? {
            let name = entry[list.key].as_str().with_context(|| format!("no {}", list.key))?;
            ensure!(names.insert(name.to_owned()), "duplicate entry {name}");
        }
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(names),
        }
    }
    bail!("too many pages of {}", list.kind)
}
