//! New encryption of stored tokens, after which an old key is not needed any more.

use mcp_exact::KeyRing;
use mcp_exact_auth::Secret;
use mcp_exact_bridge::users::{RevocationOutcome, UserGrant};

use super::Consent;
use super::world::{Gateway, Shared, who};

/// Tokens that were stored with an old key are encrypted with the first one, once; without the old key, the accounts are there as
/// before. What no key opens is counted, and is an error: nothing is asked or registered anew in its place, until it is removed or its
/// user revoked, which tells that the authorization server was not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_keys_can_be_removed() {
    let [old, new, other] = [[1; 32], [2; 32], [3; 32]];
    let shared = Shared {
        keys: KeyRing::new(old, []),
        ..Shared::default()
    };
    let world = Consent::with(&shared).await;
    for user in ["ann", "bob"] {
        let url = world.asked(user).await;
        world.browser(user).agree(&url).await;
    }
    let gateway = async |keys: KeyRing| {
        let shared = Shared {
            resource: Some(world.gateway.resource.clone()),
            keys,
            ..shared.clone()
        };
        let servers = [("mail", &*world.server.url, UserGrant::Automatic)];
        Gateway::start(&world.home.site.url, &servers, &shared).await
    };
    let call = async |gateway: &Gateway, user: &str| {
        let client = gateway.plain_client(&world.token(user), "2026-07-28").await;
        who(&client, "mail").await
    };
    let both = gateway(KeyRing::new(new, [old])).await;
    assert_eq!(call(&both, "ann").await.as_deref(), Ok("ann"));
    // The tokens of two users; the registration of the gateway was encrypted anew when it was used.
    for renewed in [2, 0] {
        let counts = both.users.reseal().await.expect("the store");
        let seen = (counts.renewed, counts.current, counts.unreadable);
        assert_eq!(seen, (renewed, 3 - renewed, 0));
    }
    // A process that was not restarted yet cannot read them, one without the old key can.
    let one = gateway(KeyRing::new(new, [])).await;
    for user in ["ann", "bob"] {
        assert_eq!(call(&one, user).await.as_deref(), Ok(user));
    }
    assert_eq!(world.service.grants("authorization_code").len(), 2);
    let stranger = gateway(KeyRing::new(other, [])).await;
    let counts = stranger.users.reseal().await.expect("the store");
    assert_eq!((counts.renewed, counts.unreadable), (0, 3));
    let registrations = world.service.site.count("/register");
    let error = call(&stranger, "ann").await.expect_err("no key");
    assert!(!error.contains("Connect your account"), "{error}");
    assert_eq!(world.service.site.count("/register"), registrations);
    assert_eq!(call(&one, "ann").await.as_deref(), Ok("ann"));
    let principal = format!("[\"{}\",\"ann\",\"program\"]", world.home.site.url);
    let revoked = stranger.users.revoke(&principal).await;
    let [account] = &revoked.accounts[..] else {
        panic!("{revoked:?}");
    };
    let RevocationOutcome::Failed(reason) = &account.outcome else {
        panic!("{account:?}");
    };
    assert!(reason.contains("none of the keys"), "{reason}");
    let error = call(&one, "ann").await.expect_err("revoked");
    assert!(error.contains("Connect your account"), "{error}");
    assert_eq!(call(&one, "bob").await.as_deref(), Ok("bob"));
    // A record that was cut off is told from one of another key.
    let record = format!(
        "user-tokens [\"{}\",\"bob\",\"program\"]",
        world.home.site.url
    );
    let stored = shared.store.read(&record).await.expect("the store");
    let stored = stored.expect("tokens of Bob");
    let cut = Secret::new(&stored.expose()[..stored.expose().len() - 9]);
    for (text, damaged) in [(&cut, vec![record.clone()]), (&stored, Vec::new())] {
        shared.store.write(&record, text).await.expect("written");
        let counts = one.users.reseal().await.expect("the store");
        assert_eq!((counts.renewed, counts.unreadable), (0, 0));
        let named: Vec<_> = counts.damaged.into_iter().map(|value| value.key).collect();
        assert_eq!(named, damaged);
        // What has another key may have been encrypted by somebody who needs it.
        assert_eq!(stranger.users.remove_damaged().await, Ok(0));
        assert_eq!(one.users.remove_damaged().await, Ok(damaged.len()));
    }
    // The tokens of Bob and the registration.
    assert_eq!(stranger.users.remove_unreadable().await, Ok(2));
    let counts = stranger.users.reseal().await.expect("the store");
    assert_eq!((counts.current, counts.unreadable), (0, 0));
    let error = call(&gateway(KeyRing::new(other, [])).await, "bob").await;
    let error = error.expect_err("asked");
    assert!(error.contains("Connect your account"), "{error}");
}
