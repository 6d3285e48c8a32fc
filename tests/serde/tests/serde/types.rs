//! Every definition of every revision by its name, as a type.
//!
//! A test holds the lists against the tables `DEFINITIONS` of the crates.

use crate::check::{Checked, check};

/// A definition: its name, and the check of its type.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&str, &mut Checked),
}

macro_rules! each_type {
    ($crate_name:ident: $($name:ident),* $(,)?) => {
        &[$(Type {
            name: stringify!($name),
            check: check::<$crate_name::$name>,
        }),*]
    };
}

pub(crate) const V2024_11_05: &[Type] = each_type![mcp_2024_11_05:
    Annotated, BlobResourceContents, CallToolRequest, CallToolResult, CancelledNotification, ClientCapabilities, ClientNotification, ClientRequest, ClientResult, CompleteRequest, CompleteResult, CreateMessageRequest, CreateMessageResult, Cursor, EmbeddedResource, EmptyResult, GetPromptRequest, GetPromptResult, ImageContent, Implementation, InitializeRequest, InitializeResult, InitializedNotification, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListRootsRequest, ListRootsResult, ListToolsRequest, ListToolsResult, LoggingLevel, LoggingMessageNotification, ModelHint, ModelPreferences, Notification, PaginatedRequest, PaginatedResult, PingRequest, ProgressNotification, ProgressToken, Prompt, PromptArgument, PromptListChangedNotification, PromptMessage, PromptReference, ReadResourceRequest, ReadResourceResult, Request, RequestId, Resource, ResourceContents, ResourceListChangedNotification, ResourceReference, ResourceTemplate, ResourceUpdatedNotification, Result, Role, Root, RootsListChangedNotification, SamplingMessage, ServerCapabilities, ServerNotification, ServerRequest, ServerResult, SetLevelRequest, SubscribeRequest, TextContent, TextResourceContents, Tool, ToolListChangedNotification, UnsubscribeRequest
];

pub(crate) const V2025_03_26: &[Type] = each_type![mcp_2025_03_26:
    Annotations, AudioContent, BlobResourceContents, CallToolRequest, CallToolResult, CancelledNotification, ClientCapabilities, ClientNotification, ClientRequest, ClientResult, CompleteRequest, CompleteResult, CreateMessageRequest, CreateMessageResult, Cursor, EmbeddedResource, EmptyResult, GetPromptRequest, GetPromptResult, ImageContent, Implementation, InitializeRequest, InitializeResult, InitializedNotification, JSONRPCBatchRequest, JSONRPCBatchResponse, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListRootsRequest, ListRootsResult, ListToolsRequest, ListToolsResult, LoggingLevel, LoggingMessageNotification, ModelHint, ModelPreferences, Notification, PaginatedRequest, PaginatedResult, PingRequest, ProgressNotification, ProgressToken, Prompt, PromptArgument, PromptListChangedNotification, PromptMessage, PromptReference, ReadResourceRequest, ReadResourceResult, Request, RequestId, Resource, ResourceContents, ResourceListChangedNotification, ResourceReference, ResourceTemplate, ResourceUpdatedNotification, Result, Role, Root, RootsListChangedNotification, SamplingMessage, ServerCapabilities, ServerNotification, ServerRequest, ServerResult, SetLevelRequest, SubscribeRequest, TextContent, TextResourceContents, Tool, ToolAnnotations, ToolListChangedNotification, UnsubscribeRequest
];

pub(crate) const V2025_06_18: &[Type] = each_type![mcp_2025_06_18:
    Annotations, AudioContent, BaseMetadata, BlobResourceContents, BooleanSchema, CallToolRequest, CallToolResult, CancelledNotification, ClientCapabilities, ClientNotification, ClientRequest, ClientResult, CompleteRequest, CompleteResult, ContentBlock, CreateMessageRequest, CreateMessageResult, Cursor, ElicitRequest, ElicitResult, EmbeddedResource, EmptyResult, EnumSchema, GetPromptRequest, GetPromptResult, ImageContent, Implementation, InitializeRequest, InitializeResult, InitializedNotification, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListRootsRequest, ListRootsResult, ListToolsRequest, ListToolsResult, LoggingLevel, LoggingMessageNotification, ModelHint, ModelPreferences, Notification, NumberSchema, PaginatedRequest, PaginatedResult, PingRequest, PrimitiveSchemaDefinition, ProgressNotification, ProgressToken, Prompt, PromptArgument, PromptListChangedNotification, PromptMessage, PromptReference, ReadResourceRequest, ReadResourceResult, Request, RequestId, Resource, ResourceContents, ResourceLink, ResourceListChangedNotification, ResourceTemplate, ResourceTemplateReference, ResourceUpdatedNotification, Result, Role, Root, RootsListChangedNotification, SamplingMessage, ServerCapabilities, ServerNotification, ServerRequest, ServerResult, SetLevelRequest, StringSchema, SubscribeRequest, TextContent, TextResourceContents, Tool, ToolAnnotations, ToolListChangedNotification, UnsubscribeRequest
];
