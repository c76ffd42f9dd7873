//! Lists, page by page, and what completes an argument.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use serde_json::json;

use crate::matrix::client::Client;
use crate::matrix::script::{Completion, List, RESOURCES, Script, TOOLS};

/// No list here is longer.
const MOST_PAGES: usize = 1000;

pub(super) async fn complete(client: &mut Client, completion: &Completion) -> anyhow::Result<()> {
    let Completion { prompt, argument, typed, values } = completion;
    let reference = json!({"type": "ref/prompt", "name": prompt});
    let argument = json!({"name": argument, "value": typed});
    let params = json!({"ref": reference, "argument": argument});
    let result = client.request("completion/complete", params).await?;
    ensure!(result["completion"]["values"] == json!(values), "got {result}");
    Ok(())
}

/// Lists come whole, each entry once, and a cursor that nobody gave out is refused.
pub(super) async fn pages(client: &mut Client, script: &Script) -> anyhow::Result<()> {
    let prompts = List { kind: "prompts", key: "name", filter: "" };
    let there =
        [(&TOOLS, script.call.tool), (&RESOURCES, script.resource), (&prompts, script.complete.prompt)];
    for (list, expected) in there {
        let names = all(client, list).await?;
        ensure!(names.contains(expected), "no {expected} among the {} {}", names.len(), list.kind);
        let method = format!("{}/list", list.kind);
        match client.request(&method, json!({"cursor": "of nobody's making"})).await {
            Ok(result) => bail!("a false cursor was taken: {result}"),
            Err(error) => {
                let said = format!("{error:#}");
                ensure!(said.contains("-32602"), "a false cursor was refused with {said}");
            }
        }
    }
    Ok(())
}

/// What tells the entries of a list from each other, from all of its pages.
pub(super) async fn all(client: &mut Client, list: &List) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut params = json!({});
    for _ in 0..MOST_PAGES {
        let page = client.request(&format!("{}/list", list.kind), params).await?;
        for entry in page[list.kind].as_array().context("no list")? {
            let name = entry[list.key].as_str().with_context(|| format!("no {}", list.key))?;
            ensure!(names.insert(name.to_owned()), "{name} is listed twice");
        }
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(names),
        }
    }
    bail!("the list of {} has no end", list.kind)
}
