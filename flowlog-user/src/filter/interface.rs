use super::json::{self, Name};
use crate::record::Node;
use crate::tree::{Problems, Tree};

/// Interfaces, one of which the flow must have crossed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces(Vec<Interface>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Interface {
    /// 0 stands for any.
    index: u32,
    /// Empty stands for any.
    name: String,
}

const NAMES: &[Name] = &[("index", "index"), ("name", "name")];

impl Interfaces {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let fields = json::message(item, "interface key", NAMES, problems);
            let index = fields.get("index").map_or(Some(0), |tree| json::unsigned(tree, problems));
            let name = fields.get("name").map_or(Some(""), |tree| tree.text(problems));
            Some(Interface { index: index?, name: name?.to_owned() })
        })
        .map(Self)
    }

    /// Hubble knows one interface of a flow; we know up to four and test them all. 0 is none.
    pub(super) fn matches(&self, crossed: [u32; 4], node: &Node) -> bool {
        crossed.into_iter().filter(|index| *index != 0).any(|index| {
            let name = node.interfaces.get(&index).map_or("", |interface| interface.name.as_str());
            self.0.iter().any(|wanted| {
                (wanted.index == 0 || wanted.index == index)
                    && (wanted.name.is_empty() || wanted.name == name)
            })
        })
    }
}
