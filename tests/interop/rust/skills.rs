//! Skills (SEP-2640) with rmcp: `skills serve FOLDER` is a server of the skills in a folder, over Streamable HTTP on a free port;
//! `skills read URL` verifies each file of each skill of a server, and prints a line `{"file": URI, "sha256": DIGEST}` for it.

mod listen;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::handler::server::skill_catalog::SkillCatalog;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ErrorData, GetSkillRequestParams, GetSkillResult,
    Implementation, ListResourcesResult, ListSkillsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
    ReadResourceResponse, ResourceContents, ServerCapabilities, ServerConfig, SkillResources,
    sha256_digest,
};
use rmcp::service::RequestContext;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleServer, ServerHandler};
use serde_json::json;

/// Error of the program.
type Failure = Box<dyn std::error::Error>;

/// Server of the skills in a folder.
#[derive(Clone)]
struct Skills(Arc<SkillCatalog>);

impl ServerHandler for Skills {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_resources()
            .enable_skills_with_directory_read()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_skills(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        Ok(self.0.list_skills())
    }

    async fn get_skill(
        &self,
        params: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.0.get_skill(&params.uri)
    }

    async fn read_resource_directory(
        &self,
        params: ReadResourceDirectoryRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.0.read_resource_directory(&params.uri)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.0.resources()))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.0.read_resource(&params.uri);
        let unknown = || ErrorData::resource_not_found(params.uri.clone(), None);
        Ok(read.ok_or_else(unknown)?.into())
    }
}

/// Runs the server over HTTP on a free port.
async fn serve(folder: &str) -> Result<(), Failure> {
    let skills = Skills(Arc::new(SkillCatalog::from_dir(folder)?));
    let manager = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(skills.clone()), manager, config);
    listen::serve(service).await
}

/// Reads and verifies all files of all skills.
async fn read(url: &str) -> Result<(), Failure> {
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let client = ClientConfig::new(
        ClientCapabilities::default(),
        Implementation::new("interop-peer", "1.0.0"),
    );
    let transport = StreamableHttpClientTransport::from_uri(url);
    let session = client.serve_with_lifecycle(transport, lifecycle).await?;
    for skill in session.list_all_skills().await? {
        skill.validate()?;
        let SkillResources::Files(files) = skill.resources else {
            return Err(format!("{} has no list of its files", skill.uri).into());
        };
        for file in files {
            let params = ReadResourceRequestParams::new(file.uri.as_str());
            let read = session.read_resource(params).await?;
            let bytes = match read.contents.into_iter().next() {
                Some(ResourceContents::TextResourceContents { text, .. }) => text.into_bytes(),
                Some(ResourceContents::BlobResourceContents { blob, .. }) => {
                    STANDARD.decode(blob)?
                }
                other => return Err(format!("{}: no contents: {other:?}", file.uri).into()),
            };
            file.verify(&bytes)?;
            let digest = sha256_digest(&bytes);
            let digest = digest.strip_prefix("sha256:").unwrap_or(&digest);
            println!("{}", json!({ "file": file.uri, "sha256": digest }));
        }
    }
    session.cancel().await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [what, folder] if what == "serve" => serve(folder).await,
        [what, url] if what == "read" => read(url).await,
        other => Err(format!("{other:?}: give `serve FOLDER` or `read URL`").into()),
    }
}
