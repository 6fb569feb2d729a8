use std::net::IpAddr;

use crate::record::{Address, End, Facts, Foreign, POOL_LABEL, Pools};

/// Gives both ends of a recorded flow the labels of the pools that their addresses belong to. What has the label of a pool
/// keeps it: whoever recorded it knew which pools there were then.
pub fn label(event: &mut Foreign, pools: &Pools) {
    if pools.is_empty() {
        return;
    }
    for end in [End::Source, End::Destination] {
        if event.labels(end).iter().any(|label| label.starts_with(POOL_LABEL)) {
            continue;
        }
        let address: Option<IpAddr> = match event.address(end) {
            Address::Ip(address) => Some(address),
            Address::Text(text) => text.parse().ok(),
        };
        if let Some(label) = address.and_then(|address| pools.label(pools.tag(address))) {
            event.add_label(end, label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event;
    use crate::record::{Block, Pool};

    fn labelled(line: &str, pools: &Pools) -> [Vec<String>; 2] {
        let mut event = event(line.as_bytes()).unwrap();
        label(&mut event, pools);
        [End::Source, End::Destination].map(|end| event.labels(end).iter().map(str::to_owned).collect())
    }

    #[test]
    fn recorded_flows_get_the_labels_they_lack() {
        let block = Block {
            is_v4: true,
            range: (0x0a00_0000, 0x0a00_00ff),
            reserved: vec![(0x0a00_0000, 0x0a00_000f)],
        };
        let pools = Pools::new(vec![Pool { name: "green".into(), blocks: vec![block] }]);
        let none: Vec<String> = Vec::new();
        for (line, expected) in [
            (
                r#"{"flow":{"IP":{"source":"10.0.0.1","destination":"10.0.0.16"},"source":{"labels":["k8s:a=b","reserved:world"]}}}"#,
                [vec!["k8s:a=b", "pool:green=reserved", "reserved:world"], vec!["pool:green"]],
            ),
            // Bare, without an endpoint, and with the label of another pool.
            (
                r#"{"IP":{"source":"10.0.0.20","destination":"10.0.0.21"},"destination":{"labels":["pool:old"]}}"#,
                [vec!["pool:green"], vec!["pool:old"]],
            ),
            (r#"{"flow":{"IP":{"source":"10.0.1.0","destination":"::ffff:10.0.0.1"}}}"#, [vec![], vec![]]),
            (r#"{"flow":{"verdict":"DROPPED"}}"#, [vec![], vec![]]),
            (r#"{"lost_events":{"num_events_lost":"3"}}"#, [vec![], vec![]]),
        ] {
            let expected = expected.map(|labels| labels.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(labelled(line, &pools), expected, "{line}");
            let before = event(line.as_bytes()).unwrap();
            let mut after = before.clone();
            label(&mut after, &Pools::default());
            assert_eq!(after, before, "without pools nothing changes");
            if expected == [none.clone(), none.clone()] {
                label(&mut after, &pools);
                assert_eq!(after, before, "{line}");
            }
        }
    }
}
