//! Parses a text into the trees of its documents, within limits.
//!
//! JSON needs no parser of its own: except for surrogate escapes it is a subset of YAML, tabs included.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::{
    problem::{FieldPath, ManifestProblem, SourceLocation, SourcePosition, quoted},
    report::ProblemReport,
    scalar,
    source::ManifestSource,
    tree::{NodeContent, ObjectMember, TreeNode},
};

/// Maximum nesting depth of lists and objects. No manifest needs ten levels; the limit keeps the functions that walk a
/// tree from exhausting the stack.
const MAX_DEPTH: usize = 64;

/// Maximum size of the trees of a file, in bytes. Each use of an alias counts, so that a few lines of aliases cannot
/// exhaust the memory.
const MAX_TREE_BYTES: usize = 64 << 20;

/// Returns the documents of a source, without the empty ones.
///
/// Problems go to the report. Documents that are complete before a syntax error are still returned, so that one run
/// reports as many problems as possible.
pub(crate) fn documents(source: &ManifestSource, report: &ProblemReport<'_>) -> Vec<TreeNode> {
    let mut builder = TreeBuilder::new(source, report);
    match builder.read(&source.text) {
        Ok(()) | Err(AlreadyReported) => builder.documents,
    }
}

/// Marker for an error that is already in the report.
struct AlreadyReported;

struct TreeBuilder<'a> {
    source: &'a ManifestSource,
    report: &'a ProblemReport<'a>,
    documents: Vec<TreeNode>,
    /// The lists and objects around the next event, outermost first.
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, TreeNode>,
    memory_bytes: usize,
}

/// A list or an object that is not complete yet.
struct OpenCollection {
    items: CollectionItems,
    anchor: usize,
    position: SourcePosition,
}

enum CollectionItems {
    List(Vec<TreeNode>),
    /// The members so far, and the name of the next one after it is read.
    Object(Vec<ObjectMember>, Option<(String, SourcePosition)>),
}

impl<'a> TreeBuilder<'a> {
    fn new(source: &'a ManifestSource, report: &'a ProblemReport<'a>) -> Self {
        Self {
            source,
            report,
            documents: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            memory_bytes: 0,
        }
    }

    fn read(&mut self, text: &str) -> Result<(), AlreadyReported> {
        let text = if is_json(text) { merge_surrogates(text) } else { text.into() };
        let mut parser = Parser::new_from_str(&text);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| {
                let message = format!("invalid YAML or JSON: {}", error.info());
                self.report(self.problem(position(error.marker()), message))
            })?;
            self.event(event, position(&span.start))?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, at: SourcePosition) -> Result<(), AlreadyReported> {
        match event {
            // The scope of an anchor is its document.
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), at)?
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(CollectionItems::List(Vec::new()), anchor, tag.as_deref(), at)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.open(CollectionItems::Object(Vec::new(), None), anchor, tag.as_deref(), at)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Alias(anchor) => self.alias(anchor, at)?,
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Nothing => {}
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: SourcePosition,
    ) -> Result<(), AlreadyReported> {
        let content = match tag {
            None => scalar::resolve_scalar(text, style),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
                NodeContent::Text(text.to_owned())
            }
            Some(_) => return Err(self.report_tag(at)),
        };
        let node = TreeNode { content, position: at };
        self.charge_memory(node.memory_bytes(), at)?;
        self.store_anchor(anchor, &node)?;
        match self.open.last_mut() {
            Some(OpenCollection { items: CollectionItems::Object(_, name @ None), .. }) => {
                *name = Some((text.to_owned(), at))
            }
            _ => self.add(node),
        }
        Ok(())
    }

    fn open(
        &mut self,
        items: CollectionItems,
        anchor: usize,
        tag: Option<&Tag>,
        at: SourcePosition,
    ) -> Result<(), AlreadyReported> {
        if tag.is_some() {
            return Err(self.report_tag(at));
        }
        self.check_nesting(0, at)?;
        self.charge_memory(size_of::<ObjectMember>(), at)?;
        self.open.push(OpenCollection { items, anchor, position: at });
        Ok(())
    }

    fn close(&mut self) -> Result<(), AlreadyReported> {
        let Some(OpenCollection { items, anchor, position }) = self.open.pop() else { return Ok(()) };
        let content = match items {
            CollectionItems::List(items) => NodeContent::List(items),
            CollectionItems::Object(members, _) => NodeContent::Object(self.without_duplicates(members)),
        };
        let node = TreeNode { content, position };
        self.store_anchor(anchor, &node)?;
        self.add(node);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: SourcePosition) -> Result<(), AlreadyReported> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let problem = self.problem(at, "this alias refers to a value that contains it");
            return Err(self.report(problem));
        };
        self.check_nesting(node.depth(), at)?;
        self.charge_memory(node.memory_bytes(), at)?;
        self.add(node);
        Ok(())
    }

    /// Adds a complete value to the innermost open collection, or to the documents.
    fn add(&mut self, node: TreeNode) {
        match self.open.last_mut().map(|open| &mut open.items) {
            Some(CollectionItems::List(items)) => items.push(node),
            Some(CollectionItems::Object(members, name)) => {
                if let Some((name, position)) = name.take() {
                    members.push(ObjectMember { name, position, value: node });
                }
            }
            None if matches!(node.content, NodeContent::Null) => {}
            None => self.documents.push(node),
        }
    }

    /// Stores a copy of a value that has an anchor. The parser reports "no anchor" as zero.
    fn store_anchor(&mut self, anchor: usize, node: &TreeNode) -> Result<(), AlreadyReported> {
        if anchor != 0 {
            self.charge_memory(node.memory_bytes(), node.position)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }

    /// Checks that a list, an object or an alias of the given depth may start here.
    fn check_nesting(&self, depth: usize, at: SourcePosition) -> Result<(), AlreadyReported> {
        if matches!(self.open.last(), Some(OpenCollection { items: CollectionItems::Object(_, None), .. })) {
            return Err(self.report(self.problem(at, "a field name must be a plain string")));
        }
        if self.open.len() + depth >= MAX_DEPTH {
            let message = format!("lists and objects are nested more than {MAX_DEPTH} deep");
            return Err(self.report(self.problem(at, message)));
        }
        Ok(())
    }

    fn charge_memory(&mut self, weight: usize, at: SourcePosition) -> Result<(), AlreadyReported> {
        self.memory_bytes = self.memory_bytes.saturating_add(weight);
        if self.memory_bytes > MAX_TREE_BYTES {
            let message =
                format!("the documents of this file take more than {} MiB of memory", MAX_TREE_BYTES >> 20);
            let problem = self.problem(at, message).hint("every use of an alias counts");
            return Err(self.report(problem));
        }
        Ok(())
    }

    /// Returns the members of a complete object. Of duplicates it keeps the first and reports the others.
    fn without_duplicates(&self, members: Vec<ObjectMember>) -> Vec<ObjectMember> {
        let mut first: HashMap<String, SourcePosition> = HashMap::new();
        let mut unique_members = Vec::new();
        for member in members {
            match first.get(&member.name) {
                Some(position) => {
                    let place = SourceLocation {
                        path: self.path().field(&member.name),
                        ..self.location(member.position)
                    };
                    let problem =
                        ManifestProblem::new(place, format!("duplicate field {}", quoted(&member.name)));
                    self.report.add(problem.hint(format!("first defined at {position}")));
                }
                None => {
                    first.insert(member.name.clone(), member.position);
                    unique_members.push(member);
                }
            }
        }
        unique_members
    }

    /// The path of the value that is being read.
    fn path(&self) -> FieldPath {
        self.open.iter().fold(FieldPath::default(), |path, open| match &open.items {
            CollectionItems::List(items) => path.item(items.len()),
            CollectionItems::Object(_, Some((name, _))) => path.field(name),
            CollectionItems::Object(_, None) => path,
        })
    }

    fn location(&self, position: SourcePosition) -> SourceLocation {
        SourceLocation::at(&self.source.name, position)
    }

    fn problem(&self, at: SourcePosition, message: impl Into<String>) -> ManifestProblem {
        ManifestProblem::new(SourceLocation { path: self.path(), ..self.location(at) }, message)
    }

    fn report_tag(&self, at: SourcePosition) -> AlreadyReported {
        let problem = self.problem(at, "tags are not supported");
        self.report(problem.expected("a value without a tag, or with `!!str`"))
    }

    fn report(&self, problem: ManifestProblem) -> AlreadyReported {
        self.report.add(problem);
        AlreadyReported
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// Replaces surrogate pairs of JSON by `\U` escapes of YAML. Text after one on its line then has a column that is two
/// less than in the file.
fn merge_surrogates(text: &str) -> Cow<'_, str> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        // The length of an escape matters only for `\\`, which ends after its second character.
        let (piece, behind) = match surrogate_pair(escape) {
            Some((character, behind)) => (Cow::from(format!("\\U{:08x}", u32::from(character))), behind),
            None => {
                let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
                (Cow::from(&escape[..end]), &escape[end..])
            }
        };
        whole.push_str(&piece);
        rest = behind;
    }
    if whole.is_empty() { text.into() } else { (whole + rest).into() }
}

/// Returns the character of a surrogate pair at the start of a text, and the rest.
fn surrogate_pair(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let high = unit(text)?;
    let behind = text.get(6..)?;
    let low = unit(behind)?;
    let character = char::decode_utf16([high, low]).next()?.ok()?;
    (character.len_utf16() == 2).then_some((character, behind.get(6..)?))
}

fn position(marker: &Marker) -> SourcePosition {
    SourcePosition { line: marker.line(), column: marker.col() + 1 }
}
