//! Each provider is usable with the settings that it needs; without one of them, the error names it.

use mcp_exact::Client;
use mcp_exact_auth::client::OAuth;
use mcp_exact_tests_auth::authority::RedirectAgent;
use mcp_exact_tests_auth::provider::{PROVIDERS, ProtectedServer, Setting};

/// Signs in with these options and calls the tool.
async fn call(server: &ProtectedServer, oauth: OAuth) -> Result<String, String> {
    let oauth = oauth.user_agent(RedirectAgent::default());
    let client = Client::connect(&server.endpoint).oauth(oauth).await;
    let client = client.map_err(|error| format!("{error:?}"))?;
    client
        .call("who", &())
        .await
        .map_err(|error| format!("{error:?}"))
}

/// The client of the library signs in to every provider, and says which setting is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_make_providers_usable() {
    for provider in &PROVIDERS {
        let server = provider.start().await;
        let called = call(&server, server.oauth(provider.settings)).await;
        assert_eq!(called.as_deref(), Ok("ada"), "{}", provider.name);
        for &missing in provider.settings {
            let others = provider.settings.iter().copied();
            let others: Vec<Setting> = others.filter(|setting| *setting != missing).collect();
            let error = call(&server, server.oauth(&others)).await;
            let error = error.expect_err(provider.name);
            let [name, ..] = missing.names();
            assert!(
                error.contains(name),
                "{} without {missing:?}: {error}",
                provider.name
            );
        }
    }
}
