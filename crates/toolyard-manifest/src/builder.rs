//! From a text to the trees of its documents, within bounds.
//!
//! JSON needs no reader of its own: but for one kind of escape it is YAML, tabs included.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::{
    problem::{FieldPath, Place, Position, Problem, quoted},
    report::Report,
    scalar,
    source::Source,
    tree::{Content, Member, Node},
};

/// How many lists and objects may stand in one another. No document of ours needs ten; the bound keeps the
/// functions that walk a tree from exhausting the stack.
const DEEPEST: usize = 64;

/// How many bytes the trees of a file may take. Aliases count as often as they are used, so that a few lines
/// of them cannot fill the memory.
const HEAVIEST: usize = 64 << 20;

/// The documents of a source, without the empty ones.
///
/// Problems go to the report. What is complete before a text stops making sense is still returned, so that
/// one run tells as much as it can.
pub(crate) fn documents(source: &Source, report: &Report<'_>) -> Vec<Node> {
    let mut builder = Builder::new(source, report);
    match builder.read(&source.text) {
        Ok(()) | Err(Reported) => builder.documents,
    }
}

/// Why the rest of a text is not read: the report says it.
struct Reported;

struct Builder<'a> {
    source: &'a Source,
    report: &'a Report<'a>,
    documents: Vec<Node>,
    /// The lists and objects around the next event, the outermost first.
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    weight: usize,
}

/// A list or an object that is not complete yet.
struct Open {
    items: Items,
    anchor: usize,
    position: Position,
}

enum Items {
    List(Vec<Node>),
    /// The members so far, and the name of the next one once it has been read.
    Object(Vec<Member>, Option<(String, Position)>),
}

impl<'a> Builder<'a> {
    fn new(source: &'a Source, report: &'a Report<'a>) -> Self {
        Self { source, report, documents: Vec::new(), open: Vec::new(), anchors: HashMap::new(), weight: 0 }
    }

    fn read(&mut self, text: &str) -> Result<(), Reported> {
        let text = if is_json(text) { without_surrogates(text) } else { text.into() };
        let mut parser = Parser::new_from_str(&text);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| {
                let message = format!("this is neither YAML nor JSON: {}", error.info());
                self.report(self.problem(position(error.marker()), message))
            })?;
            self.event(event, position(&span.start))?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, at: Position) -> Result<(), Reported> {
        match event {
            // An anchor reaches no further than its document.
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), at)?
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(Items::List(Vec::new()), anchor, tag.as_deref(), at)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.open(Items::Object(Vec::new(), None), anchor, tag.as_deref(), at)?;
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
        at: Position,
    ) -> Result<(), Reported> {
        let content = match tag {
            None => scalar::resolve(text, style),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Content::Text(text.to_owned()),
            Some(_) => return Err(self.tagged(at)),
        };
        let node = Node { content, position: at };
        self.spend(node.weight(), at)?;
        self.remember(anchor, &node)?;
        match self.open.last_mut() {
            Some(Open { items: Items::Object(_, name @ None), .. }) => *name = Some((text.to_owned(), at)),
            _ => self.add(node),
        }
        Ok(())
    }

    fn open(&mut self, items: Items, anchor: usize, tag: Option<&Tag>, at: Position) -> Result<(), Reported> {
        if tag.is_some() {
            return Err(self.tagged(at));
        }
        self.check_place(0, at)?;
        self.spend(size_of::<Member>(), at)?;
        self.open.push(Open { items, anchor, position: at });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Reported> {
        let Some(Open { items, anchor, position }) = self.open.pop() else { return Ok(()) };
        let content = match items {
            Items::List(items) => Content::List(items),
            Items::Object(members, _) => Content::Object(self.unique(members)),
        };
        let node = Node { content, position };
        self.remember(anchor, &node)?;
        self.add(node);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Reported> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let problem = self.problem(at, "this alias stands for a value that is not complete here");
            return Err(self.report(problem));
        };
        self.check_place(node.depth(), at)?;
        self.spend(node.weight(), at)?;
        self.add(node);
        Ok(())
    }

    /// Puts a complete value where it belongs.
    fn add(&mut self, node: Node) {
        match self.open.last_mut().map(|open| &mut open.items) {
            Some(Items::List(items)) => items.push(node),
            Some(Items::Object(members, name)) => {
                if let Some((name, position)) = name.take() {
                    members.push(Member { name, position, value: node });
                }
            }
            None if matches!(node.content, Content::Null) => {}
            None => self.documents.push(node),
        }
    }

    /// Keeps a copy of what has an anchor. Zero is the parser's way to say that there is none.
    fn remember(&mut self, anchor: usize, node: &Node) -> Result<(), Reported> {
        if anchor != 0 {
            self.spend(node.weight(), node.position)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(())
    }

    /// Whether a list, an object or an alias of the given depth may begin here.
    fn check_place(&self, depth: usize, at: Position) -> Result<(), Reported> {
        if matches!(self.open.last(), Some(Open { items: Items::Object(_, None), .. })) {
            return Err(self.report(self.problem(at, "the name of a field has to be a plain text")));
        }
        if self.open.len() + depth >= DEEPEST {
            let message = format!("lists and objects are nested more than {DEEPEST} deep");
            return Err(self.report(self.problem(at, message)));
        }
        Ok(())
    }

    fn spend(&mut self, weight: usize, at: Position) -> Result<(), Reported> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > HEAVIEST {
            let message =
                format!("the documents of this file take more than {} MiB of memory", HEAVIEST >> 20);
            let problem = self.problem(at, message).hint("an alias counts as often as it is used");
            return Err(self.report(problem));
        }
        Ok(())
    }

    /// The members of an object that has ended: of several with one name the first, and the others as
    /// problems.
    fn unique(&self, members: Vec<Member>) -> Vec<Member> {
        let mut first: HashMap<String, Position> = HashMap::new();
        let mut kept = Vec::new();
        for member in members {
            match first.get(&member.name) {
                Some(position) => {
                    let place =
                        Place { path: self.path().field(&member.name), ..self.place(member.position) };
                    let problem = Problem::new(place, format!("{} is given twice", quoted(&member.name)));
                    self.report.add(problem.hint(format!("it was first given at {position}")));
                }
                None => {
                    first.insert(member.name.clone(), member.position);
                    kept.push(member);
                }
            }
        }
        kept
    }

    /// The path of the value that is being read.
    fn path(&self) -> FieldPath {
        self.open.iter().fold(FieldPath::default(), |path, open| match &open.items {
            Items::List(items) => path.item(items.len()),
            Items::Object(_, Some((name, _))) => path.field(name),
            Items::Object(_, None) => path,
        })
    }

    fn place(&self, position: Position) -> Place {
        Place::at(&self.source.name, position)
    }

    fn problem(&self, at: Position, message: impl Into<String>) -> Problem {
        Problem::new(Place { path: self.path(), ..self.place(at) }, message)
    }

    fn tagged(&self, at: Position) -> Reported {
        let problem = self.problem(at, "tags are not supported");
        self.report(problem.expected("a value without a tag, or with `!!str`"))
    }

    fn report(&self, problem: Problem) -> Reported {
        self.report.add(problem);
        Reported
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// JSON in which a character is one escape: where JSON writes a pair of surrogates, YAML has `\U`. (What stands
/// behind one on its line is then two columns further to the left than it was.)
fn without_surrogates(text: &str) -> Cow<'_, str> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        // An escape is as long as it says; here it matters only that `\\` is over behind its second character.
        let (kept, behind) = match surrogates(escape) {
            Some((character, behind)) => (Cow::from(format!("\\U{:08x}", u32::from(character))), behind),
            None => {
                let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
                (Cow::from(&escape[..end]), &escape[end..])
            }
        };
        whole.push_str(&kept);
        rest = behind;
    }
    if whole.is_empty() { text.into() } else { (whole + rest).into() }
}

/// The character of a pair of surrogates with which a text begins, and what is behind them.
fn surrogates(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let high = unit(text)?;
    let behind = text.get(6..)?;
    let low = unit(behind)?;
    let character = char::decode_utf16([high, low]).next()?.ok()?;
    (character.len_utf16() == 2).then_some((character, behind.get(6..)?))
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}
