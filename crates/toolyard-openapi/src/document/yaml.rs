//! YAML, into the same trees. Scalars mean what the core schema of YAML 1.2 says; merge keys (`<<`) are followed.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::Number;

use super::{DEEPEST, Node, SyntaxError};

/// How many values aliases may stand for, all in all: a few lines of them could fill the memory.
const MOST_ALIASED: usize = 1 << 20;

/// How many lines of a text are read as if they were indented deeper.
const MOST_REPAIRS: usize = 20;

/// What the parser says of a text or a list in brackets that goes on further left than it may. Most parsers read such
/// lines, and documents have them.
const TOO_FAR_LEFT: [&str; 2] = ["invalid indentation", "invalid indentation in quoted scalar"];

/// Reads the first document of a text.
pub(super) fn parse(text: &str) -> Result<Node<'_>, SyntaxError> {
    let mut error = match parse_strictly(text) {
        Err(error) if TOO_FAR_LEFT.contains(&&*error.problem) => error,
        read => return read,
    };
    let mut repaired = text.to_owned();
    let mut further = 0;
    for _ in 0..MOST_REPAIRS {
        // Of a text in quotes, its beginning is named.
        let line = if error.problem == TOO_FAR_LEFT[1] { error.line + 1 + further } else { error.line };
        repaired = indented(&repaired, line);
        let next = match parse_strictly(&repaired) {
            Ok(node) => return Ok(node.into_owned()),
            Err(next) if TOO_FAR_LEFT.contains(&&*next.problem) && next.line >= error.line => next,
            Err(next) => return Err(next),
        };
        further = if next.line == error.line { further + 1 } else { 0 };
        error = next;
    }
    Err(error)
}

/// The text with one line, counted from one, as deep as the one before it, and a bit more.
fn indented(text: &str, line: usize) -> String {
    let mut before = 0_usize;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (index, text) in lines.iter_mut().enumerate().take(line) {
        let own = text.len() - text.trim_start_matches(' ').len();
        if index + 1 == line {
            text.insert_str(0, &" ".repeat((before + 2).saturating_sub(own)));
        } else if !text.trim().is_empty() {
            before = own;
        }
    }
    lines.join("\n")
}

fn parse_strictly(text: &str) -> Result<Node<'_>, SyntaxError> {
    let mut builder = Builder { open: Vec::new(), anchors: HashMap::new(), aliased: 0, whole: None };
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| problem(error.info(), error.marker()))?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        builder.event(event).map_err(|what| problem(what, &span.start))?;
    }
    Ok(builder.whole.unwrap_or(Node::Null))
}

fn problem(what: &str, at: &Marker) -> SyntaxError {
    SyntaxError { problem: what.to_owned(), line: at.line(), column: at.col() + 1 }
}

struct Builder<'t> {
    /// The lists and objects around the next value, the outermost first.
    open: Vec<Open<'t>>,
    anchors: HashMap<usize, Node<'t>>,
    aliased: usize,
    whole: Option<Node<'t>>,
}

struct Open<'t> {
    node: Node<'t>,
    /// The name of the member that comes next, of an object.
    name: Option<Cow<'t, str>>,
    /// Zero: it has none.
    anchor: usize,
}

impl<'t> Builder<'t> {
    fn event(&mut self, event: Event<'t>) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag.as_deref()),
            Event::SequenceStart(anchor, _) => self.begin(Node::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(Node::Object(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { mut node, anchor, .. }) = self.open.pop() else { return Ok(()) };
                if let Node::Object(members) = &mut node {
                    merge(members);
                }
                self.remember(anchor, &node)?;
                self.add(node)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned().ok_or("an alias for what is not complete")?;
                self.spend(&node)?;
                self.add(node)
            }
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), &'static str> {
        if let Some(Open { node: Node::Object(_), name: name @ None, .. }) = self.open.last_mut() {
            *name = Some(text);
            return Ok(());
        }
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        let node = match style {
            ScalarStyle::Plain if !is_text => plain(text),
            _ => Node::Text(text),
        };
        self.remember(anchor, &node)?;
        self.add(node)
    }

    fn begin(&mut self, node: Node<'t>, anchor: usize) -> Result<(), &'static str> {
        if matches!(self.open.last(), Some(Open { node: Node::Object(_), name: None, .. })) {
            return Err("the name of a member has to be a text");
        }
        if self.open.len() >= DEEPEST {
            return Err("lists and objects are nested too deep");
        }
        self.open.push(Open { node, name: None, anchor });
        Ok(())
    }

    fn add(&mut self, node: Node<'t>) -> Result<(), &'static str> {
        match self.open.last_mut() {
            Some(Open { node: Node::List(items), .. }) => items.push(node),
            Some(Open { node: Node::Object(members), name, .. }) => match name.take() {
                Some(name) => members.push((name, node)),
                None => return Err("the name of a member has to be a text"),
            },
            _ => self.whole = Some(node),
        }
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node<'t>) -> Result<(), &'static str> {
        if anchor != 0 {
            self.spend(node)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }

    fn spend(&mut self, node: &Node<'_>) -> Result<(), &'static str> {
        self.aliased += count(node);
        if self.aliased > MOST_ALIASED {
            return Err("the aliases stand for too much");
        }
        Ok(())
    }
}

fn count(node: &Node<'_>) -> usize {
    let inside: usize = match node {
        Node::List(items) => items.iter().map(count).sum(),
        Node::Object(members) => members.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    };
    1 + inside
}

/// Puts what `<<` names in its place. What an object says itself counts, and of several the first.
fn merge<'t>(members: &mut Vec<(Cow<'t, str>, Node<'t>)>) {
    let Some(at) = members.iter().position(|(name, _)| name == "<<") else { return };
    let sources = match &members[at].1 {
        Node::Object(_) => vec![members.remove(at).1],
        Node::List(items) if items.iter().all(Node::is_object) => match members.remove(at).1 {
            Node::List(items) => items,
            _ => return,
        },
        _ => return,
    };
    for source in sources {
        let Node::Object(source) = source else { continue };
        for (name, value) in source {
            if !members.iter().any(|(member, _)| *member == name) {
                members.push((name, value));
            }
        }
    }
}

fn plain(text: Cow<'_, str>) -> Node<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Node::Null,
        "true" | "True" | "TRUE" => Node::Bool(true),
        "false" | "False" | "FALSE" => Node::Bool(false),
        number => self::number(number).map_or_else(|| Node::Text(text.clone()), Node::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(['-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return None;
    }
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(Number::from);
    if let Some(octal) = text.strip_prefix("0o") {
        return radix(octal, 8);
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return radix(hexadecimal, 16);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    // What Rust reads as a float beyond YAML's form: infinities and `nan`, by their letters.
    let is_float = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    let float = text.parse::<f64>().ok().filter(|_| is_float)?;
    Number::from_f64(float)
}
