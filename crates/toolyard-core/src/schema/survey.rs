//! An upper bound on the cost of a schema, computed without compiling it.
//!
//! A validator spends a step of its [`StepMeter`](super::meter::StepMeter) at every access to a value. The survey
//! covers work without an access: compilation, and branches (`anyOf`, `$ref` and so on) that end in `true` or `false`.
//! Both can be exponential in the size of a malicious schema.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::keywords::{
    ANCHORS, below, in_place, inner, is_about_unevaluated, is_meta_schema, last_segment, references, texts,
};
use super::meter::{StepWeights, TextWeight};
use super::pattern::{MAX_STATES, PatternSize};
use crate::uri_template::decode;

/// Maximum number of schemas that apply to one value, however they are reached: a union of unions has some hundred.
const MAX_BRANCHES: u64 = 4096;

/// Maximum nesting of schemas that apply to one value. Cycles exceed it.
const MAX_BRANCH_DEPTH: u64 = 64;

/// Maximum nesting of schemas: the compiler takes six kilobytes of stack for each.
const MAX_NESTED_SCHEMAS: usize = 128;

/// Maximum nesting of schemas with references: the compiler follows up to nine references before it unwinds its stack.
const MAX_DEPTH_WITH_REFERENCES: usize = 32;

/// Maximum number of compiled schemas; some are compiled several times.
const MAX_COMPILED: u64 = 50_000;

/// Maximum length of all paths in a compiled schema: each keyword has its own.
const MAX_PATH_BYTES: u64 = 32 << 20;

/// Maximum size of all patterns together.
pub(super) const MAX_ALL_STATES: u64 = 20_000;

/// Maximum number of schemas with an `$id`, on which the meaning of references depends.
const MAX_RESOURCES: usize = 64;

/// Maximum nesting of compilations for `unevaluated*`, which unwind their stack last.
const MAX_COMPILED_DEPTH: usize = 160;

/// Branches of a meta-schema, which can be referenced without being present.
const META_SCHEMA: BranchCount = BranchCount { evaluated: 64, marked: 64, options: 64, depth: 16 };

/// A schema that costs too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooCostly {
    /// Compilation or validation time.
    #[error("more than {MAX_BRANCHES} of its branches apply to one value")]
    Branches,
    /// Stack, or unbounded time.
    #[error("more than {MAX_BRANCH_DEPTH} of its branches are inside one another, or one is inside itself")]
    BranchDepth,
    /// Stack.
    #[error("its parts are nested too deeply")]
    Depth,
    /// Memory.
    #[error("it has more than {MAX_COMPILED} parts")]
    Parts,
    /// Memory.
    #[error("the names of its properties or definitions are too long")]
    Paths,
    /// Memory, and time at each byte of a string.
    #[error(
        "its patterns match more than {MAX_ALL_STATES} characters, or one of them more than {MAX_STATES}"
    )]
    Patterns,
    /// Resolution of references.
    #[error("more than {MAX_RESOURCES} of its parts have an `$id`")]
    Resources,
}

/// The cost of applying a schema to one value.
#[derive(Debug, Clone, Copy, Default)]
struct BranchCount {
    /// Schemas that are evaluated.
    evaluated: u64,
    /// Schemas that are evaluated once more, for an `unevaluated*` around them.
    marked: u64,
    /// Values of `enum`.
    options: u64,
    depth: u64,
}

impl BranchCount {
    fn and(self, other: Self) -> Self {
        Self {
            evaluated: self.evaluated.saturating_add(other.evaluated),
            marked: self.marked.saturating_add(other.marked).saturating_add(other.evaluated),
            options: self.options.saturating_add(other.options),
            depth: self.depth.max(other.depth + 1),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            evaluated: self.evaluated.max(other.evaluated),
            marked: self.marked.max(other.marked),
            options: self.options.max(other.options),
            depth: self.depth.max(other.depth),
        }
    }
}

/// A traversal of a schema.
pub(super) struct SchemaSurvey<'s> {
    /// Schemas that references are relative to; the first is the root.
    resources: Vec<&'s Value>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    /// Resource that the references of a schema are relative to. `None`: it depends on the draft.
    bases: HashMap<*const Value, Option<&'s Value>>,
    id_bytes: u64,
    /// Keyword of identifiers in the draft.
    id: &'static str,
    /// All schemas, each once.
    schemas: Vec<&'s Value>,
    seen: HashSet<*const Value>,
    targets: HashSet<*const Value>,
    references: u64,
    path_bytes: u64,
    deepest: usize,
    branches: HashMap<*const Value, BranchCount>,
    compiled_again: HashMap<*const Value, u64>,
}

impl<'s> SchemaSurvey<'s> {
    /// Traverses a schema and returns the steps of one access to a value.
    pub(super) fn weights(root: &'s Value) -> Result<StepWeights, TooCostly> {
        let mut survey = Self {
            resources: vec![root],
            anchors: HashMap::new(),
            bases: HashMap::new(),
            id_bytes: 0,
            id: if texts(root, &["$schema"]).any(|draft| draft.contains("/draft-04/")) {
                "id"
            } else {
                "$id"
            },
            schemas: Vec::new(),
            seen: HashSet::new(),
            targets: HashSet::new(),
            references: 0,
            path_bytes: 0,
            deepest: 0,
            branches: HashMap::new(),
            compiled_again: HashMap::new(),
        };
        survey.collect(root)?;
        let most = survey.most_branches(survey.schemas.clone())?;
        survey.check_compile_limits(root)?;
        let names: Vec<_> = survey.schemas.iter().filter_map(|schema| schema.get("propertyNames")).collect();
        let names = survey.most_branches(names)?;
        Ok(survey.patterns()?.weights(most, names))
    }

    /// Collects every schema: those in known places, and targets of references.
    fn collect(&mut self, root: &'s Value) -> Result<(), TooCostly> {
        self.visit(root, Some(root), 0, 0)?;
        let mut next = 0;
        while let Some(schema) = self.schemas.get(next).copied() {
            for (keyword, reference) in references(schema) {
                self.references += 1;
                for target in self.reference_targets(schema, keyword, reference) {
                    self.targets.insert(std::ptr::from_ref(target));
                    self.visit(target, None, 0, reference.len() as u64)?;
                }
            }
            next += 1;
        }
        let ids = self.references.saturating_mul(self.id_bytes);
        match self.path_bytes.saturating_add(ids) > MAX_PATH_BYTES {
            true => Err(TooCostly::Paths),
            false if self.references > 0 && self.deepest > MAX_DEPTH_WITH_REFERENCES => Err(TooCostly::Depth),
            false => Ok(()),
        }
    }

    /// Records a schema and its inner ones. `around` is its resource, `path` the length of the path to it.
    fn visit(
        &mut self,
        schema: &'s Value,
        around: Option<&'s Value>,
        depth: usize,
        path: u64,
    ) -> Result<(), TooCostly> {
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        if !self.seen.insert(std::ptr::from_ref(schema)) {
            return Ok(());
        }
        if depth > MAX_NESTED_SCHEMAS {
            return Err(TooCostly::Depth);
        }
        self.schemas.push(schema);
        self.deepest = self.deepest.max(depth);
        self.path_bytes = self.path_bytes.saturating_add((path + 20) * (1 + keywords.len() as u64));
        let base = self.note_identifiers(schema, around);
        match (self.resources.len() > MAX_RESOURCES, self.schemas.len() as u64 > MAX_COMPILED) {
            (true, _) => return Err(TooCostly::Resources),
            (_, true) => return Err(TooCostly::Parts),
            _ => {}
        }
        inner(schema)
            .try_for_each(|(name, inner)| self.visit(inner, base, depth + 1, path + 20 + name.len() as u64))
    }

    /// Records the identifiers of a schema, and returns its resource.
    fn note_identifiers(&mut self, schema: &'s Value, around: Option<&'s Value>) -> Option<&'s Value> {
        for anchor in texts(schema, &ANCHORS) {
            self.anchors.entry(anchor).or_default().push(schema);
        }
        let id = schema.get(self.id).and_then(Value::as_str);
        self.id_bytes += id.map_or(0, str::len) as u64;
        let is_root = std::ptr::eq(self.resources[0], schema);
        let base = match id.map(|id| (id, id.strip_prefix('#'))) {
            // Form of anchors in drafts 4 to 7.
            Some((_, Some(anchor))) => {
                self.anchors.entry(anchor).or_default().push(schema);
                around
            }
            Some(_) if !is_root => {
                self.resources.push(schema);
                // Beside a reference it counts in later drafts only.
                references(schema).next().is_none().then_some(schema)
            }
            _ => around,
        };
        self.bases.insert(std::ptr::from_ref(schema), base);
        base
    }

    /// Returns the possible targets of a reference: one, unless it depends on the draft or the dynamic scope.
    fn reference_targets(&self, schema: &'s Value, keyword: &str, reference: &str) -> Vec<&'s Value> {
        if is_meta_schema(reference) {
            return Vec::new();
        }
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let within = self.resources_called(base, schema);
        let fragment = decode(fragment);
        match &*fragment {
            "" if keyword == "$recursiveRef" => self.resources.clone(),
            "" => within,
            pointer if pointer.starts_with('/') => {
                within.iter().filter_map(|resource| resource.pointer(pointer)).collect()
            }
            anchor => {
                let is_within = |schema: &Value| match self.base_of(schema) {
                    Some(base) => within.iter().any(|resource| std::ptr::eq(*resource, base)),
                    None => true,
                };
                let called = self.anchors.get(anchor).into_iter().flatten().copied();
                called.filter(|schema| keyword == "$dynamicRef" || is_within(schema)).collect()
            }
        }
    }

    fn base_of(&self, schema: &Value) -> Option<&'s Value> {
        self.bases.get(&std::ptr::from_ref(schema)).copied().flatten()
    }

    /// Returns the resources that a URI in a schema may mean: whatever its base, the last segment is that of the
    /// absolute URI.
    fn resources_called(&self, uri: &str, schema: &Value) -> Vec<&'s Value> {
        if uri.is_empty() {
            return self.base_of(schema).map_or_else(|| self.resources.clone(), |base| vec![base]);
        }
        let is_called = |resource: &&&Value| {
            match (resource.get(self.id).and_then(Value::as_str).map(last_segment), last_segment(uri)) {
                (Some(Some(end)), Some(wanted)) => end.eq_ignore_ascii_case(wanted),
                // The root has an id of the validator's, which ends with a slash.
                (None, Some(_)) => false,
                _ => true,
            }
        };
        self.resources.iter().filter(is_called).copied().collect()
    }

    fn most_branches(&mut self, schemas: Vec<&'s Value>) -> Result<BranchCount, TooCostly> {
        let mut all = schemas.into_iter().map(|schema| self.branches(schema, 0));
        all.try_fold(BranchCount::default(), |most, branches| Ok(most.or(branches?)))
    }

    /// Returns the cost of applying a schema to one value.
    fn branches(&mut self, schema: &'s Value, depth: u64) -> Result<BranchCount, TooCostly> {
        if let Some(known) = self.branches.get(&std::ptr::from_ref(schema)) {
            return Ok(*known);
        }
        if depth > MAX_BRANCH_DEPTH {
            return Err(TooCostly::BranchDepth);
        }
        let options = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let mut count = BranchCount { evaluated: 1, marked: 1, options, depth: 0 };
        for branch in in_place(schema) {
            count = count.and(self.branches(branch, depth + 1)?);
        }
        for (keyword, reference) in references(schema) {
            let mut target_count =
                if is_meta_schema(reference) { META_SCHEMA } else { BranchCount::default() };
            for target in self.reference_targets(schema, keyword, reference) {
                target_count = target_count.or(self.branches(target, depth + 1)?);
            }
            count = count.and(target_count);
        }
        if is_about_unevaluated(schema) {
            count.evaluated = count.evaluated.saturating_add(count.marked);
        }
        self.branches.insert(std::ptr::from_ref(schema), count);
        match (count.evaluated > MAX_BRANCHES, count.depth > MAX_BRANCH_DEPTH) {
            (true, _) => Err(TooCostly::Branches),
            (_, true) => Err(TooCostly::BranchDepth),
            _ => Ok(count),
        }
    }

    /// Checks the limits of compilation. A referenced schema is compiled once, except where `unevaluated*` needs it
    /// again.
    fn check_compile_limits(&mut self, root: &'s Value) -> Result<(), TooCostly> {
        let targets = self.schemas.clone().into_iter();
        let targets = targets.filter(|schema| self.targets.contains(&std::ptr::from_ref(*schema)));
        let begins: Vec<_> = std::iter::once(root).chain(targets).collect();
        let mut sum = 0_u64;
        for begin in begins {
            sum = sum.saturating_add(self.compiled(begin, 0)?);
        }
        if sum > MAX_COMPILED { Err(TooCostly::Parts) } else { Ok(()) }
    }

    /// Returns the number of schemas that are compiled for a schema.
    fn compiled(&mut self, schema: &'s Value, depth: usize) -> Result<u64, TooCostly> {
        let mut sum = 1_u64;
        for (_, inner) in inner(schema) {
            sum = sum.saturating_add(self.compiled(inner, depth + 1)?);
        }
        if is_about_unevaluated(schema) {
            sum = sum.saturating_add(self.compiled_again(schema, depth)?);
        }
        Ok(sum)
    }

    /// Returns the number of schemas that are compiled once more for an `unevaluated*` around them.
    fn compiled_again(&mut self, schema: &'s Value, depth: usize) -> Result<u64, TooCostly> {
        if let Some(known) = self.compiled_again.get(&std::ptr::from_ref(schema)) {
            return Ok(*known);
        }
        if depth > MAX_COMPILED_DEPTH {
            return Err(TooCostly::Depth);
        }
        // A cycle ends here, as it does in the compiler.
        self.compiled_again.insert(std::ptr::from_ref(schema), 0);
        let mut sum = 1_u64;
        for inner in in_place(schema).chain(below(schema)) {
            sum = sum.saturating_add(self.compiled(inner, depth + 1)?);
        }
        let targets = |(keyword, reference)| self.reference_targets(schema, keyword, reference);
        let targets: Vec<_> = references(schema).flat_map(targets).collect();
        for branch in in_place(schema).chain(targets) {
            sum = sum.saturating_add(self.compiled_again(branch, depth + 1)?);
        }
        self.compiled_again.insert(std::ptr::from_ref(schema), sum);
        if sum > MAX_COMPILED { Err(TooCostly::Parts) } else { Ok(sum) }
    }

    fn patterns(&self) -> Result<PatternSurvey<'s>, TooCostly> {
        let mut patterns = PatternSurvey::default();
        for schema in &self.schemas {
            for pattern in texts(schema, &["pattern"]) {
                patterns.of_strings(pattern)?;
            }
            for pattern in
                schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
            {
                patterns.of_names(pattern)?;
            }
        }
        Ok(patterns)
    }
}

/// The patterns of a schema. The engine compiles each text once.
#[derive(Default)]
struct PatternSurvey<'s> {
    sizes: HashMap<&'s str, PatternSize>,
    all: u64,
    largest: u64,
    backtracks: bool,
    /// Size of all patterns that a name is matched against, and the number of those that backtrack.
    names: TextWeight,
}

impl<'s> PatternSurvey<'s> {
    fn size(&mut self, pattern: &'s str) -> Result<PatternSize, TooCostly> {
        if let Some(known) = self.sizes.get(pattern) {
            return Ok(*known);
        }
        let size = PatternSize::of(pattern);
        self.sizes.insert(pattern, size);
        self.all = self.all.saturating_add(size.states);
        self.largest = self.largest.max(size.states);
        self.backtracks |= size.backtracks;
        match self.all > MAX_ALL_STATES || self.largest > MAX_STATES {
            true => Err(TooCostly::Patterns),
            false => Ok(size),
        }
    }

    fn of_strings(&mut self, pattern: &'s str) -> Result<(), TooCostly> {
        self.size(pattern).map(drop)
    }

    fn of_names(&mut self, pattern: &'s str) -> Result<(), TooCostly> {
        let size = self.size(pattern)?;
        self.names.linear = self.names.linear.saturating_add(size.states);
        self.names.backtracking += u64::from(size.backtracks);
        Ok(())
    }

    fn weights(&self, most: BranchCount, names: BranchCount) -> StepWeights {
        // To read a text costs something without any pattern.
        let text = TextWeight { linear: 4 + self.largest, backtracking: u64::from(self.backtracks) };
        let checked = names.evaluated;
        StepWeights {
            child: 1 + most.evaluated / 64,
            name: checked.saturating_mul(4).saturating_add(names.options),
            name_text: TextWeight {
                linear: 4 + self.names.linear.saturating_add(checked.saturating_mul(text.linear)),
                backtracking: self.names.backtracking + checked * text.backtracking,
            },
            text,
        }
    }
}
