use super::json::{self, Name};
use crate::record::EventKind;
use crate::tree::{Problems, Tree};

/// Event types, one of which must be the flow's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventTypes(Vec<EventType>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EventType {
    /// 0 stands for any.
    number: i32,
    /// Set where the sub type counts.
    sub_type: Option<i32>,
}

/// The monitor's number of L7 events.
const L7: i32 = 129;

pub(super) const NAMES: &[Name] =
    &[("type", "type"), ("match_sub_type", "matchSubType"), ("sub_type", "subType")];

impl EventTypes {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let fields = json::message(item, "event type key", NAMES, problems);
            let number = fields.get("type").map_or(Some(0), |tree| json::signed(tree, problems));
            let sub_type = fields.get("sub_type").map_or(Some(0), |tree| json::signed(tree, problems));
            let counts = fields.get("match_sub_type").map_or(Some(false), |tree| tree.boolean(problems));
            Some(EventType { number: number?, sub_type: sub_type.filter(|_| counts == Some(true)) })
        })
        .map(Self)
    }

    /// Whether one of them is the monitor's number of L7 events, the only ones with HTTP in them.
    pub(super) fn have_l7(&self) -> bool {
        self.0.iter().any(|wanted| wanted.number == L7)
    }

    /// Whether one of them is this number, or any.
    pub(super) fn have(&self, number: i32) -> bool {
        self.0.iter().any(|wanted| wanted.number == number || wanted.number == 0)
    }

    /// Whether one of them is this number, or any, whatever the sub type.
    pub(super) fn have_whole(&self, number: i32) -> bool {
        let whole = |wanted: &EventType| wanted.sub_type.is_none();
        self.0.iter().any(|wanted| whole(wanted) && (wanted.number == number || wanted.number == 0))
    }

    /// Lost events have no type, and always match.
    pub(super) fn matches(&self, kind: EventKind) -> bool {
        let (number, sub_type) = match kind {
            EventKind::Flow(Some(event_type)) => event_type,
            EventKind::Other(number, sub_type) => (number, sub_type),
            EventKind::Lost => return true,
            EventKind::Flow(None) | EventKind::None => return false,
        };
        self.0.iter().any(|wanted| {
            (wanted.number == 0 || wanted.number == number)
                && wanted.sub_type.is_none_or(|wanted| wanted == sub_type)
        })
    }
}
