//! What the tools do.

use toolyard_sdk::{Context, ToolFailure};

use super::args::{DeleteArgs, GetArgs, ListArgs, QueryArgs, SaveArgs, SearchArgs, said, tags, ttl};
use crate::memory::query::Queries;
use crate::memory::reach::{FullKey, Reach};
use crate::memory::record::{NewEntry, Record};
use crate::memory::search::Search;
use crate::memory::texts;
use crate::memory::working::WorkingMemory;
use crate::memory::{Namespace, Who, chunked};

/// How many entries are looked at, at most, where several namespaces are.
const MOST_LISTED: usize = 1_000;

pub(super) struct Memory {
    pub(super) memory: WorkingMemory,
    pub(super) queries: Queries,
}

impl Memory {
    fn reach(context: &Context) -> Result<Reach, ToolFailure> {
        Reach::of(Who::of_context(context)).ok_or_else(|| ToolFailure::new(texts::NO_SESSION))
    }

    pub(super) async fn save(&self, context: &Context, args: SaveArgs) -> Result<String, ToolFailure> {
        let FullKey { namespace, path } = Self::reach(context)?.place(&args.key)?;
        let (value, category, tags) = (args.data.into_text(), said(args.category), tags(args.tags));
        let ttl = ttl(args.ttl_minutes)?;
        let entry =
            NewEntry { category: category.as_deref(), tags: &tags, ttl, ..NewEntry::new(&path, &value) };
        let saved = self.memory.save(&namespace, &[entry]).await?;
        Ok(saved.first().map_or_else(String::new, |record| texts::saved(record, self.memory.now())))
    }

    pub(super) async fn get(&self, context: &Context, args: GetArgs) -> Result<String, ToolFailure> {
        let found = self.find(&Self::reach(context)?, &args.key).await?;
        Ok(found.map_or_else(|| texts::missing(&args.key), |(_, _, value)| value))
    }

    pub(super) async fn delete(&self, context: &Context, args: DeleteArgs) -> Result<String, ToolFailure> {
        for key in Self::reach(context)?.candidates(&args.key)? {
            if let Some(record) = self.memory.delete(&key).await? {
                return Ok(texts::deleted(&record));
            }
        }
        Ok(texts::missing(&args.key))
    }

    pub(super) async fn list(&self, context: &Context, args: ListArgs) -> Result<String, ToolFailure> {
        let reach = Self::reach(context)?;
        let wanted = said(args.namespace);
        let records = self.within(&reach, wanted.as_deref()).await?;
        Ok(texts::listed(&records, self.memory.now(), wanted.as_deref(), reach.own()))
    }

    pub(super) async fn search(&self, context: &Context, args: SearchArgs) -> Result<String, ToolFailure> {
        let reach = Self::reach(context)?;
        let wanted = said(args.namespace);
        let records = self.within(&reach, wanted.as_deref()).await?;
        let search = Search {
            query: args.query.unwrap_or_default(),
            category: said(args.category),
            tags: tags(args.tags),
        };
        let hits = search.among(&self.memory, records).await?;
        Ok(texts::found(&hits, self.memory.now(), wanted.as_deref(), reach.own()))
    }

    pub(super) async fn query(&self, context: &Context, args: QueryArgs) -> Result<String, ToolFailure> {
        let reach = Self::reach(context)?;
        let Some(value) = self.whole(&reach, &args.key).await? else { return Ok(texts::missing(&args.key)) };
        Ok(self.queries.run(value, args.expression).await?)
    }

    async fn find(&self, reach: &Reach, key: &str) -> Result<Option<(FullKey, Record, String)>, ToolFailure> {
        for key in reach.candidates(key)? {
            if let Some((record, value)) = self.memory.get(&key).await? {
                return Ok(Some((key, record, value)));
            }
        }
        Ok(None)
    }

    /// A value; of a part of a large result, the whole result.
    async fn whole(&self, reach: &Reach, key: &str) -> Result<Option<String>, ToolFailure> {
        let key = key.trim();
        let index = match chunked::base(key) {
            Some(base) => self.find(reach, &chunked::index(base)).await?,
            // A result may be asked for by what all its keys begin with.
            None => match self.find(reach, key).await? {
                Some((_, _, value)) => return Ok(Some(value)),
                None => self.find(reach, &chunked::index(key)).await?,
            },
        };
        match index {
            Some((key, Record { chunks: Some(chunks), .. }, _)) => self.joined(&key, chunks).await.map(Some),
            // What looks like a part of a result may be somebody's own.
            _ => Ok(self.find(reach, key).await?.map(|(_, _, value)| value)),
        }
    }

    /// All chunks of a result, put together. For JSON that is the result as it was.
    async fn joined(&self, index: &FullKey, chunks: usize) -> Result<String, ToolFailure> {
        let base = chunked::base(&index.path).unwrap_or(&index.path);
        let mut whole = String::new();
        for number in 0..chunks {
            let path = chunked::chunk(base, number);
            let chunk = self.memory.get(&FullKey { path, ..index.clone() }).await?;
            let (_, chunk) = chunk.ok_or_else(|| ToolFailure::new(texts::incomplete(base, number)))?;
            whole.push_str(&chunk);
        }
        Ok(whole)
    }

    /// The entries that a call is about: those of the caller's own namespace, or whose path begins with what it says. That is a
    /// whole path, if the caller reaches it, else one in its own namespace.
    async fn within(&self, reach: &Reach, wanted: Option<&str>) -> Result<Vec<Record>, ToolFailure> {
        let Some(wanted) = wanted else { return Ok(self.memory.list(reach.own()).await?) };
        let wanted = wanted.trim_end_matches('/').to_lowercase();
        let segments: Vec<_> = wanted.split('/').collect();
        let records = match segments.as_slice() {
            [kind, owner, ..] => {
                let reached = Namespace::named(&format!("{kind}/{owner}"));
                match reached.filter(|namespace| reach.includes(namespace)) {
                    Some(namespace) => self.memory.list(&namespace).await?,
                    None => Vec::new(),
                }
            }
            _ => {
                self.memory
                    .list_all(&format!("{wanted}/"), |namespace| reach.includes(namespace), MOST_LISTED)
                    .await?
            }
        };
        let begins = |records: Vec<Record>, prefix: &str| -> Vec<Record> {
            records.into_iter().filter(|record| lies_in(&record.key, prefix)).collect()
        };
        let found = begins(records, &wanted);
        if !found.is_empty() {
            return Ok(found);
        }
        let own = self.memory.list(reach.own()).await?;
        Ok(begins(own, &format!("{}/{wanted}", reach.own())))
    }
}

/// Whether a path begins so, whatever its case is. Of namespaces whole segments count: `session/a` is not where `session/ab` is.
fn lies_in(path: &str, above: &str) -> bool {
    let path = path.to_lowercase();
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/') || above.matches('/').count() > 1;
    path.strip_prefix(above).is_some_and(is_below)
}
