//! Parses YAML into trees. Scalars follow the core schema of YAML 1.2; merge keys (`<<`) are expanded.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::Number;

use super::{MAX_DEPTH, SpecNode, SpecSyntaxError};

/// Maximum memory of values with anchors and of their aliases, in bytes: a few lines of aliases could exhaust it.
const MAX_ALIASED_BYTES: usize = 8 << 20;

/// Maximum number of lines whose indentation is repaired.
const MAX_REPAIRS: usize = 20;

/// Errors of the parser for a string or a flow collection that continues with too little indentation. Most parsers
/// accept such lines, and real documents contain them.
const INDENTATION_ERRORS: [&str; 2] = ["invalid indentation", "invalid indentation in quoted scalar"];

/// Parses the first document of a text.
pub(super) fn parse(text: &str) -> Result<SpecNode<'_>, SpecSyntaxError> {
    let mut error = match parse_strictly(text) {
        Err(error) if INDENTATION_ERRORS.contains(&&*error.problem) => error,
        read => return read,
    };
    let mut repaired = text.to_owned();
    let mut extra_lines = 0;
    for _ in 0..MAX_REPAIRS {
        // For a quoted string, the parser reports its first line.
        let line =
            if error.problem == INDENTATION_ERRORS[1] { error.line + 1 + extra_lines } else { error.line };
        repaired = indent_line(&repaired, line);
        let next = match parse_strictly(&repaired) {
            Ok(node) => return Ok(node.into_owned()),
            Err(next) if INDENTATION_ERRORS.contains(&&*next.problem) && next.line >= error.line => next,
            Err(next) => return Err(next),
        };
        extra_lines = if next.line == error.line { extra_lines + 1 } else { 0 };
        error = next;
    }
    Err(error)
}

/// Indents one line, counted from one, slightly deeper than the line before it.
fn indent_line(text: &str, line: usize) -> String {
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

fn parse_strictly(text: &str) -> Result<SpecNode<'_>, SpecSyntaxError> {
    let mut builder =
        YamlTreeBuilder { open: Vec::new(), anchors: HashMap::new(), aliased_bytes: 0, root: None };
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| match error.info() {
            // The parser's own limit, for flow collections, is 255.
            "recursion limit exceeded" => problem(&too_deep(), error.marker()),
            info => problem(info, error.marker()),
        })?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        builder.event(event).map_err(|what| problem(&what, &span.start))?;
    }
    Ok(builder.root.unwrap_or(SpecNode::Null))
}

/// The problem of a text whose values are nested too deeply.
pub(super) fn too_deep() -> String {
    format!("lists and objects are nested more than {MAX_DEPTH} levels deep")
}

fn problem(what: &str, at: &Marker) -> SpecSyntaxError {
    SpecSyntaxError { problem: what.to_owned(), line: at.line(), column: at.col() + 1 }
}

struct YamlTreeBuilder<'t> {
    /// The lists and objects around the next value, outermost first.
    open: Vec<OpenNode<'t>>,
    anchors: HashMap<usize, SpecNode<'t>>,
    aliased_bytes: usize,
    root: Option<SpecNode<'t>>,
}

struct OpenNode<'t> {
    node: SpecNode<'t>,
    /// The name of the next member of an object.
    name: Option<Cow<'t, str>>,
    /// Anchor of the node, or zero.
    anchor: usize,
}

impl<'t> YamlTreeBuilder<'t> {
    fn event(&mut self, event: Event<'t>) -> Result<(), Cow<'static, str>> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag.as_deref()),
            Event::SequenceStart(anchor, _) => self.begin(SpecNode::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(SpecNode::Object(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(OpenNode { mut node, anchor, .. }) = self.open.pop() else { return Ok(()) };
                if let SpecNode::Object(members) = &mut node {
                    merge_keys(members);
                }
                self.store_anchor(anchor, &node)?;
                self.add(node)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).ok_or("an alias refers to an incomplete value")?;
                charge_aliases(&mut self.aliased_bytes, node)?;
                let node = node.clone();
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
    ) -> Result<(), Cow<'static, str>> {
        if let Some(OpenNode { node: SpecNode::Object(_), name: name @ None, .. }) = self.open.last_mut() {
            *name = Some(text);
            return Ok(());
        }
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        let node = match style {
            ScalarStyle::Plain if !is_text => plain(text),
            _ => SpecNode::Text(text),
        };
        self.store_anchor(anchor, &node)?;
        self.add(node)
    }

    fn begin(&mut self, node: SpecNode<'t>, anchor: usize) -> Result<(), Cow<'static, str>> {
        if matches!(self.open.last(), Some(OpenNode { node: SpecNode::Object(_), name: None, .. })) {
            return Err("a member name must be a string".into());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep().into());
        }
        self.open.push(OpenNode { node, name: None, anchor });
        Ok(())
    }

    fn add(&mut self, node: SpecNode<'t>) -> Result<(), Cow<'static, str>> {
        match self.open.last_mut() {
            Some(OpenNode { node: SpecNode::List(items), .. }) => items.push(node),
            Some(OpenNode { node: SpecNode::Object(members), name, .. }) => match name.take() {
                Some(name) => members.push((name, node)),
                None => return Err("a member name must be a string".into()),
            },
            _ => self.root = Some(node),
        }
        Ok(())
    }

    fn store_anchor(&mut self, anchor: usize, node: &SpecNode<'t>) -> Result<(), Cow<'static, str>> {
        if anchor != 0 {
            charge_aliases(&mut self.aliased_bytes, node)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }
}

/// Adds the memory of a copy of a value to that of all copies.
fn charge_aliases(total: &mut usize, node: &SpecNode<'_>) -> Result<(), Cow<'static, str>> {
    *total = total.saturating_add(size(node));
    if *total > MAX_ALIASED_BYTES {
        return Err(format!("the aliases expand to more than {MAX_ALIASED_BYTES} bytes").into());
    }
    Ok(())
}

/// Returns the memory of a value in bytes. Texts count even if they are slices: a repaired document owns all of them.
fn size(node: &SpecNode<'_>) -> usize {
    let inside: usize = match node {
        SpecNode::List(items) => items.iter().map(size).sum(),
        SpecNode::Object(members) => {
            members.iter().map(|(name, value)| size_of_val(name) + name.len() + size(value)).sum()
        }
        SpecNode::Text(text) => text.len(),
        _ => 0,
    };
    size_of_val(node) + inside
}

/// Expands `<<`. Own members take precedence, then the first source.
fn merge_keys<'t>(members: &mut Vec<(Cow<'t, str>, SpecNode<'t>)>) {
    let Some(at) = members.iter().position(|(name, _)| name == "<<") else { return };
    let sources = match &members[at].1 {
        SpecNode::Object(_) => vec![members.remove(at).1],
        SpecNode::List(items) if items.iter().all(SpecNode::is_object) => match members.remove(at).1 {
            SpecNode::List(items) => items,
            _ => return,
        },
        _ => return,
    };
    for source in sources {
        let SpecNode::Object(source) = source else { continue };
        for (name, value) in source {
            if !members.iter().any(|(member, _)| *member == name) {
                members.push((name, value));
            }
        }
    }
}

fn plain(text: Cow<'_, str>) -> SpecNode<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => SpecNode::Null,
        "true" | "True" | "TRUE" => SpecNode::Bool(true),
        "false" | "False" | "FALSE" => SpecNode::Bool(false),
        number => self::number(number).map_or_else(|| SpecNode::Text(text.clone()), SpecNode::Number),
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
    // Rust also parses infinities and `nan`, which YAML writes differently.
    let is_float = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    let float = text.parse::<f64>().ok().filter(|_| is_float)?;
    Number::from_f64(float)
}
