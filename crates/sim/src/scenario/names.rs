//! Names of nodes and groups, and the pairs of nodes that links and traffic run between.

use super::node::NodeId;
use airtcp_config::Section;
use airtcp_settings::Name;
use airtcp_settings::schema::{Count, Kind, TextKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// The name of a node or of a group of nodes.
static NODE_NAME: TextKind = TextKind {
    name: "node",
    plural: "nodes",
    expected: "the name of a node",
    expected_plural: "names of nodes",
};
pub(super) const A_NODE: Kind = Kind::Text(&NODE_NAME);
pub(super) const NODES: Kind = Kind::Texts { of: &NODE_NAME, count: Count::Some };
pub(super) const TWO_NODES: Kind = Kind::Texts { of: &NODE_NAME, count: Count::Two };

/// The most nodes or flows one scenario may have. They fit into 10.0.0.0/8, and a typing error does
/// not exhaust memory.
const MAX_ELEMENTS: u64 = 1_000_000;
pub(super) const COUNT: Kind = Kind::Integer { min: 1, max: MAX_ELEMENTS };

/// True if there are at most [`MAX_ELEMENTS`] nodes, flows or sources; otherwise reports the table.
pub(super) fn fits(section: &Section<'_>, key: &str, plural: &str, total: u64) -> bool {
    let fits = total <= MAX_ELEMENTS;
    if !fits {
        let problem = section.problem(key, format!("makes too many {plural}"));
        section.push(problem.expected(format!("at most {MAX_ELEMENTS} {plural}")));
    }
    fits
}

/// Groups and single nodes by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<String, Range<u32>>,
    /// Names of nodes and groups that were refused.
    refused: Vec<String>,
    /// True if there may be nodes with unknown names, because of mistakes elsewhere.
    is_incomplete: bool,
}

impl Names {
    pub(super) fn new(is_incomplete: bool) -> Self {
        Self { is_incomplete, ..Self::default() }
    }

    pub(super) fn get(&self, name: &str) -> Option<Range<u32>> {
        self.known.get(name).cloned()
    }

    /// Adds a node or a group; false if the name is taken.
    pub(super) fn add(&mut self, name: &str, nodes: Range<u32>) -> bool {
        self.known.insert(name.to_owned(), nodes).is_none()
    }

    /// Notes that the file has a node or a group that cannot be made.
    pub(super) fn refuse(&mut self, name: Option<&Name>) {
        match name {
            Some(name) => self.refused.push(name.text.clone()),
            None => self.is_incomplete = true,
        }
    }

    /// True if the node or group of this name, or the group that it belongs to, was refused.
    fn is_refused(&self, name: &str) -> bool {
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        self.refused.iter().any(|refused| name.strip_prefix(&**refused).is_some_and(is_number))
    }
}

/// The nodes that a name stands for. An unknown one is reported, unless a mistake in the node
/// itself was.
pub(super) fn resolve(
    section: &Section<'_>,
    key: &str,
    name: &Name,
    names: &Names,
) -> Option<Range<u32>> {
    let range = names.get(&name.text);
    // Without any node, the file's nodes were refused altogether.
    if range.is_none() && !names.known.is_empty() && !names.is_refused(&name.text) {
        let message = format!("no node is called {:?}", name.text);
        let known = names.known.keys().map(String::as_str);
        let problem = section.problem_at(name.spot, key, message).nearest(&name.text, known);
        section.push(if names.is_incomplete { problem.may_follow() } else { problem });
    }
    range
}

/// Pairs of nodes for two names: one with one, one with each of a group, or two groups of equal
/// size.
pub(super) fn pairs(
    section: &Section<'_>,
    key: &str,
    a: Range<u32>,
    b: Range<u32>,
) -> Option<Vec<(NodeId, NodeId)>> {
    let pairs: Vec<(NodeId, NodeId)> = match (a.len(), b.len()) {
        (1, _) => b.map(|b| (NodeId(a.start), NodeId(b))).collect(),
        (_, 1) => a.map(|a| (NodeId(a), NodeId(b.start))).collect(),
        (m, n) if m == n => a.zip(b).map(|(a, b)| (NodeId(a), NodeId(b))).collect(),
        (m, n) => {
            let message = format!("a group of {m} and a group of {n}");
            let expected = "groups of equal size, or a single node at one end";
            section.push(section.problem(key, message).expected(expected));
            return None;
        }
    };
    if pairs.iter().any(|(a, b)| a == b) {
        section.push(section.problem(key, "both ends are the same node").expected("two nodes"));
        return None;
    }
    Some(pairs)
}
