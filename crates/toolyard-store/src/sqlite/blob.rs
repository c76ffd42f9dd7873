//! Large values.

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};
use toolyard_core::store::{BlobStore, KeySpace, StoreFuture};

use super::SqliteStore;

impl BlobStore for SqliteStore {
    fn put_blob<'a>(&'a self, space: KeySpace, name: &'a str, bytes: Bytes) -> StoreFuture<'a, ()> {
        const PUT: &str = "INSERT INTO blob (space, name, bytes) VALUES (?1, ?2, ?3) \
            ON CONFLICT (space, name) DO UPDATE SET bytes = excluded.bytes";
        let name = name.to_owned();
        Box::pin(self.write(move |connection| {
            connection.prepare_cached(PUT)?.execute(params![space.0, name, &bytes[..]]).map(drop)
        }))
    }

    fn get_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, Option<Bytes>> {
        const GET: &str = "SELECT bytes FROM blob WHERE space = ?1 AND name = ?2";
        let name = name.to_owned();
        Box::pin(self.read(move |connection| {
            let mut statement = connection.prepare_cached(GET)?;
            let bytes = statement.query_row(params![space.0, name], |row| row.get::<_, Vec<u8>>(0));
            Ok(bytes.optional()?.map(Bytes::from))
        }))
    }

    fn delete_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, bool> {
        const DELETE: &str = "DELETE FROM blob WHERE space = ?1 AND name = ?2";
        let name = name.to_owned();
        Box::pin(self.write(move |connection| {
            Ok(connection.prepare_cached(DELETE)?.execute(params![space.0, name])? > 0)
        }))
    }
}
