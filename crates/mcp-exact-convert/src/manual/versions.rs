//! `protocolVersion` of `initialize` messages, which follows the revision of the message.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::Node;

/// Replaces the source revision in `protocolVersion` by the target revision; any other identifier is unchanged.
pub fn of_target<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let (source, target) = cx.step;
    let Some(version) = node.member("protocolVersion") else {
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
    let reason = "initialize names the revision of the message";
    cx.record_loss("protocolVersion", at, LossKind::Rewritten, reason);
    Ok(())
}
