//! The keys in another process's memory: right within a second, and kept while the database is away.

use lanekeeper::accounts::keys::KeyError;

use super::super::desk::{Desk, ended};
use super::ring::{LATER, Made, SOON, Server};
use crate::support::heavy;
use crate::support::postgres::PrivatePostgres;

async fn made_and_revoked_is_seen_soon(desk: &Desk) {
    let pool = desk.database.pool();
    let servers = [Server::loaded(pool).await, Server::loaded(pool).await];
    for round in 0..3 {
        let words = format!("--account acme --name n{round}");
        let made = Made::by(desk, &words).await;
        for server in &servers {
            server.sees(&made, Ok(()), SOON).await;
        }
        desk.ok(&format!("key revoke {}", made.id)).await;
        for server in &servers {
            let revoked = Err(KeyError::Revoked(made.id));
            server.sees(&made, revoked, SOON).await;
        }
    }
    for server in servers {
        server.end().await;
    }
}

#[tokio::test]
async fn every_server_sees_within_a_second_that_a_key_was_made_or_revoked() {
    let _alone = heavy().await;
    made_and_revoked_is_seen_soon(&Desk::new().await).await;
}

/// A pooler in between, or a trigger that somebody has dropped, swallows notifications.
#[tokio::test]
async fn every_server_sees_it_within_a_second_without_any_notification() {
    let _alone = heavy().await;
    let desk = Desk::new().await;
    desk.database
        .execute("DROP TRIGGER announce ON directory")
        .await;
    made_and_revoked_is_seen_soon(&desk).await;
}

#[tokio::test]
async fn what_is_changed_in_the_table_itself_is_seen_as_well() {
    let _alone = heavy().await;
    let desk = Desk::new().await;
    let server = Server::loaded(desk.database.pool()).await;
    let made = Made::by(&desk, "--account acme --name shop").await;
    server.sees(&made, Ok(()), SOON).await;
    let revoke = "UPDATE api_keys SET revoked_at = now()";
    desk.database.execute(revoke).await;
    let revoked = Err(KeyError::Revoked(made.id));
    server.sees(&made, revoked, SOON).await;
    // Whoever revokes a key means it to stay so; what the table says counts all the same.
    desk.database
        .execute("UPDATE api_keys SET revoked_at = NULL")
        .await;
    server.sees(&made, Ok(()), SOON).await;
    let long_ago = "UPDATE api_keys SET revoked_at = now() - interval '91 days'";
    desk.database.execute(long_ago).await;
    let unknown = Err(KeyError::Unknown(made.id));
    server.sees(&made, unknown, SOON).await;
    desk.database.execute("TRUNCATE api_keys").await;
    server.sees(&made, unknown, SOON).await;
    server.end().await;
}

#[tokio::test]
async fn what_was_read_last_holds_while_the_database_is_away() {
    let mut postgres = PrivatePostgres::start_migrated().await;
    let url = postgres.url();
    let create = [
        "key",
        "create",
        "--account",
        "acme",
        "--name",
        "shop",
        "--json",
    ];
    let made = ended(&url, &create, "").await;
    let made = Made::of(&made.json()[0]);

    let server = Server::loaded(&postgres.pool()).await;
    assert!(server.check(&made.key).is_ok());
    postgres.stop().await;
    tokio::time::sleep(SOON).await;
    assert!(server.check(&made.key).is_ok());
    postgres.restart().await;

    let id = made.id.to_string();
    let revoked = ended(&url, &["key", "revoke", &id], "").await;
    assert_eq!(revoked.code, 0, "{revoked:?}");
    let expected = Err(KeyError::Revoked(made.id));
    server.sees(&made, expected, LATER).await;
    server.end().await;
}

/// An empty ring would tell everybody that there is no such key.
#[tokio::test]
async fn there_is_no_ring_before_the_keys_were_read_once() {
    let mut postgres = PrivatePostgres::start_migrated().await;
    let pool = postgres.pool();
    postgres.stop().await;
    let server = Server::start(&pool);
    tokio::time::sleep(SOON).await;
    assert!(server.keys.ring().is_none());
    postgres.restart().await;
    let loading = tokio::time::timeout(LATER, server.keys.loaded());
    loading.await.expect("the keys are read in time");
    assert!(server.keys.ring().unwrap().is_empty());
    server.end().await;
}
