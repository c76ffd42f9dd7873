//! Changes of resources, from the channel on which their owner reports them.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::{Json, Object};

/// Returns the parameters of `notifications/resources/updated` for each update that changes the resource of this URI,
/// until the sender of the updates is dropped.
pub fn resource_updates<U: Clone + Send + 'static>(
    updates: Receiver<U>,
    uri: &str,
    is_changed: impl Fn(&U) -> bool + Send + 'static,
) -> BoxStream<'static, Object> {
    let uri: Arc<str> = uri.into();
    let changes = stream::unfold((updates, uri, is_changed), |(mut updates, uri, is_changed)| async {
        loop {
            match updates.recv().await {
                Ok(update) if !is_changed(&update) => {}
                // The missed updates may have changed it.
                Ok(_) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return None,
            }
        }
        Some((Object::new().with("uri", Json::string(&uri)), (updates, uri, is_changed)))
    });
    changes.boxed()
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    #[tokio::test]
    async fn changes_and_missed_updates_are_reported() {
        let check = async |sent: &[&'static str], expected: usize| {
            let sender = broadcast::Sender::new(2);
            let changes = resource_updates(sender.subscribe(), "a://b", |update| *update == "b");
            for update in sent {
                sender.send(*update).expect("a receiver");
            }
            drop(sender);
            let notified: Vec<_> =
                changes.map(|params| params.to_json().as_text().to_owned()).collect().await;
            assert_eq!(notified, vec![r#"{"uri":"a://b"}"#; expected], "{sent:?}");
        };
        check(&[], 0).await;
        check(&["c"], 0).await;
        check(&["b", "c"], 1).await;
        check(&["b", "b"], 2).await;
        // The first one is lost.
        check(&["b", "c", "c"], 1).await;
    }
}
