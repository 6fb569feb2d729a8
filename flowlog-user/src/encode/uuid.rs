use crate::record::{Flow, Node};

/// Writes the record's `uuid`, quoted.
pub(super) fn uuid(out: &mut Vec<u8>, flow: &Flow, node: &Node) {
    out.push(b'"');
    out.extend_from_slice(&flow.uuid(node));
    out.push(b'"');
}
