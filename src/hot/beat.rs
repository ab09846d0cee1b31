//! Writing down for which queues jobs wait: those are still needed.

use std::collections::HashSet;

use sqlx::PgPool;

use super::rows;
use crate::postgres::explain;

/// Writes it down. Should that fail, some queue is given up earlier than it should be, and its
/// account gets another.
pub(super) async fn touch(pool: &PgPool, queues: HashSet<i64>) {
    if queues.is_empty() {
        return;
    }
    let numbers: Vec<_> = queues.into_iter().collect();
    let touching = async {
        let mut connection = pool.acquire().await?;
        rows::touch(&mut connection, &numbers).await
    };
    if let Err(error) = touching.await {
        let error = explain(&error);
        tracing::debug!(
            error,
            "it could not be written down which accounts' own queues are needed"
        );
    }
}
