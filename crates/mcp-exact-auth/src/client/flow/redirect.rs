//! Validation of redirect URIs for authorization codes.

use url::Url;

use crate::client::error::OAuthError;
use crate::client::gate::is_loopback;

/// Checks that a redirect URI is https, loopback, or a private-use scheme of the application ("Communication
/// Security").
pub(super) fn check_redirect(uri: &str) -> Result<(), OAuthError> {
    let url = Url::parse(uri).ok();
    let is_safe = url.is_some_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        scheme => scheme.contains('.'),
    });
    if is_safe {
        Ok(())
    } else {
        Err(OAuthError::Url {
            what: "the redirect URI",
            url: uri.to_owned(),
            reason: "use https, a loopback address, or a custom scheme with a dot".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Communication Security": redirect URIs are loopback or https; native applications have private-use schemes (RFC
    /// 8252, section 7.1).
    #[test]
    fn redirect_uris_are_safe() {
        for (uri, is_safe) in [
            ("http://127.0.0.1:7/callback", true),
            ("http://[::1]/callback", true),
            ("http://localhost/callback", true),
            ("https://app.example/callback", true),
            ("com.example.app:/callback", true),
            ("http://app.example/callback", false),
            ("app:/callback", false),
            ("javascript:alert(1)", false),
            ("/callback", false),
        ] {
            assert_eq!(check_redirect(uri).is_ok(), is_safe, "{uri}");
        }
    }
}
