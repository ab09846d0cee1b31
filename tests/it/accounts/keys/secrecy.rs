//! A key's secret is shown once, by the command that makes it, and nowhere else.

use std::io;
use std::sync::{Arc, Mutex};

use lanekeeper::accounts::keys::KeyError;
use lanekeeper::digest::hex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::super::desk::Desk;
use super::ring::{Made, SOON, Server};
use crate::support::heavy;

/// Everything that is logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logged {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The ways in which it could stand somewhere: as it is, and as a table shows bytes.
fn assert_hidden(made: &Made, text: &str) {
    for hidden in [made.secret().to_owned(), hex(made.secret().as_bytes())] {
        assert!(!text.contains(&hidden), "{text}");
    }
}

#[tokio::test]
async fn the_table_has_a_digest_alone() {
    let desk = Desk::new().await;
    let made = Made::by(&desk, "--account acme --name shop").await;
    let rows: String = sqlx::query_scalar("SELECT string_agg(api_keys::text, ' ') FROM api_keys")
        .fetch_one(desk.database.pool())
        .await
        .unwrap();
    assert!(rows.contains(&made.id.to_string()), "{rows}");
    assert_hidden(&made, &rows);
}

#[tokio::test]
async fn no_command_shows_it_again() {
    let desk = Desk::new().await;
    let made = Made::by(&desk, "--account acme --name shop").await;
    let other = Made::by(&desk, "--account acme --name other").await;
    for words in [
        "key list".to_owned(),
        "key list --json".to_owned(),
        "account list --json".to_owned(),
        // Nearly a key, as one comes from a clumsy copy.
        format!("key revoke {}", made.secret()),
        format!("key revoke {}.", made.key),
        format!("key revoke {}", &made.key[1..]),
        format!("key revoke {}", made.with_secret_of(&other)),
        format!("key revoke {}", made.key),
        format!("key revoke {} --json", made.key),
    ] {
        let ended = desk.run(&words).await;
        for shown in [&ended.stdout, &ended.stderr] {
            assert_hidden(&made, shown);
            assert_hidden(&other, shown);
        }
    }
}

/// Not the program's own lines alone: all that any library says at its finest level.
#[tokio::test]
async fn no_log_has_it() {
    let _alone = heavy().await;
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(logged.clone())
        .finish();
    let desk = Desk::new().await;
    let fine = desk.file("fine.toml", "[log]\nlevel = \"trace\"\n");
    let create = format!("--config {fine} key create --json --account acme --name");
    let created = desk.run(&format!("{create} shop")).await;
    let made = Made::of(&created.json()[0]);
    assert_hidden(&made, &created.stderr);

    let logging = tracing::subscriber::set_default(subscriber);
    let server = Server::loaded(desk.database.pool()).await;
    assert!(server.check(&made.key).is_ok());
    let almost = format!("{}.", made.key);
    assert_eq!(server.check(&almost), Err(KeyError::Malformed));
    desk.ok(&format!("key revoke {}", made.id)).await;
    let revoked = KeyError::Revoked(made.id);
    server.sees(&made, Err(revoked), SOON).await;
    tracing::warn!(error = %revoked, debug = ?revoked, keys = ?server.keys, "as a server may log it");
    server.end().await;
    drop(logging);

    let text = logged.text();
    assert!(text.contains("the API keys have been read"), "{text}");
    assert!(
        text.contains(&format!("API key {} is revoked", made.id)),
        "{text}"
    );
    assert_hidden(&made, &text);
}
