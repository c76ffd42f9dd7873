//! The definitions that a schema needs, as text, within a bound.
//!
//! The rule: of a schema that is too large, what is optional and lies deepest is replaced by an open object, until the
//! rest fits. What is required, and all that is required in it, goes last. The names of what is required stay even there.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::{Direction, Edge, Schemas};
use crate::document::Node;

/// The definitions of one schema.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// The members of `$defs`, without the braces.
    pub(crate) text: String,
    /// Whether some of them are open objects, for size.
    pub(crate) is_pruned: bool,
}

/// What becomes of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Whole,
    Open,
}

/// What has been taken, and how much room is left, in bytes.
struct Taken {
    fates: BTreeMap<usize, Fate>,
    left: usize,
}

impl Taken {
    /// Takes what is new of these as open objects.
    fn take(&mut self, cost: usize, units: &[usize]) {
        self.left = self.left.saturating_sub(cost);
        for unit in units {
            self.fates.entry(*unit).or_insert(Fate::Open);
        }
    }
}

impl Schemas<'_> {
    /// All that these references need, directly or not, in at most `room` bytes as far as that goes.
    pub(crate) fn definitions(&mut self, edges: &[Edge], room: usize) -> Definitions {
        let mut taken = Taken { fates: BTreeMap::new(), left: room };
        let required: Vec<usize> = edges.iter().filter(|edge| edge.required).map(|edge| edge.unit).collect();
        let all: Vec<usize> = edges.iter().map(|edge| edge.unit).collect();
        let open = self.open_cost(&all, &taken);
        taken.take(open, &all);
        self.take_layers(required, true, room, &mut taken);
        self.take_layers(all, false, room, &mut taken);
        let mut out = Definitions::default();
        for (unit, fate) in taken.fates {
            if !out.text.is_empty() {
                out.text.push(',');
            }
            let written = self.units[unit].written.as_ref().filter(|_| fate == Fate::Whole);
            let text = written.map_or(self.open(unit), |written| &written.text);
            out.is_pruned |= fate == Fate::Open;
            // A name has no character that JSON would have to escape.
            out.text.extend(["\"", &self.units[unit].name, "\":", text]);
        }
        out
    }

    /// Takes what is referred to, layer by layer, until one does not fit as a whole: of it what fits is taken, and the rest
    /// stays open.
    fn take_layers(&mut self, first: Vec<usize>, only_required: bool, largest: usize, taken: &mut Taken) {
        let mut layer = first;
        let mut seen: HashSet<usize> = layer.iter().copied().collect();
        let mut is_full = false;
        while !layer.is_empty() {
            let mut next = Vec::new();
            for unit in layer {
                if taken.fates.get(&unit) != Some(&Fate::Whole) {
                    is_full = is_full || !self.take(unit, largest, taken);
                    if is_full {
                        continue;
                    }
                }
                let edges = self.written(unit, largest).edges.iter();
                let further = edges.filter(|edge| edge.required || !only_required).map(|edge| edge.unit);
                next.extend(further.filter(|unit| seen.insert(*unit)));
            }
            layer = next;
        }
    }

    /// Takes a definition as a whole if it fits, with what it refers to, which is open so far: that takes room as well.
    fn take(&mut self, unit: usize, largest: usize, taken: &mut Taken) -> bool {
        let written = self.written(unit, largest);
        let (size, further) =
            (written.text.len(), written.edges.iter().map(|edge| edge.unit).collect::<Vec<_>>());
        let cost = (size + self.open_cost(&further, taken)).saturating_sub(self.open(unit).len());
        if cost > taken.left {
            return false;
        }
        taken.take(cost, &further);
        taken.fates.insert(unit, Fate::Whole);
        true
    }

    /// How much room those of the definitions that are new take as open objects, in bytes.
    fn open_cost(&self, units: &[usize], taken: &Taken) -> usize {
        let new: HashSet<&usize> = units.iter().filter(|unit| !taken.fates.contains_key(unit)).collect();
        // Two quotes, a colon and a comma.
        new.into_iter().map(|unit| self.open(*unit).len() + self.units[*unit].name.len() + 4).sum()
    }

    /// What stands for a definition that is left out.
    fn open(&self, unit: usize) -> &str {
        &self.units[unit].open
    }
}

/// An open object, which still says what it has to have; anything for what is no object.
pub(super) fn opened(node: &Node<'_>, direction: Direction) -> String {
    let is_object = node.text("type") == Some("object") || node.get("properties").is_some();
    if !is_object {
        return "{}".to_owned();
    }
    let properties = node.get("properties");
    let is_sent = |name: &&str| {
        let property = properties.and_then(|properties| properties.get(name));
        !property.is_some_and(|property| property.is("readOnly"))
    };
    let required: Vec<&str> = node.list("required").iter().filter_map(Node::as_str).filter(is_sent).collect();
    match required.is_empty() || direction == Direction::Response {
        true => r#"{"type":"object"}"#.to_owned(),
        false => json!({"type": "object", "required": required}).to_string(),
    }
}
