//! Finds the types that cannot be used because of a fault in one that they contain.

use super::types::TypePool;

/// Returns for each message a message with a fault that it contains, directly or indirectly.
pub(super) fn faults(pool: &TypePool) -> Vec<Option<u32>> {
    let mut faults = vec![None; pool.messages.len()];
    let mut pending = Vec::new();
    for (index, message) in (0u32..).zip(&pool.messages) {
        if message.fault.is_some() && message.known.is_none() {
            faults[index as usize] = Some(index);
            pending.push(index);
        }
    }
    if pending.is_empty() {
        return faults;
    }
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); pool.messages.len()];
    for (index, message) in (0u32..).zip(&pool.messages) {
        for used in message.fields.iter().filter_map(|field| field.kind.message()) {
            users[used as usize].push(index);
        }
    }
    while let Some(message) = pending.pop() {
        let fault = faults[message as usize];
        for user in &users[message as usize] {
            if faults[*user as usize].is_none() {
                faults[*user as usize] = fault;
                pending.push(*user);
            }
        }
    }
    faults
}
