//! Browser of a user: keeps cookies, follows redirects, and sends forms.
//!
//! Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};

/// Answer of a page.
#[derive(Debug, Clone)]
pub struct Page {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: String,
    /// URL of the page.
    pub url: String,
}

/// Browser of a user, which keeps cookies and follows redirects.
#[derive(Clone)]
pub struct Browser {
    /// Cookies of each host and port.
    pub cookies: BTreeMap<String, BTreeMap<String, String>>,
}

impl Browser {
    /// Creates the browser of a user who is signed in at these issuers.
    pub fn of(user: &str, issuers: &[&str]) -> Self {
        let cookie = || BTreeMap::from([("user".to_owned(), user.to_owned())]);
        let cookies = issuers.iter().map(|issuer| (host_of(issuer), cookie()));
        Self {
            cookies: cookies.collect(),
        }
    }

    /// Gives a host the cookies of another one, as processes behind a balancer have one host.
    pub fn copy_cookies(&mut self, from: &str, to: &str) {
        let jar = self.cookies.get(from).cloned().unwrap_or_default();
        self.cookies.insert(to.to_owned(), jar);
    }

    /// Sends one request.
    pub async fn send(&mut self, method: Method, url: &str, headers: &[(&str, &str)]) -> Page {
        let mut request = http::Request::builder().method(method).uri(url);
        let jar = self.cookies.entry(host_of(url)).or_default();
        if !jar.is_empty() {
            let pairs = jar.iter().map(|(name, value)| format!("{name}={value}"));
            request = request.header("cookie", pairs.collect::<Vec<_>>().join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new()).expect("a request");
        let response = HyperClient::default().send(request).await;
        let (head, body) = response.expect("answered").into_parts();
        for cookie in head.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("ASCII");
            let (pair, attributes) = cookie.split_once(';').expect("attributes");
            let (name, value) = pair.split_once('=').expect("a pair");
            if attributes.contains("Max-Age=0") {
                jar.remove(name);
            } else {
                jar.insert(name.to_owned(), value.to_owned());
            }
        }
        let body = body.collect().await.expect("a body").to_bytes();
        Page {
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
            url: url.to_owned(),
        }
    }

    /// Opens a page, and follows redirects while they lead to a URL that `follows` accepts.
    pub async fn open_while(&mut self, url: &str, follows: impl Fn(&str) -> bool) -> Page {
        let mut page = self.send(Method::GET, url, &[]).await;
        while let Some(target) = page.location().filter(|target| follows(target)) {
            page = self.send(Method::GET, &target, &[]).await;
        }
        page
    }

    /// Opens a page, and follows all redirects.
    pub async fn open(&mut self, url: &str) -> Page {
        self.open_while(url, |_| true).await
    }

    /// Sends a form of a page, and returns the answer without following its redirect.
    pub async fn submit(&mut self, page: &Page, decision: &str) -> Page {
        let action = page.action(decision);
        let origin = page.url.split('/').take(3).collect::<Vec<_>>().join("/");
        let headers = [("origin", &*origin), ("sec-fetch-site", "same-origin")];
        self.send(Method::POST, &action, &headers).await
    }

    /// Opens the page that a user was asked to visit, and agrees.
    pub async fn agree(&mut self, url: &str) -> Page {
        let page = self.open(url).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let answer = self.submit(&page, "allow").await;
        let target = answer.location().expect("a redirect");
        self.open(&target).await
    }
}

impl Page {
    /// Returns the target of a redirect.
    pub fn location(&self) -> Option<String> {
        let location = self.headers.get("location")?;
        let location = location.to_str().expect("ASCII");
        if !location.starts_with('/') {
            return Some(location.to_owned());
        }
        let origin: Vec<&str> = self.url.split('/').take(3).collect();
        Some(origin.join("/") + location)
    }

    /// Returns the URL of a form.
    pub fn action(&self, decision: &str) -> String {
        let mut actions = self.body.split("action=\"").skip(1);
        let action = actions.find(|action| action.contains(&format!("decision={decision}\"")));
        let action = action.expect("a form").split('"').next().expect("a URL");
        let base = self.url.split('?').next().expect("a URL");
        let (folder, _) = base.rsplit_once('/').expect("a path");
        format!("{folder}/{}", action.replace("&amp;", "&"))
    }
}

/// Returns host and port of a URL.
fn host_of(url: &str) -> String {
    url.split('/').nth(2).expect("a host").to_owned()
}
