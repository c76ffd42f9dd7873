use tempfile::TempDir;

use super::*;

async fn installed(cache: &EnvironmentCache, name: &str, bytes: usize) -> Arc<PackageEnvironment> {
    let digest = digest([name.as_bytes()]);
    let draft = cache.draft(&digest, name).await.unwrap();
    fs::write(draft.packages().join("content"), vec![b'x'; bytes]).unwrap();
    draft.finish(cache, &digest).await.unwrap()
}

fn entries(folder: &TempDir) -> usize {
    fs::read_dir(folder.path()).unwrap().count()
}

#[tokio::test]
async fn least_recently_used_environment_is_removed_unless_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let cache = EnvironmentCache::new(folder.path().to_owned());
    let first = installed(&cache, "first", 1 << 20).await;
    drop(installed(&cache, "second", 1 << 20).await);
    drop(installed(&cache, "third", 1 << 20).await);
    let long_ago = SystemTime::UNIX_EPOCH;
    let second = folder.path().join(digest([b"second".as_slice()]));
    let lock = File::options().write(true).open(second.join(LOCK)).unwrap();
    lock.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
    drop(lock);
    fs::create_dir(folder.path().join("unfinished-1-0-x")).unwrap();
    fs::write(folder.path().join("unfinished-1-0-x/lock"), "").unwrap();
    cache.make_room(3 << 19).await;
    assert_eq!(fs::metadata(first.path().join("content")).unwrap().len(), 1 << 20);
    assert_eq!(entries(&folder), 2);
    assert!(cache.find(&digest([b"second".as_slice()])).await.is_none());
    drop(first);
    cache.make_room(0).await;
    assert_eq!(entries(&folder), 0);
}

#[tokio::test]
async fn unfinished_draft_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = EnvironmentCache::new(folder.path().to_owned());
    drop(cache.draft(&digest([b"x".as_slice()]), "x").await.unwrap());
    assert_eq!(entries(&folder), 0);
}

#[tokio::test]
async fn unfinished_folders_are_removed_unless_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let cache = EnvironmentCache::new(folder.path().to_owned());
    let draft = cache.draft(&digest([b"x".as_slice()]), "x").await.unwrap();
    let whole = installed(&cache, "whole", 1).await;
    let begin = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.join(PACKAGES)).unwrap();
        path
    };
    fs::write(begin("unfinished-1-0-unlocked").join(LOCK), "").unwrap();
    let (fresh, old) = (begin("unfinished-1-0-fresh"), begin("unfinished-gone-old"));
    let set_age = |path: &Path, age| File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    set_age(&old, LEFTOVER_AGE * 2);
    cache.sweep().await;
    for (path, is_there) in [(draft.path(), true), (whole.path(), true), (&fresh, true), (&old, false)] {
        assert_eq!(path.exists(), is_there, "{path:?}");
    }
    assert_eq!(entries(&folder), 3);
}
