//! `protocolVersion` of `initialize` messages and of the metadata of requests, which follows the revision of the message.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::Node;

/// Member of the metadata of requests since 2026-07-28 (`basic`, "_meta").
const OF_REQUESTS: &str = "io.modelcontextprotocol/protocolVersion";

/// Replaces the source revision in `protocolVersion` by the target revision; any other identifier is unchanged.
pub fn of_target<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let (source, target) = cx.step;
    let (name, reason) = if node.member(OF_REQUESTS).is_some() {
        let reason = "each request names the revision of the message";
        (OF_REQUESTS, reason)
    } else {
        let reason = "initialize names the revision of the message";
        ("protocolVersion", reason)
    };
    let Some(version) = node.member(name) else {
        return Ok(());
    };
    if version.string().as_deref() != Some(source.as_str()) {
        return Ok(());
    }
    let at = version.at;
    *version = Node {
        at,
        ..Node::new_string(target.as_str())
    };
    cx.record_loss(name, at, LossKind::Rewritten, reason);
    Ok(())
}
