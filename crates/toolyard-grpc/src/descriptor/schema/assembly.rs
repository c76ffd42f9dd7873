//! Assembles the schema of a tool from the texts of its types.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::fragment::{Fragment, FragmentWriter, Piece, SMALL_ENUM_BYTES, described, quoted};
use crate::descriptor::types::{TypeId, TypePool};

/// Maximum nesting of types within each other.
const MAX_INLINE_DEPTH: usize = 6;

/// Size of a definition in addition to its name and its keywords.
const DEFINITION_BYTES: usize = r#","":{}"#.len();

/// Size of the keyword `$defs`.
const DEFINITIONS_BYTES: usize = 256;

/// The parts of a schema.
pub(super) struct AssembledSchema {
    /// Keywords of the root.
    pub(super) body: String,
    /// Members of `$defs`.
    pub(super) definitions: String,
    /// True if some types are open objects because of the limit.
    pub(super) is_pruned: bool,
}

/// The types of a schema, and the remaining budget in bytes.
pub(super) struct Assembly<'p> {
    pool: &'p TypePool,
    root: TypeId,
    budget: usize,
    types: HashMap<TypeId, UsedType>,
    /// Selected types, each after the first one that refers to it.
    order: Vec<TypeId>,
    is_pruned: bool,
}

struct UsedType {
    references: usize,
    /// The first type that refers to it.
    parent: TypeId,
    /// Its text; `None` if it did not fit.
    fragment: Option<Rc<Fragment>>,
    depth: usize,
    /// Name of its definition, if it has one.
    definition: Option<String>,
}

impl<'p> Assembly<'p> {
    pub(super) fn new(pool: &'p TypePool, root: TypeId, max_bytes: usize) -> Self {
        let budget = max_bytes.saturating_sub(DEFINITIONS_BYTES);
        Self { pool, root, budget, types: HashMap::new(), order: Vec::new(), is_pruned: false }
    }

    pub(super) fn assemble(
        mut self,
        root: &Rc<Fragment>,
        writer: &mut FragmentWriter<'_>,
    ) -> AssembledSchema {
        self.budget = self.budget.saturating_sub(root.bytes);
        self.select(root, writer);
        self.name_definitions();
        let mut body = String::with_capacity(root.bytes);
        self.write_pieces(root, &mut body);
        let mut definitions = String::new();
        for id in &self.order {
            let used = &self.types[id];
            if let (Some(name), Some(fragment)) = (&used.definition, &used.fragment) {
                if !definitions.is_empty() {
                    definitions.push(',');
                }
                definitions.push_str(&quoted(name));
                definitions.push(':');
                self.write_whole(fragment, &fragment.description, "", &mut definitions);
            }
        }
        AssembledSchema { body, definitions, is_pruned: self.is_pruned }
    }

    /// Selects the types that fit, layer by layer.
    fn select(&mut self, root: &Rc<Fragment>, writer: &mut FragmentWriter<'_>) {
        let mut pending = VecDeque::from([(self.root, root.clone())]);
        while let Some((parent, fragment)) = pending.pop_front() {
            for piece in &fragment.pieces {
                let Piece::Type { id, .. } = piece else { continue };
                if let Some(used) = self.types.get_mut(id) {
                    used.references += 1;
                    continue;
                }
                let own = writer.fragment(*id);
                let cost =
                    |own: &Rc<Fragment>| own.bytes + DEFINITION_BYTES + full_name(self.pool, *id).len();
                let fitting = own.filter(|own| cost(own) <= self.budget);
                match &fitting {
                    Some(own) => {
                        self.budget -= cost(own);
                        self.order.push(*id);
                        pending.push_back((*id, own.clone()));
                    }
                    None => self.is_pruned = true,
                }
                let used = UsedType { references: 1, parent, fragment: fitting, depth: 0, definition: None };
                self.types.insert(*id, used);
            }
        }
    }

    /// Gives a definition to each type with several references, to the root if it is recursive, and to types that would
    /// be nested too deeply.
    fn name_definitions(&mut self) {
        let mut names = HashSet::new();
        for index in 0..self.order.len() {
            let id = self.order[index];
            let parent = self.types[&id].parent;
            let depth =
                self.types.get(&parent).filter(|_| parent != self.root).map_or(0, |used| used.depth) + 1;
            let Some(used) = self.types.get_mut(&id) else { continue };
            let is_small = matches!(id, TypeId::Enum(_))
                && used.fragment.as_ref().is_some_and(|fragment| fragment.bytes <= SMALL_ENUM_BYTES);
            let is_shared = used.references > 1 && !is_small;
            if is_shared || id == self.root || depth > MAX_INLINE_DEPTH {
                used.definition = Some(definition_name(full_name(self.pool, id), &mut names));
            } else {
                used.depth = depth;
            }
        }
    }

    fn write_pieces(&self, fragment: &Fragment, out: &mut String) {
        for piece in &fragment.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Type { id, description, keywords } => {
                    self.write_type(*id, description, keywords, out);
                }
            }
        }
    }

    /// Recursion ends at types with definitions.
    fn write_type(&self, id: TypeId, description: &str, keywords: &str, out: &mut String) {
        let Some(UsedType { fragment: Some(fragment), definition, .. }) = self.types.get(&id) else {
            let kind = if matches!(id, TypeId::Message(_)) { r#","type":"object""# } else { "" };
            let members = format!("{kind}{}{keywords}", described(description));
            out.push('{');
            out.push_str(members.trim_start_matches(','));
            return out.push('}');
        };
        match definition {
            Some(name) => {
                out.push_str(r##"{"$ref":"#/$defs/"##);
                out.push_str(name);
                out.push('"');
                out.push_str(&described(description));
                out.push_str(keywords);
                out.push('}');
            }
            None if description.is_empty() => {
                self.write_whole(fragment, &fragment.description, keywords, out)
            }
            None => self.write_whole(fragment, description, keywords, out),
        }
    }

    fn write_whole(&self, fragment: &Fragment, description: &str, keywords: &str, out: &mut String) {
        out.push('{');
        self.write_pieces(fragment, out);
        out.push_str(&fragment.exclusion);
        out.push_str(&described(format!("{description}{}", fragment.values).trim_start()));
        out.push_str(keywords);
        out.push('}');
    }
}

fn full_name(pool: &TypePool, id: TypeId) -> &str {
    match id {
        TypeId::Message(message) => &pool.message(message).full_name,
        TypeId::Enum(enumeration) => &pool.enumeration(enumeration).full_name,
    }
}

/// Returns the name of a definition: that of its type without the package, or else with it.
fn definition_name(full_name: &str, names: &mut HashSet<String>) -> String {
    let legal = |name: &str| {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        name.chars().map(|c| if is_legal(c) { c } else { '_' }).collect::<String>()
    };
    let short = full_name.rsplit_once('.').map_or(full_name, |(_, short)| short);
    let numbered = (2..).map(|number| format!("{}_{number}", legal(full_name)));
    let all = [legal(short), legal(full_name)].into_iter().chain(numbered);
    let name = all.into_iter().find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(name.clone());
    name
}
