//! Notifications to clients: those of a running call with its progress, and changes of the registry, of resources and of
//! tasks.

mod changes;
pub(super) mod listen;
pub(super) mod notice_queue;
pub(super) mod notification_sink;
pub(super) mod progress;
