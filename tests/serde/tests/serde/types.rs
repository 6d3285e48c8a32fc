//! Every definition of every revision by its name, as a type, and the test of each revision.
//!
//! The test holds the list against the table `DEFINITIONS` of the crate.

use crate::check::{Checked, check};
use crate::check_revision;

/// A definition: its name, and the check of its type.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&str, &mut Checked),
}

macro_rules! revisions {
    ($($id:literal $types:ident { $($name:ident)* })*) => {
        $(mod $types {
            use super::*;

            #[test]
            fn every_definition_passes_through_serde() {
                let types = &[$(Type {
                    name: stringify!($name),
                    check: check::<::$types::$name>,
                }),*];
                check_revision($id, types, ::$types::DEFINITIONS);
            }
        })*
    };
}

// @generated revision types: begin
revisions! {
    "2024-11-05" mcp_2024_11_05 {
        Annotated BlobResourceContents CallToolRequest CallToolResult CancelledNotification ClientCapabilities
        ClientNotification ClientRequest ClientResult CompleteRequest CompleteResult CreateMessageRequest
        CreateMessageResult Cursor EmbeddedResource EmptyResult GetPromptRequest GetPromptResult ImageContent
        Implementation InitializeRequest InitializeResult InitializedNotification JSONRPCError JSONRPCMessage
        JSONRPCNotification JSONRPCRequest JSONRPCResponse ListPromptsRequest ListPromptsResult
        ListResourceTemplatesRequest ListResourceTemplatesResult ListResourcesRequest ListResourcesResult
        ListRootsRequest ListRootsResult ListToolsRequest ListToolsResult LoggingLevel LoggingMessageNotification
        ModelHint ModelPreferences Notification PaginatedRequest PaginatedResult PingRequest ProgressNotification
        ProgressToken Prompt PromptArgument PromptListChangedNotification PromptMessage PromptReference
        ReadResourceRequest ReadResourceResult Request RequestId Resource ResourceContents
        ResourceListChangedNotification ResourceReference ResourceTemplate ResourceUpdatedNotification Result Role Root
        RootsListChangedNotification SamplingMessage ServerCapabilities ServerNotification ServerRequest ServerResult
        SetLevelRequest SubscribeRequest TextContent TextResourceContents Tool ToolListChangedNotification
        UnsubscribeRequest
    }
    "2025-03-26" mcp_2025_03_26 {
        Annotations AudioContent BlobResourceContents CallToolRequest CallToolResult CancelledNotification
        ClientCapabilities ClientNotification ClientRequest ClientResult CompleteRequest CompleteResult
        CreateMessageRequest CreateMessageResult Cursor EmbeddedResource EmptyResult GetPromptRequest GetPromptResult
        ImageContent Implementation InitializeRequest InitializeResult InitializedNotification JSONRPCBatchRequest
        JSONRPCBatchResponse JSONRPCError JSONRPCMessage JSONRPCNotification JSONRPCRequest JSONRPCResponse
        ListPromptsRequest ListPromptsResult ListResourceTemplatesRequest ListResourceTemplatesResult
        ListResourcesRequest ListResourcesResult ListRootsRequest ListRootsResult ListToolsRequest ListToolsResult
        LoggingLevel LoggingMessageNotification ModelHint ModelPreferences Notification PaginatedRequest PaginatedResult
        PingRequest ProgressNotification ProgressToken Prompt PromptArgument PromptListChangedNotification PromptMessage
        PromptReference ReadResourceRequest ReadResourceResult Request RequestId Resource ResourceContents
        ResourceListChangedNotification ResourceReference ResourceTemplate ResourceUpdatedNotification Result Role Root
        RootsListChangedNotification SamplingMessage ServerCapabilities ServerNotification ServerRequest ServerResult
        SetLevelRequest SubscribeRequest TextContent TextResourceContents Tool ToolAnnotations
        ToolListChangedNotification UnsubscribeRequest
    }
    "2025-06-18" mcp_2025_06_18 {
        Annotations AudioContent BaseMetadata BlobResourceContents BooleanSchema CallToolRequest CallToolResult
        CancelledNotification ClientCapabilities ClientNotification ClientRequest ClientResult CompleteRequest
        CompleteResult ContentBlock CreateMessageRequest CreateMessageResult Cursor ElicitRequest ElicitResult
        EmbeddedResource EmptyResult EnumSchema GetPromptRequest GetPromptResult ImageContent Implementation
        InitializeRequest InitializeResult InitializedNotification JSONRPCError JSONRPCMessage JSONRPCNotification
        JSONRPCRequest JSONRPCResponse ListPromptsRequest ListPromptsResult ListResourceTemplatesRequest
        ListResourceTemplatesResult ListResourcesRequest ListResourcesResult ListRootsRequest ListRootsResult
        ListToolsRequest ListToolsResult LoggingLevel LoggingMessageNotification ModelHint ModelPreferences Notification
        NumberSchema PaginatedRequest PaginatedResult PingRequest PrimitiveSchemaDefinition ProgressNotification
        ProgressToken Prompt PromptArgument PromptListChangedNotification PromptMessage PromptReference
        ReadResourceRequest ReadResourceResult Request RequestId Resource ResourceContents ResourceLink
        ResourceListChangedNotification ResourceTemplate ResourceTemplateReference ResourceUpdatedNotification Result
        Role Root RootsListChangedNotification SamplingMessage ServerCapabilities ServerNotification ServerRequest
        ServerResult SetLevelRequest StringSchema SubscribeRequest TextContent TextResourceContents Tool ToolAnnotations
        ToolListChangedNotification UnsubscribeRequest
    }
    "2025-11-25" mcp_2025_11_25 {
        Annotations AudioContent BaseMetadata BlobResourceContents BooleanSchema CallToolRequest CallToolRequestParams
        CallToolResult CancelTaskRequest CancelTaskResult CancelledNotification CancelledNotificationParams
        ClientCapabilities ClientNotification ClientRequest ClientResult CompleteRequest CompleteRequestParams
        CompleteResult ContentBlock CreateMessageRequest CreateMessageRequestParams CreateMessageResult CreateTaskResult
        Cursor ElicitRequest ElicitRequestFormParams ElicitRequestParams ElicitRequestURLParams ElicitResult
        ElicitationCompleteNotification EmbeddedResource EmptyResult EnumSchema Error GetPromptRequest
        GetPromptRequestParams GetPromptResult GetTaskPayloadRequest GetTaskPayloadResult GetTaskRequest GetTaskResult
        Icon Icons ImageContent Implementation InitializeRequest InitializeRequestParams InitializeResult
        InitializedNotification JSONRPCErrorResponse JSONRPCMessage JSONRPCNotification JSONRPCRequest JSONRPCResponse
        JSONRPCResultResponse LegacyTitledEnumSchema ListPromptsRequest ListPromptsResult ListResourceTemplatesRequest
        ListResourceTemplatesResult ListResourcesRequest ListResourcesResult ListRootsRequest ListRootsResult
        ListTasksRequest ListTasksResult ListToolsRequest ListToolsResult LoggingLevel LoggingMessageNotification
        LoggingMessageNotificationParams ModelHint ModelPreferences MultiSelectEnumSchema Notification
        NotificationParams NumberSchema PaginatedRequest PaginatedRequestParams PaginatedResult PingRequest
        PrimitiveSchemaDefinition ProgressNotification ProgressNotificationParams ProgressToken Prompt PromptArgument
        PromptListChangedNotification PromptMessage PromptReference ReadResourceRequest ReadResourceRequestParams
        ReadResourceResult RelatedTaskMetadata Request RequestId RequestParams Resource ResourceContents ResourceLink
        ResourceListChangedNotification ResourceRequestParams ResourceTemplate ResourceTemplateReference
        ResourceUpdatedNotification ResourceUpdatedNotificationParams Result Role Root RootsListChangedNotification
        SamplingMessage SamplingMessageContentBlock ServerCapabilities ServerNotification ServerRequest ServerResult
        SetLevelRequest SetLevelRequestParams SingleSelectEnumSchema StringSchema SubscribeRequest
        SubscribeRequestParams Task TaskAugmentedRequestParams TaskMetadata TaskStatus TaskStatusNotification
        TaskStatusNotificationParams TextContent TextResourceContents TitledMultiSelectEnumSchema
        TitledSingleSelectEnumSchema Tool ToolAnnotations ToolChoice ToolExecution ToolListChangedNotification
        ToolResultContent ToolUseContent URLElicitationRequiredError UnsubscribeRequest UnsubscribeRequestParams
        UntitledMultiSelectEnumSchema UntitledSingleSelectEnumSchema
    }
    "2026-07-28" mcp_2026_07_28 {
        Annotations AudioContent BaseMetadata BlobResourceContents BooleanSchema CacheableResult CallToolRequest
        CallToolRequestParams CallToolResult CallToolResultResponse CancelledNotification CancelledNotificationParams
        ClientCapabilities ClientNotification ClientRequest ClientResult CompleteRequest CompleteRequestParams
        CompleteResult CompleteResultResponse ContentBlock CreateMessageRequest CreateMessageRequestParams
        CreateMessageResult Cursor DiscoverRequest DiscoverResult DiscoverResultResponse ElicitRequest
        ElicitRequestFormParams ElicitRequestParams ElicitRequestURLParams ElicitResult EmbeddedResource EmptyResult
        EnumSchema Error GetPromptRequest GetPromptRequestParams GetPromptResult GetPromptResultResponse
        HeaderMismatchError Icon Icons ImageContent Implementation InputRequest InputRequests InputRequiredResult
        InputResponse InputResponseRequestParams InputResponses InternalError InvalidParamsError InvalidRequestError
        JSONArray JSONObject JSONRPCErrorResponse JSONRPCMessage JSONRPCNotification JSONRPCRequest JSONRPCResponse
        JSONRPCResultResponse JSONValue LegacyTitledEnumSchema ListPromptsRequest ListPromptsResult
        ListPromptsResultResponse ListResourceTemplatesRequest ListResourceTemplatesResult
        ListResourceTemplatesResultResponse ListResourcesRequest ListResourcesResult ListResourcesResultResponse
        ListRootsRequest ListRootsResult ListToolsRequest ListToolsResult ListToolsResultResponse LoggingLevel
        LoggingMessageNotification LoggingMessageNotificationParams MetaObject MethodNotFoundError
        MissingRequiredClientCapabilityError ModelHint ModelPreferences MultiSelectEnumSchema Notification
        NotificationMetaObject NotificationParams NumberSchema PaginatedRequest PaginatedRequestParams PaginatedResult
        ParseError PrimitiveSchemaDefinition ProgressNotification ProgressNotificationParams ProgressToken Prompt
        PromptArgument PromptListChangedNotification PromptMessage PromptReference ReadResourceRequest
        ReadResourceRequestParams ReadResourceResult ReadResourceResultResponse Request RequestId RequestMetaObject
        RequestParams Resource ResourceContents ResourceLink ResourceListChangedNotification ResourceRequestParams
        ResourceTemplate ResourceTemplateReference ResourceUpdatedNotification ResourceUpdatedNotificationParams Result
        ResultMetaObject ResultType Role Root SamplingMessage SamplingMessageContentBlock ServerCapabilities
        ServerNotification ServerResult SingleSelectEnumSchema StringSchema SubscriptionFilter
        SubscriptionsAcknowledgedNotification SubscriptionsAcknowledgedNotificationParams SubscriptionsListenRequest
        SubscriptionsListenRequestParams SubscriptionsListenResult SubscriptionsListenResultMetaObject
        SubscriptionsListenResultResponse TextContent TextResourceContents TitledMultiSelectEnumSchema
        TitledSingleSelectEnumSchema Tool ToolAnnotations ToolChoice ToolListChangedNotification ToolResultContent
        ToolUseContent UnsupportedProtocolVersionError UntitledMultiSelectEnumSchema UntitledSingleSelectEnumSchema
    }
}
// @generated revision types: end
