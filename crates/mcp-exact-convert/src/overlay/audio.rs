//! Audio in an embedded resource and back: 2024-11-05 has no audio content.
//!
//! The resource has a URI of its own, so that the way back is exact. Other resources are left alone.

use mcp_2024_11_05 as older;
use mcp_2025_03_26 as newer;

use crate::{Context, ConvertTo, LossKind, Refused};

/// The URI of resources that stand for audio: `urn:` needs no authority, and nobody can ask for it.
const URI: &str = "urn:mcp-exact:audio";

/// Audio as an embedded resource.
pub fn as_resource(
    audio: newer::AudioContent,
    cx: &mut Context,
) -> Result<older::ContentBlock, Refused> {
    let newer::AudioContent {
        annotations,
        data,
        mime_type,
        extra,
    } = audio;
    let annotations = cx.optional("annotations", annotations, |annotations, cx| {
        annotations.convert_to(cx)
    })?;
    // A member `resource` would be in the way of the resource; nothing else of audio is.
    let (extra, known) = extra.retype();
    for (name, _) in known {
        cx.lost(&name, LossKind::Dropped, "an embedded resource has its own");
    }
    let blob = older::BlobResourceContents {
        mime_type: Some(mime_type),
        ..older::BlobResourceContents::new(data, URI)
    };
    cx.lost_here(
        LossKind::Replaced,
        "an embedded resource stands for audio, which 2024-11-05 does not have",
    );
    Ok(older::ContentBlock::Resource(older::EmbeddedResource {
        annotations,
        resource: blob.into(),
        extra,
    }))
}

/// An embedded resource, or the audio that it stands for.
pub fn from_resource(
    resource: older::EmbeddedResource,
    cx: &mut Context,
) -> Result<newer::ContentBlock, Refused> {
    let stands_for_audio = match &resource.resource {
        older::AnyResourceContents::Blob(blob) => {
            blob.uri == URI && blob.mime_type.is_some() && blob.extra.is_empty()
        }
        older::AnyResourceContents::Text(_) => false,
    };
    let clashes = ["data", "mimeType"]
        .iter()
        .any(|name| resource.extra.get(name).is_some());
    if !stands_for_audio || clashes {
        let resource: newer::EmbeddedResource = resource.convert_to(cx)?;
        return Ok(resource.into());
    }
    let older::EmbeddedResource {
        annotations,
        resource: contents,
        extra,
    } = resource;
    let older::AnyResourceContents::Blob(blob) = contents else {
        return Err(cx.refused("an embedded resource that stands for audio holds bytes"));
    };
    cx.lost_here(LossKind::Rewritten, "an embedded resource stood for audio");
    let annotations = cx.optional("annotations", annotations, |annotations, cx| {
        annotations.convert_to(cx)
    })?;
    Ok(newer::ContentBlock::Audio(newer::AudioContent {
        annotations,
        data: blob.blob,
        mime_type: blob.mime_type.unwrap_or_default(),
        extra: extra.retype().0,
    }))
}
