//! The tools that only a subagent has: reports of progress, and its whiteboard.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::Json;

use crate::model::ChatTool;
use crate::record::SubagentOwner;
use crate::texts;
use crate::tools::{WHITEBOARD_DELETE, WHITEBOARD_LIST, WHITEBOARD_READ, WHITEBOARD_WRITE};
use crate::toolset::{OwnTools, ToolText};
use crate::whiteboard::Whiteboards;

/// Name of the tool that reports progress.
const REPORT_PROGRESS: &str = "report_progress";

/// Maximum characters of a report.
const PROGRESS_CHARS: usize = 1_000;

/// Stores a report of progress.
pub(crate) type ProgressReport<'a> = &'a (dyn Fn(String) -> BoxFuture<'a, ()> + Send + Sync);

/// The tools of one subagent.
pub(crate) struct SubagentTools<'a> {
    boards: &'a Whiteboards,
    owner: &'a SubagentOwner,
    /// Id of the subagent and of its board.
    board: &'a str,
    report: ProgressReport<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnToolArgs {
    message: String,
    key: String,
    value: Value,
}

impl<'a> SubagentTools<'a> {
    pub(crate) const fn new(
        boards: &'a Whiteboards,
        owner: &'a SubagentOwner,
        board: &'a str,
        report: ProgressReport<'a>,
    ) -> Self {
        Self { boards, owner, board, report }
    }

    async fn run(&self, name: &str, args: OwnToolArgs) -> ToolText {
        let OwnToolArgs { message, key, value } = args;
        let done = |text: String| ToolText { text, is_error: false };
        match name {
            REPORT_PROGRESS => {
                (self.report)(message.chars().take(PROGRESS_CHARS).collect()).await;
                done("Reported.".to_owned())
            }
            WHITEBOARD_WRITE => {
                match self.boards.write(self.owner, self.board, &key, &texts::board_value(&value)) {
                    Ok(()) => done(texts::written(&key)),
                    Err(error) => ToolText { text: error.to_string(), is_error: true },
                }
            }
            WHITEBOARD_READ => {
                let value = self.boards.read(self.owner, self.board, &key);
                done(value.unwrap_or_else(|| texts::no_key(&key)))
            }
            WHITEBOARD_LIST => done(texts::board_list(&self.boards.list(self.owner, self.board))),
            _ => done(texts::deleted(&key, self.boards.delete(self.owner, self.board, &key))),
        }
    }
}

impl OwnTools for SubagentTools<'_> {
    fn definitions(&self) -> Vec<ChatTool> {
        let text = |about: &str| json!({"type": "string", "description": about});
        let tool = |name: &str, description: &str, properties: Value| {
            let required: Vec<_> =
                properties.as_object().into_iter().flat_map(|members| members.keys()).collect();
            let parameters = json!({"type": "object", "properties": properties, "required": required});
            ChatTool { name: name.to_owned(), description: description.to_owned(), parameters }
        };
        let (key, value) = (text("Such as \"plan\""), text("Text or JSON"));
        vec![
            tool(
                REPORT_PROGRESS,
                "Tells the agent that waits for you how far you are.",
                json!({"message": text("One sentence")}),
            ),
            tool(
                WHITEBOARD_WRITE,
                "Writes a value on the whiteboard that you share with the agent that waits for you.",
                json!({"key": key, "value": value}),
            ),
            tool(WHITEBOARD_READ, "Reads a value from the whiteboard.", json!({"key": key})),
            tool(WHITEBOARD_LIST, "Lists the keys on the whiteboard.", json!({})),
            tool(WHITEBOARD_DELETE, "Removes a key from the whiteboard.", json!({"key": key})),
        ]
    }

    fn call<'b>(&'b self, name: &'b str, arguments: &'b Json) -> Option<BoxFuture<'b, ToolText>> {
        let names = [REPORT_PROGRESS, WHITEBOARD_WRITE, WHITEBOARD_READ, WHITEBOARD_LIST, WHITEBOARD_DELETE];
        names.contains(&name).then(|| {
            async move {
                match serde_json::from_slice(arguments.as_bytes()) {
                    Ok(args) => self.run(name, args).await,
                    Err(error) => ToolText { text: format!("invalid arguments: {error}"), is_error: true },
                }
            }
            .boxed()
        })
    }
}
