//! A client that the official conformance suite starts for each of its client scenarios (`cargo xtask conformance client`).
//!
//! `everything_client URL` connects with the revision in `MCP_CONFORMANCE_PROTOCOL_VERSION`, and executes the steps
//! that the scenario in `MCP_CONFORMANCE_SCENARIO` requires of a client, with the data in `MCP_CONFORMANCE_CONTEXT`.
//! Without a scenario, the program uses all features of the server. A failed call ends the program with an error.

use std::env;

use bytes::Bytes;
use mcp_exact::auth::Secret;
use mcp_exact::auth::client::{
    AgentFuture, IdentityProvider, OAuth, Redirect, SigningKey, Url, UserAgent,
};
use mcp_exact::transport::http::client::{HttpClient, HyperClient};
use mcp_exact::{
    Client, Connect, Definition, Error, Form, FormAnswer, JsonObject, Result, Revision, Root,
    SampleReply, SampleRequest, revisions,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Context that the suite passes in addition to the name of the scenario.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    /// Tool calls that the scenario requires.
    tool_calls: Vec<ToolCall>,
    /// Credentials of the scenario.
    #[serde(flatten)]
    credentials: Credentials,
}

/// Credentials of the scenarios about authorization.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Credentials {
    client_id: Option<String>,
    client_secret: Option<Secret>,
    issuer: Option<String>,
    private_key_pem: Option<Secret>,
    /// Client id at the identity provider.
    idp_client_id: String,
    /// Identity token of the user.
    idp_id_token: Secret,
    /// Token endpoint of the identity provider.
    idp_token_endpoint: String,
    /// Token of a workload's platform, for the grant `jwt-bearer`.
    valid_jwt: Option<Secret>,
}

/// Tool call that the scenario requires.
#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: Map<String, Value>,
}

/// Returns the revision that the suite requests; `None` to negotiate a revision.
fn revision() -> Result<Option<Revision>> {
    let Ok(wanted) = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION") else {
        return Ok(None);
    };
    let known = revisions().find(|revision| revision.as_str() == wanted);
    match known {
        Some(revision) => Ok(Some(revision)),
        None => Err(Error::msg(format!(
            "revision {wanted:?} is unknown; set MCP_CONFORMANCE_PROTOCOL_VERSION to a released one"
        ))),
    }
}

/// Returns the context in `MCP_CONFORMANCE_CONTEXT`; an empty context if the variable is not set.
fn context() -> Result<Context> {
    match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text).map_err(Error::from),
        Err(_) => Ok(Context::default()),
    }
}

/// User agent that signs in without a user, because the suite redirects immediately.
struct AutomaticUserAgent;

impl UserAgent for AutomaticUserAgent {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        Box::pin(async {
            let redirect: Box<dyn Redirect> = Box::new(Self);
            Ok(redirect)
        })
    }
}

impl Redirect for AutomaticUserAgent {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:8765/callback"
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        Box::pin(async move {
            let request = http::Request::get(url.as_str()).body(Bytes::new());
            let request = request.map_err(|error| error.to_string())?;
            let client = HyperClient::default();
            let response = client.send(request).await;
            let response = response.map_err(|error| error.to_string())?;
            let location = response.headers().get("location");
            let location = location.and_then(|location| location.to_str().ok());
            let query = location.and_then(|location| location.split_once('?'));
            let (_, query) = query.ok_or("the server does not redirect")?;
            Ok(Secret::new(query))
        })
    }
}

/// Returns the OAuth options that the context requires.
fn oauth_options(context: Credentials) -> Result<OAuth> {
    if let Some(token) = context.valid_jwt {
        return Ok(OAuth::workload(move || {
            let token = token.clone();
            async move { Ok(token) }
        }));
    }
    let (secret, issuer) = (context.client_secret, context.issuer);
    let Some(id) = context.client_id else {
        return Ok(OAuth::with_metadata_document(
            "https://conformance-test.local/client-metadata.json",
        ));
    };
    if let Some(pem) = context.private_key_pem {
        let key = SigningKey::from_pem(pem.expose())?;
        return Ok(OAuth::client_credentials_key(id, key));
    }
    let secret = secret.unwrap_or_default();
    if !context.idp_token_endpoint.is_empty() {
        let token = context.idp_id_token;
        let provider = IdentityProvider::new(
            context.idp_token_endpoint,
            context.idp_client_id,
            move || {
                let token = token.clone();
                async move { Ok(token) }
            },
        );
        return Ok(OAuth::enterprise(provider, id, secret));
    }
    Ok(match issuer {
        Some(issuer) => OAuth::registered(issuer, id).secret(secret),
        None => OAuth::client_credentials(id, secret),
    })
}

/// Returns the builder of the client, with handlers, roots, OAuth options and the requested revision.
fn connect_client(url: &str, credentials: Credentials) -> Result<Connect> {
    // Servers of 2025-03-26 without metadata are their own authorization servers.
    let origin: Url = url.parse()?;
    let origin = origin.origin().ascii_serialization();
    let oauth = oauth_options(credentials)?
        .allow_other_ports()
        .assume_pkce(origin);
    let connect = Client::connect(url)
        .identity("everything-client", "1.0.0")
        .on_elicit(fill_in)
        .on_sample(|request: SampleRequest| async move {
            SampleReply::message("example-model", format!("You said: {}", request.text()))
        })
        .roots([Root {
            uri: "file:///workspace".to_owned(),
            name: Some("Workspace".to_owned()),
        }])
        .oauth(oauth.user_agent(AutomaticUserAgent));
    let is_about_skills =
        env::var("MCP_CONFORMANCE_SCENARIO").is_ok_and(|name| name.starts_with("sep-2640-"));
    let connect = if is_about_skills {
        connect.skills()
    } else {
        connect
    };
    Ok(match revision()? {
        Some(revision) => connect.revision(revision),
        None => connect,
    })
}

/// Accepts a form with the default of each field, or a simple value for required fields without a default.
async fn fill_in(form: Form) -> FormAnswer {
    let schema = form.schema().and_then(|schema| to_value(&schema).ok());
    match schema {
        Some(schema) => form.accept(&sample_arguments(&schema)),
        None => form.decline(),
    }
}

/// Parses an object as a [`Value`].
fn to_value(object: &JsonObject) -> Result<Value> {
    serde_json::from_str(object.text()).map_err(Error::from)
}

/// Returns an object that is valid for a flat schema: defaults, and simple values for required properties and booleans.
fn sample_arguments(schema: &Value) -> Map<String, Value> {
    let required = |name: &String| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let values = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| {
            let kind = property.get("type").and_then(Value::as_str);
            let value = match (property.get("default"), kind) {
                (Some(default), _) => default.clone(),
                (None, Some("boolean")) => json!(true),
                (None, _) if !required(name) => return None,
                (None, Some("integer" | "number")) => json!(1),
                (None, Some("array")) => json!([]),
                (None, Some("object")) => json!({}),
                (None, _) => property
                    .pointer("/enum/0")
                    .or_else(|| property.pointer("/oneOf/0/const"))
                    .cloned()
                    .unwrap_or_else(|| json!("text")),
            };
            Some((name.clone(), value))
        });
    values.collect()
}

/// Calls a tool with arguments that are valid for its schema.
async fn call_with_sample(client: &Client, tool: &Definition) -> Result {
    let schema = tool.input_schema().unwrap_or_default();
    client
        .call_tool(&tool.name(), &sample_arguments(&to_value(&schema)?))
        .await?;
    Ok(())
}

/// Lists the tools if the server declares the capability `tools`.
async fn list_tools(client: &Client) -> Result {
    if client.capabilities().get("tools").is_some() {
        client.tools().all().await?;
    }
    Ok(())
}

/// Calls all tools of the server, one after the other.
async fn call_all_tools(client: &Client) -> Result {
    for tool in client.tools().all().await? {
        call_with_sample(client, &tool).await?;
    }
    Ok(())
}

/// Calls the first two tools concurrently, one of which sends an input request, and then calls the other tools.
async fn call_concurrently(client: &Client) -> Result {
    let tools = client.tools().all().await?;
    let (first, rest) = tools.split_at(tools.len().min(2));
    if let [one, other] = first {
        let (one, other) = tokio::join!(
            call_with_sample(client, one),
            call_with_sample(client, other)
        );
        one?;
        other?;
    }
    for tool in rest {
        call_with_sample(client, tool).await?;
    }
    Ok(())
}

/// Calls the tools that the context names, after listing the definitions, which are needed to mirror arguments into
/// headers.
async fn call_named_tools(client: &Client, context: &Context) -> Result {
    client.tools().all().await?;
    for wanted in &context.tool_calls {
        client.call_tool(&wanted.name, &wanted.arguments).await?;
    }
    Ok(())
}

/// Sends the schema of one tool to another tool, so that the suite can compare the two schemas.
async fn echo_schema(client: &Client) -> Result {
    let tools = client.tools().all().await?;
    let tool = tools
        .iter()
        .find(|tool| tool.name() == "json_schema_2020_12_tool");
    let schema = tool.and_then(Definition::input_schema);
    let schema = schema.ok_or_else(|| Error::msg("the server does not offer the tool to echo"))?;
    let arguments = json!({"schema": to_value(&schema)?});
    client.call_tool("json_schema_echo", &arguments).await?;
    Ok(())
}

/// Lists the skills without reading one ("hosts MUST NOT retrieve a skill's files ahead of need"), or reads all files of each:
/// content that is not what its entry describes is an error.
async fn use_skills(client: &Client, reads: bool) -> Result {
    for skill in client.skills().await?.skills {
        let files = skill.resources().unwrap_or_default().iter();
        for path in files.filter_map(|file| skill.path_of(&file.uri).filter(|_| reads)) {
            client.read_skill(&skill, path).await?;
        }
    }
    Ok(())
}

/// Uses the tools, resources and prompts that the server declares.
async fn use_everything(client: &Client) -> Result {
    let capabilities = client.capabilities();
    if capabilities.get("tools").is_some() {
        call_all_tools(client).await?;
    }
    if capabilities.get("resources").is_some() {
        for resource in client.resources().all().await? {
            client.read(&resource.uri().unwrap_or_default()).await?;
        }
        client.resource_templates().all().await?;
    }
    if capabilities.get("prompts").is_some() {
        for prompt in client.prompts().all().await? {
            client.prompt(&prompt.name(), []).await?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let url = env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("no URL; give the endpoint of the server as the argument"))?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let mut context = context()?;
    let credentials = std::mem::take(&mut context.credentials);
    let client = connect_client(&url, credentials)?.await?;
    match scenario.as_str() {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {
            list_tools(&client).await?;
        }
        "sep-2322-client-request-state" => call_concurrently(&client).await?,
        "http-custom-headers" => call_named_tools(&client, &context).await?,
        "json-schema-2020-12-preservation" => echo_schema(&client).await?,
        "sep-2640-client-no-prefetch" => use_skills(&client, false).await?,
        scenario if scenario.starts_with("sep-2640-client-") => use_skills(&client, true).await?,
        _ => use_everything(&client).await?,
    }
    client.close();
    client.closed().await;
    Ok(())
}
