//! The handlers of the tools.

use toolyard_sdk::{Context, ToolFailure};

use super::RESULT_CHARS_META;
use super::args::{
    DeleteMemoryArgs, GetMemoryArgs, ListMemoryArgs, QueryMemoryArgs, SaveMemoryArgs, SearchMemoryArgs,
    non_blank, tags, ttl,
};
use crate::memory::access::{FullKey, MemoryAccess};
use crate::memory::query::QueryRunner;
use crate::memory::reader::{FoundText, MemoryReader};
use crate::memory::reading::range::LineRange;
use crate::memory::reading::{PartReader, SourceText};
use crate::memory::record::{MemoryRecord, NewEntry, RoomPolicy};
use crate::memory::search::MemorySearch;
use crate::memory::session_ids::OpenedResult;
use crate::memory::texts;
use crate::memory::working_memory::WorkingMemory;
use crate::memory::{MemoryCaller, MemoryNamespace};

/// Maximum number of entries that are examined across several namespaces.
const MAX_LISTED: usize = 1_000;

pub(super) struct MemoryHandlers {
    pub(super) memory: WorkingMemory,
    pub(super) reader: MemoryReader,
    pub(super) queries: QueryRunner,
    pub(super) parts: PartReader,
}

impl MemoryHandlers {
    async fn access(&self, context: &Context) -> Result<MemoryAccess, ToolFailure> {
        Ok(self.memory.access(MemoryCaller::of_context(context)).await?)
    }

    pub(super) async fn save(&self, context: &Context, args: SaveMemoryArgs) -> Result<String, ToolFailure> {
        let access = self.access(context).await?;
        let FullKey { namespace, path } = access.place(&args.key)?;
        let (value, category, tags) = (args.data.into_text(), non_blank(args.category), tags(args.tags));
        let ttl = ttl(args.ttl_minutes)?;
        let entry =
            NewEntry { category: category.as_deref(), tags: &tags, ttl, ..NewEntry::new(&path, &value) };
        let saved =
            self.memory.save_with(&access.address(), &namespace, &[entry], RoomPolicy::Refuse).await?;
        Ok(saved.first().map_or_else(String::new, |record| texts::saved(record, self.memory.now())))
    }

    pub(super) async fn get(&self, context: &Context, args: GetMemoryArgs) -> Result<String, ToolFailure> {
        let (access, part) = (self.access(context).await?, args.part()?);
        if part.is_whole() {
            let entry = self.reader.find_or_index(&access, &args.key).await?;
            return Ok(entry.map_or_else(|| texts::missing(&args.key), |entry| entry.value));
        }
        // The numbers of lines are those of the whole text.
        let text = match part.lines {
            Some(LineRange::Between(first, last)) => {
                self.reader.lines(&access, &args.key, first, last).await?
            }
            _ => self.reader.text(&access, &args.key).await?,
        };
        let Some(FoundText { text, lines_before, lines_after, index }) = text else {
            return Ok(texts::missing(&args.key));
        };
        let source = SourceText { text, lines_before, lines_after, is_part: index.is_some() };
        let part = self.parts.within(result_chars(context)).read(source, part).await?;
        Ok(match index.filter(|_| !part.has_match) {
            Some(index) => format!("{} {}", part.text, texts::whole_text(&index)),
            None => part.text,
        })
    }

    pub(super) async fn delete(
        &self,
        context: &Context,
        args: DeleteMemoryArgs,
    ) -> Result<String, ToolFailure> {
        for key in self.access(context).await?.candidates(&args.key)? {
            if let Some(record) = self.memory.delete(&key).await? {
                return Ok(texts::deleted(&record));
            }
        }
        Ok(texts::missing(&args.key))
    }

    pub(super) async fn list(&self, context: &Context, args: ListMemoryArgs) -> Result<String, ToolFailure> {
        let access = self.access(context).await?;
        let prefix = non_blank(args.namespace);
        let records = self.within(&access, prefix.as_deref()).await?;
        Ok(texts::entry_list(&records, self.memory.now(), prefix.as_deref(), access.own().ok()))
    }

    pub(super) async fn search(
        &self,
        context: &Context,
        args: SearchMemoryArgs,
    ) -> Result<String, ToolFailure> {
        let access = self.access(context).await?;
        let prefix = non_blank(args.namespace);
        let records = match prefix.as_deref().and_then(|prefix| access.open_result(prefix)) {
            Some(result) => self.parts_of(&result).await?,
            None => self.within(&access, prefix.as_deref()).await?,
        };
        let search = MemorySearch {
            query: args.query.unwrap_or_default(),
            category: non_blank(args.category),
            tags: tags(args.tags),
        };
        let hits = search.among(&self.memory, self.parts.runner(), records).await?;
        Ok(texts::search_result(&hits, self.memory.now(), prefix.as_deref(), access.own().ok()))
    }

    pub(super) async fn query(
        &self,
        context: &Context,
        args: QueryMemoryArgs,
    ) -> Result<String, ToolFailure> {
        let access = self.access(context).await?;
        let Some(found) = self.reader.whole(&access, &args.key, self.queries.input_bytes()).await? else {
            return Ok(texts::missing(&args.key));
        };
        Ok(self.queries.within(result_chars(context)).run(found.text, args.expression).await?)
    }

    /// Returns the entries of a list or search: those of the caller's own namespace, or those whose path begins with
    /// `prefix`, which is a full path that the caller can access, or else a path in its own namespace.
    async fn within(
        &self,
        access: &MemoryAccess,
        prefix: Option<&str>,
    ) -> Result<Vec<MemoryRecord>, ToolFailure> {
        let own = access.own()?;
        let Some(prefix) = prefix else { return Ok(self.memory.list(own).await?) };
        let prefix = prefix.trim_end_matches('/').to_lowercase();
        let segments: Vec<_> = prefix.split('/').collect();
        let records = match segments.as_slice() {
            [kind, owner, ..] => {
                let reached = MemoryNamespace::from_text(&format!("{kind}/{owner}"));
                match reached.filter(|namespace| access.includes(namespace)) {
                    Some(namespace) => self.memory.list(&namespace).await?,
                    None => Vec::new(),
                }
            }
            _ => {
                self.memory
                    .list_all(&format!("{prefix}/"), |namespace| access.includes(namespace), MAX_LISTED)
                    .await?
            }
        };
        let begins = |records: Vec<MemoryRecord>, prefix: &str| -> Vec<MemoryRecord> {
            records.into_iter().filter(|record| lies_in(&record.key, prefix)).collect()
        };
        let matches = begins(records, &prefix);
        if !matches.is_empty() {
            return Ok(matches);
        }
        let records = self.memory.list(own).await?;
        Ok(begins(records, &format!("{own}/{prefix}")))
    }

    /// Returns the entries of a result that its id has opened, with the keys that open them.
    async fn parts_of(&self, result: &OpenedResult) -> Result<Vec<MemoryRecord>, ToolFailure> {
        let mut records = self.memory.list(&result.key.namespace).await?;
        records.retain_mut(|record| match record.result_base() {
            Some(base) if base.eq_ignore_ascii_case(&result.base) => {
                record.key = format!("{}{}", result.sealed_base, &record.key[base.len()..]);
                true
            }
            _ => false,
        });
        Ok(records)
    }
}

/// Returns the maximum length of the caller's results in characters.
fn result_chars(context: &Context) -> usize {
    let chars = context.meta(RESULT_CHARS_META).and_then(|chars| chars.as_u64());
    chars.map_or(usize::MAX, |chars| usize::try_from(chars).unwrap_or(usize::MAX))
}

/// Returns `true` if a path has a prefix, ignoring case. A namespace must match whole segments: `session/a` does not
/// contain `session/ab`.
fn lies_in(path: &str, above: &str) -> bool {
    let path = path.to_lowercase();
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/') || above.matches('/').count() > 1;
    path.strip_prefix(above).is_some_and(is_below)
}
