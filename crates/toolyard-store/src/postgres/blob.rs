//! Large values.

use bytes::Bytes;
use toolyard_core::store::{BlobStore, KeySpace, StoreFuture};

use super::PostgresStore;

impl BlobStore for PostgresStore {
    fn put_blob<'a>(&'a self, space: KeySpace, name: &'a str, bytes: Bytes) -> StoreFuture<'a, ()> {
        const PUT: &str = "INSERT INTO toolyard.blob (space, name, bytes) VALUES ($1, $2, $3) \
            ON CONFLICT (space, name) DO UPDATE SET bytes = excluded.bytes";
        Box::pin(async move { self.query(PUT, &[&space.0, &name.as_bytes(), &&bytes[..]]).await.map(drop) })
    }

    fn get_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, Option<Bytes>> {
        const GET: &str = "SELECT bytes FROM toolyard.blob WHERE space = $1 AND name = $2";
        Box::pin(async move {
            let rows = self.read(GET, &[&space.0, &name.as_bytes()]).await?;
            Ok(rows.first().map(|row| Bytes::from(row.get::<_, Vec<u8>>(0))))
        })
    }

    fn delete_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, bool> {
        const DELETE: &str = "DELETE FROM toolyard.blob WHERE space = $1 AND name = $2 RETURNING 1";
        Box::pin(async move { Ok(!self.query(DELETE, &[&space.0, &name.as_bytes()]).await?.is_empty()) })
    }
}
