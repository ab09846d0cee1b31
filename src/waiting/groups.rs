//! Paused jobs that may go on: groups of those that belong to the same campaign, journey and batch,
//! so that a million jobs of one campaign cost one question.

use sqlx::PgConnection;

use super::line::Line;

/// The most groups of a line that are looked at in one go.
pub(super) const AT_ONCE: usize = 500;

/// Before the first group.
pub(super) const START: &str = "00000000-0000-0000-0000-000000000000";

/// A group, and what the holds say of it at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// What tells it from the line's other groups.
    pub key: String,
    /// Something that its jobs belong to is cancelled: they end as soon as a worker sees them.
    pub cancelled: bool,
    /// Something that they belong to is paused.
    pub paused: bool,
}

impl Group {
    /// Whether its jobs wait no longer. At a ceiling of nothing only those go that will not be sent.
    pub(super) fn is_released(&self, sendable: bool) -> bool {
        self.cancelled || (sendable && !self.paused)
    }
}

/// The line's groups after that one, [`AT_ONCE`] at most.
pub(super) async fn after(
    connection: &mut PgConnection,
    line: &Line,
    key: &str,
) -> Result<Vec<Group>, sqlx::Error> {
    let limit = i32::try_from(AT_ONCE).unwrap_or(i32::MAX);
    let groups = sqlx::query_as!(
        Group,
        r#"
        WITH RECURSIVE groups AS (
            (SELECT waiting_group(campaign_id, journey_id, batch_id) AS key,
                campaign_id, journey_id, batch_id, 1 AS place
             FROM waiting
             WHERE account_id = $1 AND lane = $2 AND due_at IS NULL
                AND waiting_group(campaign_id, journey_id, batch_id) > $3::text::uuid
             ORDER BY waiting_group(campaign_id, journey_id, batch_id), row_number LIMIT 1)
            UNION ALL
            SELECT next.*, groups.place + 1 FROM groups CROSS JOIN LATERAL (
                SELECT waiting_group(campaign_id, journey_id, batch_id) AS key,
                    campaign_id, journey_id, batch_id
                FROM waiting
                WHERE account_id = $1 AND lane = $2 AND due_at IS NULL
                    AND waiting_group(campaign_id, journey_id, batch_id) > groups.key
                ORDER BY waiting_group(campaign_id, journey_id, batch_id), row_number LIMIT 1
            ) AS next
            WHERE groups.place < $4
        )
        SELECT key::text AS "key!", hold.cancelled AS "cancelled!", hold.paused AS "paused!"
        FROM groups CROSS JOIN LATERAL (
            SELECT coalesce(bool_or(state = 'cancelled'), false) AS cancelled,
                coalesce(bool_or(state = 'paused'), false) AS paused
            FROM (VALUES ('account', $1), ('campaign', groups.campaign_id),
                ('journey', groups.journey_id), ('batch', groups.batch_id)) AS scope (kind, target)
            JOIN holds ON holds.account_id = $1
                AND holds.kind = scope.kind AND holds.target = scope.target
        ) AS hold
        "#,
        line.account.as_str(),
        line.lane.as_str(),
        key,
        limit,
    );
    groups.fetch_all(connection).await
}

/// Whether the account itself is cancelled, so that none of its jobs will be sent.
pub(super) async fn account_is_cancelled(
    connection: &mut PgConnection,
    line: &Line,
) -> Result<bool, sqlx::Error> {
    let cancelled = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM holds
            WHERE account_id = $1 AND kind = 'account' AND target = $1 AND state = 'cancelled') AS "is!""#,
        line.account.as_str(),
    );
    cancelled.fetch_one(connection).await
}
