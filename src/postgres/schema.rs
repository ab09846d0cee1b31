//! How far the schema of a database has come, compared with what this program knows.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::migrate::Migrator;

/// Every migration that this program knows.
pub static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// One migration, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its number. Migrations are applied in the order of their numbers.
    pub version: i64,
    /// What its file is named after.
    pub description: String,
}

/// How far a schema has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// Migrations that are applied, as this program knows them.
    pub applied: Vec<Step>,
    /// Those that are not applied yet.
    pub pending: Vec<Step>,
    /// Those that are applied, but with another content than this program knows.
    pub changed: Vec<Step>,
    /// Those that are applied and that this program does not know: a newer one has been here.
    pub unknown: Vec<Step>,
}

impl Schema {
    /// Looks at a database. Nothing is created.
    ///
    /// # Errors
    /// When the database does not answer, or its list of migrations may not be read.
    pub async fn look(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        Ok(Self::compare(applied(connection).await?))
    }

    fn compare(applied: Vec<Applied>) -> Self {
        let mut schema = Self::default();
        let mut applied: BTreeMap<i64, Applied> = applied
            .into_iter()
            .map(|(version, description, checksum)| (version, (version, description, checksum)))
            .collect();
        for known in MIGRATIONS.iter() {
            let step = Step {
                version: known.version,
                description: known.description.to_string(),
            };
            match applied.remove(&known.version) {
                None => schema.pending.push(step),
                Some((_, _, checksum)) if checksum == *known.checksum => schema.applied.push(step),
                Some(_) => schema.changed.push(step),
            }
        }
        let strangers = applied.into_values();
        schema.unknown = strangers
            .map(|(version, description, _)| Step {
                version,
                description,
            })
            .collect();
        schema
    }
}

/// An applied migration as sqlx writes it down: version, description, checksum.
type Applied = (i64, String, Vec<u8>);

async fn applied(connection: &mut PgConnection) -> Result<Vec<Applied>, sqlx::Error> {
    // Asked of the catalogue, not by `to_regclass`: within a transaction that remembers what was not
    // there when it was first asked.
    let exists = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM pg_class
               WHERE relname = '_sqlx_migrations' AND pg_table_is_visible(oid)
           ) AS "exists!""#
    );
    if !exists.fetch_one(&mut *connection).await? {
        return Ok(Vec::new());
    }
    // Not checked when compiled: this table is sqlx's own and not among our migrations.
    let rows = sqlx::query_as("SELECT version, description, checksum FROM _sqlx_migrations");
    rows.fetch_all(connection).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_applied(change: impl Fn(&mut Vec<Applied>)) -> Schema {
        let known = MIGRATIONS.iter();
        let mut applied = known
            .map(|one| {
                (
                    one.version,
                    one.description.to_string(),
                    one.checksum.to_vec(),
                )
            })
            .collect();
        change(&mut applied);
        Schema::compare(applied)
    }

    fn versions(steps: &[Step]) -> Vec<i64> {
        steps.iter().map(|step| step.version).collect()
    }

    /// All of them run in one transaction.
    #[test]
    fn no_migration_wants_to_run_outside_a_transaction() {
        assert!(MIGRATIONS.iter().all(|one| !one.no_tx));
    }

    #[test]
    fn all_applied_is_up_to_date() {
        let schema = as_applied(|_| ());
        assert_eq!(schema.applied.len(), MIGRATIONS.iter().count());
        let rest = [schema.pending, schema.changed, schema.unknown];
        assert_eq!(rest.concat(), []);
    }

    #[test]
    fn what_is_missing_changed_and_unknown_is_told_apart() {
        let schema = as_applied(|applied| {
            applied.remove(1);
            applied[0].2[0] ^= 1;
            applied.push((9_999, "of tomorrow".to_owned(), vec![7]));
        });
        assert_eq!(versions(&schema.changed), [1]);
        assert_eq!(versions(&schema.pending), [2]);
        assert_eq!(versions(&schema.unknown), [9_999]);
        assert_eq!(schema.unknown[0].description, "of tomorrow");
    }
}
