//! Uids and gids that `/etc/subuid` and `/etc/subgid` grant to an ordinary user. The system's `newuidmap` and
//! `newgidmap` map them; the probe tests them first.

use std::fs;

use rustix::process::geteuid;

use super::UidRange;

/// Returns the uids and the gids of this user.
pub(super) fn ranges() -> Result<(UidRange, UidRange), String> {
    let uid = geteuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = user_name(&users, uid);
    let range = |file: &str| {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        largest_range(&text, name, uid).ok_or_else(|| format!("{file} has no line for the user {uid}"))
    };
    Ok((range("/etc/subuid")?, range("/etc/subgid")?))
}

/// Returns the name of a user in `/etc/passwd`.
pub(super) fn user_name(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

/// Returns the largest range of a user, listed by name or by number.
pub(super) fn largest_range(text: &str, name: Option<&str>, uid: u32) -> Option<UidRange> {
    let ranges = text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next()?;
        let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let is_ours = Some(owner) == name || owner.parse() == Ok(uid);
        let is_sound = count > 0 && u32::checked_add(first, count).is_some();
        (is_ours && is_sound).then_some(UidRange { first, count })
    });
    ranges.max_by_key(|range| range.count)
}
