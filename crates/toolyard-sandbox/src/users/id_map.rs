//! Uids and gids that the gateway's user namespace maps.

use std::fs;

use super::UidRange;

/// Checks that all uids and gids of the range are mapped.
pub(super) fn check(range: UidRange) -> Result<(), String> {
    for map in ["/proc/self/uid_map", "/proc/self/gid_map"] {
        let text = fs::read_to_string(map).map_err(|error| format!("{map}: {error}"))?;
        if range.count == 0 || !contains(&text, range) {
            let UidRange { first, count } = range;
            return Err(format!("{map} does not map the {count} ids from {first} on"));
        }
    }
    Ok(())
}

/// True if a number is mapped, as a uid and as a gid.
pub(super) fn contains_id(number: u32) -> bool {
    check(UidRange { first: number, count: 1 }).is_ok()
}

/// True if one line of a map (first inside, first outside, count) contains the whole range.
pub(super) fn contains(map: &str, range: UidRange) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse::<u32>().ok());
        let (Some(first), Some(_), Some(count)) = (numbers.next(), numbers.next(), numbers.next()) else {
            return false;
        };
        let before = range.first.checked_sub(first);
        before.and_then(|before| before.checked_add(range.count)).is_some_and(|end| end <= count)
    })
}
