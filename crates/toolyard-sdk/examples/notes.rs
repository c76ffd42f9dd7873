//! Notes that tools write and clients read. Each note is a resource, which is added and removed while the server serves;
//! clients that subscribe to a note or listen for changes of the list are notified.
//!
//! ```sh
//! cargo run -p toolyard-sdk --example notes                         # on standard input and output
//! cargo run -p toolyard-sdk --example notes -- 127.0.0.1:8080       # on http://127.0.0.1:8080/mcp
//! ```

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::RwLock;
use toolyard_sdk::{
    CacheScope, Content, Json, PromptReply, RegisterError, Resource, ResourceTemplate, Result, Server,
    ServerHandle, ToolFailure,
};

const TEMPLATE: &str = "note:///{name}";

fn uri(name: &str) -> String {
    TEMPLATE.replace("{name}", name)
}

/// Time that a client without a subscription may cache a note.
const NOTE_TTL: Duration = Duration::from_secs(60);

/// The notes by name, and the server that publishes them.
#[derive(Clone)]
struct Notes {
    texts: Arc<RwLock<BTreeMap<String, String>>>,
    server: ServerHandle,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// The name: lower-case letters, digits and hyphens
    #[schemars(regex(pattern = "^[a-z0-9-]{1,64}$"))]
    name: String,
    /// The text
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoteName {
    /// The name of the note
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// The text to search for
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct NoteList {
    /// The URIs of the notes
    notes: Vec<String>,
}

impl Notes {
    /// Adds or changes a note, and notifies the clients that subscribe to it or to the list.
    async fn put(&self, note: Note) -> Result<String, RegisterError> {
        let (uri, mut texts) = (uri(&note.name), self.texts.write().await);
        if texts.insert(note.name.clone(), note.text).is_some() {
            self.server.resource_updated(&uri);
        } else {
            let resource =
                Resource::new(&uri, &note.name).mime_type("text/plain").cache(NOTE_TTL, CacheScope::Private);
            let notes = self.clone();
            self.server.add_resource(resource, async move || notes.text(note.name).await)?;
        }
        Ok(uri)
    }

    async fn add(self, note: Note) -> Result<Json<NoteList>, ToolFailure> {
        Ok(Json(NoteList { notes: vec![self.put(note).await?] }))
    }

    async fn remove(self, NoteName { name }: NoteName) -> Result<Json<NoteList>, ToolFailure> {
        let (uri, mut texts) = (uri(&name), self.texts.write().await);
        if !self.server.remove_resource(&uri) {
            return Err(ToolFailure::new("there is no such note: search for its text"));
        }
        texts.remove(&name);
        Ok(Json(NoteList { notes: vec![uri] }))
    }

    async fn search(self, SearchArgs { text }: SearchArgs) -> Json<NoteList> {
        let texts = self.texts.read().await;
        let matches = texts.iter().filter(|(_, note)| note.contains(&text));
        Json(NoteList { notes: matches.map(|(name, _)| uri(name)).collect() })
    }

    /// The text of a note; the SDK answers `None` as "resource not found".
    async fn text(self, name: String) -> Option<String> {
        self.texts.read().await.get(&name).cloned()
    }

    async fn summarize(self, NoteName { name }: NoteName) -> Result<PromptReply, ToolFailure> {
        let uri = uri(&name);
        let text = self.text(name).await;
        let text = text.ok_or_else(|| ToolFailure::protocol(-32602, "there is no such note"))?;
        let note = Content::embedded_text(&uri, "text/plain", &text);
        Ok(PromptReply::new().user("Summarize this note in one sentence.").user(note))
    }

    /// The names that begin with this text.
    async fn names(self, typed: String) -> Vec<String> {
        let texts = self.texts.read().await;
        texts.keys().filter(|name| name.starts_with(&typed)).cloned().collect()
    }
}

/// Turns a method of the notes into a handler.
fn on<A, R>(notes: Notes, method: impl Fn(Notes, A) -> R + Clone) -> impl Fn(A) -> R + Clone {
    move |argument| method(notes.clone(), argument)
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("notes", "1.0.0").instructions("Search the notes before you add one.");
    let notes = Notes { texts: Arc::default(), server: server.handle() };
    notes.put(Note { name: "welcome".into(), text: "Add a note with add_note.".into() }).await?;

    let template =
        ResourceTemplate::new(TEMPLATE, "note").mime_type("text/plain").cache(NOTE_TTL, CacheScope::Private);
    let server = server
        .tool("add_note", "Adds or changes a note.", on(notes.clone(), Notes::add))?
        .tool("remove_note", "Removes a note.", on(notes.clone(), Notes::remove))?
        .tool("search_notes", "Finds the notes that contain a text.", on(notes.clone(), Notes::search))?
        .resource_template(template, on(notes.clone(), Notes::text))?
        .complete_resource(TEMPLATE, "name", on(notes.clone(), Notes::names))?
        .prompt("summarize", "Asks for a summary of a note.", on(notes.clone(), Notes::summarize))?
        .complete_prompt("summarize", "name", on(notes.clone(), Notes::names))?;
    support::serve(server).await
}
