//! Tasks of other processes of the store: messages for the tasks of this one, changes of watched tasks, and the takeover of
//! tasks whose process is dead.

use std::sync::Arc;

use tokio::time::Instant;

use crate::background;
use crate::link::Request;
use crate::server::{Server, call_rule};
use crate::task::{MessageKind, TaskMessage, TaskRegistry, TaskStoreError};

impl Server {
    /// Runs the handlers of all unfinished tasks in the store; returns their number.
    pub(super) async fn resume_all(
        &self,
        registry: &Arc<TaskRegistry>,
    ) -> Result<usize, TaskStoreError> {
        self.exchange_tasks(registry);
        let mut resumed = 0;
        for record in registry.store().take_unfinished().await? {
            if registry.get(record.id()).is_none() {
                self.resume_task(registry, record).await;
                resumed += 1;
            }
        }
        Ok(resumed)
    }

    /// Begins to exchange messages and tasks with the other processes of the store, if it has any, until the server is dropped.
    pub(in crate::server) fn exchange_tasks(&self, registry: &Arc<TaskRegistry>) {
        let Some(intervals) = registry.begin_exchange() else {
            return;
        };
        let (server, registry) = (Arc::downgrade(&self.0), Arc::downgrade(registry));
        background::spawn(async move {
            let mut next_takeover = Instant::now() + intervals.takeover;
            let mut unsent = Vec::new();
            loop {
                tokio::time::sleep(intervals.messages).await;
                let (Some(server), Some(registry)) = (server.upgrade(), registry.upgrade()) else {
                    return;
                };
                let server = Server(server);
                server.handle_task_messages(&registry, &mut unsent).await;
                server.publish_watched_tasks(&registry).await;
                if Instant::now() >= next_takeover {
                    next_takeover = Instant::now() + intervals.takeover;
                    if let Err(error) = server.resume_all(&registry).await {
                        tracing::warn!(%error, "tasks of dead processes are not taken over");
                    }
                }
            }
        });
    }

    /// Handles what other processes have received for the tasks of this one. What the store does not take back is kept in
    /// `unsent`; while there is any, no more is received.
    async fn handle_task_messages(
        &self,
        registry: &Arc<TaskRegistry>,
        unsent: &mut Vec<TaskMessage>,
    ) {
        let mut messages = std::mem::take(unsent);
        if messages.is_empty() && registry.has_live() {
            match registry.store().receive().await {
                Ok(received) => messages.extend(received),
                Err(error) => tracing::warn!(%error, "messages for tasks were not received"),
            }
        }
        for message in messages {
            let Some(live) = registry.get(message.task_id()) else {
                unsent.push(message);
                continue;
            };
            match message.into_kind() {
                MessageKind::Cancel => live.cx().cancel(),
                MessageKind::Answers(responses) => {
                    if live.deliver_or_keep(responses) {
                        self.save_and_notify(registry, &live).await;
                    }
                }
            }
        }
        // Their tasks are being resumed, unless they have ended: then the store drops the messages.
        while let Some(message) = unsent.first() {
            if let Err(error) = registry.store().send(message.clone()).await {
                tracing::warn!(%error, count = unsent.len(), "messages for tasks wait for the store");
                return;
            }
            unsent.remove(0);
        }
    }

    /// Notifies the subscribers of tasks that run in other processes of their changes.
    async fn publish_watched_tasks(&self, registry: &Arc<TaskRegistry>) {
        let ids: Vec<String> = registry.watched().keys().cloned().collect();
        for id in ids {
            if !self.listeners().has_task_watchers(&id) {
                registry.watched().remove(&id);
                continue;
            }
            // The state is read again at the next turn.
            let Ok(record) = registry.store().load(&id).await else {
                continue;
            };
            let Some(record) = record else {
                registry.watched().remove(&id);
                continue;
            };
            let known = if record.is_finished() {
                registry.watched().remove(&id)
            } else {
                registry.watched().insert(id.clone(), record.clone())
            };
            if known.is_some_and(|known| record.differs_from(&known)) && registry.get(&id).is_none()
            {
                let origin = record.origin().clone();
                let may_know =
                    |request: &Request| call_rule(|| self.check_task(&origin, request).is_ok());
                let task =
                    record.detailed_content(registry.poll_interval(), record.asked().cloned());
                self.listeners().publish_task(&id, &task, may_know);
            }
        }
    }
}
