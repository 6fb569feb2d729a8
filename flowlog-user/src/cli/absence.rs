//! The time between an orderly stop and the next start, when nothing is pinned: what passed meanwhile is not seen, and
//! that is said with what the interfaces themselves counted.

use std::collections::BTreeMap;

use flowlog_user::capture::live::{self, InterfaceState};
use flowlog_user::clock::wall_ns;
use flowlog_user::task::Earlier;
use flowlog_user::write::{Place, StateDir};
use serde_json::{Value, json};

const FOLDER: &str = "absence";
const FILE: &str = "stopped.json";
/// A thousand interfaces take a tenth.
const BYTES_MAX: u64 = 1 << 20;

/// What the interfaces had counted when it ended.
pub(crate) struct Stopped {
    at_ns: i64,
    counted: BTreeMap<u32, (String, u64)>,
}

/// To be taken while everything is still attached, so that the sum is rather too large than too small.
pub(crate) fn now() -> Option<Stopped> {
    let counted =
        live::passed().inspect_err(|error| tracing::debug!(%error, "cannot read the counters")).ok()?;
    Some(Stopped { at_ns: wall_ns(), counted })
}

/// Which run of which kernel the indexes and counters are of.
fn here() -> Value {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let netns = std::fs::read_link("/proc/self/ns/net").map(|link| link.display().to_string());
    json!([boot.trim(), netns.unwrap_or_default()])
}

/// Leaves a note for the next start.
pub(crate) fn note(state: &StateDir, stopped: &Stopped) {
    let counted: serde_json::Map<String, Value> =
        stopped.counted.iter().map(|(ifindex, counted)| (ifindex.to_string(), json!(counted))).collect();
    let text = json!({ "here": here(), "at_ns": stopped.at_ns, "counted": counted }).to_string();
    if let Err(error) = state.put(FOLDER, FILE, text.as_bytes()) {
        tracing::warn!(%error, "the next start will not know what passes meanwhile");
    }
}

/// What passed since the note was left, at interfaces that are watched now and were there then; takes the note away.
pub(crate) fn since(state: &StateDir, watched: &[InterfaceState]) -> Option<Earlier> {
    let text = state.get(FOLDER, FILE, BYTES_MAX).ok()??;
    let _ = state.remove(FOLDER, FILE); // read again, it would be told of another time
    let note: Value = serde_json::from_slice(&text).ok()?;
    let (first_ns, last_ns) = (note.get("at_ns")?.as_i64()?, wall_ns());
    if note.get("here")? != &here() {
        return None;
    }
    let packets = passed(note.get("counted")?, &live::passed().ok()?, watched);
    if packets == 0 {
        return None;
    }
    let reason = format!(
        "flowlog did not run: at most {packets} packets passed at the interfaces that are watched now, by their own counters"
    );
    let seconds = last_ns.saturating_sub(first_ns) / 1_000_000_000;
    tracing::warn!(packets, seconds, "packets passed while no flowlog ran; with --pin they would be counted");
    Some(Earlier { place: Place::Restart, records: packets, first_ns, last_ns, reason })
}

fn passed(then: &Value, now: &BTreeMap<u32, (String, u64)>, watched: &[InterfaceState]) -> u64 {
    let of = |state: &InterfaceState| -> Option<u64> {
        let (name, counted) = now.get(&state.ifindex)?;
        let then = then.get(state.ifindex.to_string())?;
        let same = then.get(0)?.as_str()? == name;
        same.then(|| counted.saturating_sub(then.get(1).and_then(Value::as_u64).unwrap_or(*counted)))
    };
    watched.iter().filter(|state| state.hook.is_some()).filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowlog_user::capture::live::HookKind;

    #[test]
    fn only_what_is_watched_and_still_the_same_counts() {
        let state = |ifindex, hook| InterfaceState {
            ifindex,
            name: String::new(),
            role: None,
            hook,
            reason: None,
            blind: None,
        };
        let watched = Some(HookKind::Tcx);
        let states =
            [state(1, None), state(2, watched), state(3, watched), state(4, watched), state(5, watched)];
        let now = [(1, "lo", 500), (2, "eth0", 70), (3, "new", 900), (4, "eth1", 5), (5, "eth2", 30)];
        let now = now.map(|(ifindex, name, counted)| (ifindex, (name.to_owned(), counted))).into();
        // 3 had another name, 4 counts from the beginning again, 5 was not there.
        let then = json!({ "1": ["lo", 0], "2": ["eth0", 50], "3": ["old", 0], "4": ["eth1", 9] });
        assert_eq!(passed(&then, &now, &states), 20);
    }
}
