//! A client's server becomes a handler.

use super::{Note, entry::Entry, name::Names, rewrite::rewritten};
use crate::{
    cursor::Cursor,
    problem::quoted,
    tree::{Content, Node},
};

/// A server of a file, by the name that it has there.
struct Server<'a> {
    name: String,
    place: Cursor<'a>,
    entry: Entry<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Sse,
    StreamableHttp,
}

type Members = Vec<(&'static str, Node)>;

/// The handlers of the servers, in their order. Those that are disabled, or speak what we do not, are left out
/// with a note.
pub(super) fn handlers(servers: &Cursor<'_>, names: &mut Names, notes: &mut Vec<Note>) -> Vec<Node> {
    let servers: Vec<_> = match servers.content() {
        Content::Object(members) => members
            .iter()
            .filter_map(|member| Server::of(servers.member(member), Some(&member.name), notes))
            .collect(),
        Content::List(_) => {
            let items = servers.clone().list(Some).unwrap_or_default();
            items.into_iter().filter_map(|item| Server::of(item, None, notes)).collect()
        }
        _ => {
            servers.wrong_kind("an object", None);
            return Vec::new();
        }
    };
    let called: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let names = names.handlers(&called);
    servers.into_iter().zip(names).filter_map(|(server, name)| server.into_handler(&name, notes)).collect()
}

impl<'a> Server<'a> {
    /// A server that is wanted. Those of a list say their names themselves.
    fn of(place: Cursor<'a>, name: Option<&str>, notes: &mut Vec<Note>) -> Option<Self> {
        let mut entry = Entry::of(&place)?;
        let name = match name {
            Some(name) => name,
            None => entry.take_text(&["Name", "name"]).unwrap_or_default(),
        };
        let disabled = entry.take_flag(&["disabled", "Disabled"]).unwrap_or(false);
        if disabled || entry.take_flag(&["enabled", "Enabled"]) == Some(false) {
            notes.push(Note::at(&place, format!("{} is disabled, and left out", quoted(name))));
            return None;
        }
        Some(Self { name: name.to_owned(), place, entry })
    }

    fn into_handler(mut self, name: &str, notes: &mut Vec<Note>) -> Option<Node> {
        let config = self.config(notes)?;
        if self.name != name {
            notes.push(Note::at(
                &self.place,
                format!("{} is called {} now", quoted(&self.name), quoted(name)),
            ));
        }
        self.entry.finish(notes);
        let position = self.place.node().position;
        let text = |text| Node::text(text, position);
        let members =
            vec![("name", text(name)), ("type", text("mcp")), ("mcpConfig", Node::object(config, position))];
        Some(Node::object(members, position))
    }

    /// What `mcpConfig` says.
    fn config(&mut self, notes: &mut Vec<Note>) -> Option<Members> {
        let transport = match self.entry.take_text(&["type", "transport", "transportType", "Type"]) {
            None => None,
            Some(word) => Some(transport(word).or_else(|| {
                let (name, word) = (quoted(&self.name), quoted(word));
                let message = format!("{name} is left out: {word} is no transport of ours");
                notes.push(Note::at(&self.place, message));
                None
            })?),
        };
        let is_program = matches!(transport, None | Some(Transport::Stdio));
        let command = self.entry.take(&["command", "Command"]).filter(|_| is_program);
        let is_remote = command.is_none() && transport != Some(Transport::Stdio);
        let url = self.entry.take(&["url", "serverUrl", "httpUrl", "Url"]).filter(|_| is_remote);
        let mut config = match (command, url) {
            (Some(command), _) => self.program(&command, notes),
            (None, Some(url)) => self.remote(&url, transport, notes),
            (None, None) => {
                let problem = self.place.problem("this server has neither a command nor a URL");
                self.place.report(problem.expected("`command`, or `url` of a server that runs by itself"));
                return None;
            }
        };
        config.extend(self.filter());
        Some(config)
    }

    fn program(&mut self, command: &Cursor<'_>, notes: &mut Vec<Note>) -> Members {
        let transport = Node::text("stdio", command.node().position);
        let mut config = vec![("transport", transport), ("command", rewritten(command, notes))];
        let others: [(_, &[&str]); 3] = [
            ("args", &["args", "Arguments"]),
            ("env", &["env", "EnvironmentVariables"]),
            ("workDir", &["cwd", "workDir", "WorkingDirectory"]),
        ];
        for (field, names) in others {
            config.extend(self.entry.take(names).map(|value| (field, rewritten(&value, notes))));
        }
        config
    }

    /// Clients find out by themselves what a server speaks, and so does the gateway: what is written here is
    /// what it tries first.
    fn remote(&mut self, url: &Cursor<'_>, transport: Option<Transport>, notes: &mut Vec<Note>) -> Members {
        let looks_like_sse = matches!(url.content(), Content::Text(url) if url.ends_with("/sse"));
        let word = match transport {
            Some(Transport::Sse) => "sse",
            None if looks_like_sse => "sse",
            _ => "streamable-http",
        };
        let transport = Node::text(word, url.node().position);
        let mut config = vec![("transport", transport), ("endpoint", rewritten(url, notes))];
        let headers = self.entry.take(&["headers", "Headers"]);
        config.extend(headers.map(|headers| ("headers", rewritten(&headers, notes))));
        config
    }

    /// Which tools are wanted. Where both lists are, the one that allows counts, for those who wrote them too.
    fn filter(&mut self) -> Option<(&'static str, Node)> {
        let lists = [
            ("allowlist", self.entry.take(&["allowedTools", "includeTools", "AllowedTools"])),
            ("blocklist", self.entry.take(&["deniedTools", "excludeTools", "disabledTools", "DeniedTools"])),
        ];
        // A list that is empty says nothing.
        let says_something = |list: &Node| !matches!(&list.content, Content::List(items) if items.is_empty());
        let lists: Members = lists
            .into_iter()
            .filter_map(|(name, list)| Some((name, list?.node().clone())))
            .filter(|(_, list)| says_something(list))
            .collect();
        let position = lists.first()?.1.position;
        Some(("toolFilter", Node::object(lists, position)))
    }
}

fn transport(word: &str) -> Option<Transport> {
    match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" => Some(Transport::Stdio),
        "sse" => Some(Transport::Sse),
        "http" | "streamablehttp" | "remote" => Some(Transport::StreamableHttp),
        _ => None,
    }
}
