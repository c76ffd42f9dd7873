//! The definitions that a schema needs, as text, within a bound.
//!
//! The rule: of a schema that is too large, what is optional and lies deepest is replaced by an open object, until the
//! rest fits. What is required, and all that is required in it, goes last. No name of a property is lost.

use std::collections::{BTreeMap, HashSet};

use super::{Edge, Schemas};

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

impl Schemas<'_> {
    /// All that these references need, directly or not, in at most `room` bytes as far as that goes.
    pub(crate) fn definitions(&mut self, edges: &[Edge], room: usize) -> Definitions {
        let mut fates: BTreeMap<usize, Fate> = BTreeMap::new();
        let mut left = room;
        let required: Vec<usize> = edges.iter().filter(|edge| edge.required).map(|edge| edge.unit).collect();
        let all = edges.iter().map(|edge| edge.unit).collect();
        self.take_layers(required, true, room, &mut left, &mut fates);
        self.take_layers(all, false, room, &mut left, &mut fates);
        let mut out = Definitions::default();
        for (unit, fate) in fates {
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
    fn take_layers(
        &mut self,
        first: Vec<usize>,
        only_required: bool,
        largest: usize,
        left: &mut usize,
        fates: &mut BTreeMap<usize, Fate>,
    ) {
        let mut layer = first;
        let mut seen: HashSet<usize> = layer.iter().copied().collect();
        let mut is_full = false;
        while !layer.is_empty() {
            let mut next = Vec::new();
            for unit in layer {
                let size = self.written(unit, largest).text.len() + self.units[unit].name.len() + 4;
                match fates.get(&unit) {
                    Some(Fate::Whole) => {}
                    _ if !is_full && size <= *left => {
                        *left -= size;
                        fates.insert(unit, Fate::Whole);
                    }
                    _ => {
                        is_full = true;
                        fates.insert(unit, Fate::Open);
                        *left = left.saturating_sub(self.open(unit).len() + self.units[unit].name.len() + 4);
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

    /// What stands for a definition that is left out.
    fn open(&self, unit: usize) -> &'static str {
        let node = self.units[unit].at.node;
        let is_object = node.text("type") == Some("object") || node.get("properties").is_some();
        if is_object { r#"{"type":"object"}"# } else { "{}" }
    }
}
