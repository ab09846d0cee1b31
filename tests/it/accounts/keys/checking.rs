//! What a key that was presented grants.

use lanekeeper::accounts::keys::{KeyError, KeyScope};
use lanekeeper::domain::Origin;

use super::super::desk::Desk;
use super::ring::{Made, Server};

#[tokio::test]
async fn a_key_grants_what_it_was_made_for() {
    let desk = Desk::new().await;
    let plain = Made::by(&desk, "--account acme --name shop").await;
    let admin = "--account acme --name desk --scope admin --origin journey";
    let admin = Made::by(&desk, admin).await;
    let all = "--account other --name all --scope admin,send,read --origin campaign";
    let all = Made::by(&desk, all).await;
    let server = Server::loaded(desk.database.pool()).await;
    let granted = |made: &Made| {
        let grant = server.check(&made.key).unwrap();
        assert_eq!(grant.key, made.id);
        let allowed = KeyScope::ALL.map(|scope| grant.scopes.allow(scope));
        (grant.account.to_string(), allowed, grant.origin)
    };
    let expected = ("acme".to_owned(), [true, true, false], Origin::Api);
    assert_eq!(granted(&plain), expected);
    let expected = ("acme".to_owned(), [false, false, true], Origin::Journey);
    assert_eq!(granted(&admin), expected);
    let expected = ("other".to_owned(), [true; 3], Origin::Campaign);
    assert_eq!(granted(&all), expected);
    server.end().await;
}

#[tokio::test]
async fn what_is_not_a_valid_key_grants_nothing() {
    let desk = Desk::new().await;
    let acme = Made::by(&desk, "--account acme --name shop").await;
    let other = Made::by(&desk, "--account other --name shop").await;
    let revoked = Made::by(&desk, "--account acme --name old").await;
    desk.ok(&format!("key revoke {}", revoked.id)).await;
    let elsewhere = Desk::new().await;
    let unknown = Made::by(&elsewhere, "--account acme --name shop").await;

    let server = Server::loaded(desk.database.pool()).await;
    for (presented, expected) in [
        (revoked.key.clone(), KeyError::Revoked(revoked.id)),
        (unknown.key.clone(), KeyError::Unknown(unknown.id)),
        (acme.with_secret_of(&other), KeyError::WrongSecret(acme.id)),
        (
            acme.with_secret_of(&unknown),
            KeyError::WrongSecret(acme.id),
        ),
        (
            revoked.with_secret_of(&acme),
            KeyError::WrongSecret(revoked.id),
        ),
        (acme.secret().to_owned(), KeyError::Malformed),
        (acme.id.to_string(), KeyError::Malformed),
        (acme.key.to_uppercase(), KeyError::Malformed),
        (format!("{} ", acme.key), KeyError::Malformed),
        (String::new(), KeyError::Malformed),
    ] {
        assert_eq!(server.check(&presented), Err(expected), "{presented}");
    }
    assert!(server.check(&acme.key).is_ok());
    server.end().await;
}

/// A newer version may know more scopes and origins than this one.
#[tokio::test]
async fn a_key_of_a_newer_version_allows_no_more_than_this_one_knows() {
    let desk = Desk::new().await;
    let scopes = Made::by(&desk, "--account acme --name scopes").await;
    let origin = Made::by(&desk, "--account acme --name origin").await;
    let change = format!(
        "ALTER TABLE api_keys DROP CONSTRAINT api_keys_scopes_check,
            DROP CONSTRAINT api_keys_origin_check;
         UPDATE api_keys SET scopes = '{{read,bill}}' WHERE key_id = '{}';
         UPDATE api_keys SET origin = 'partner' WHERE key_id = '{}'",
        scopes.id, origin.id
    );
    desk.database.execute(&change).await;
    let server = Server::loaded(desk.database.pool()).await;
    let grant = server.check(&scopes.key).unwrap();
    assert_eq!(grant.scopes.names(), ["read"]);
    let unknown = Err(KeyError::Unknown(origin.id));
    assert_eq!(server.check(&origin.key), unknown);
    desk.ok(&format!("key revoke {}", origin.id)).await;
    server.end().await;
}
