//! What no task wants is rejected before it is counted, and the records of a task do not depend on the others.

use anyhow::{Context, Result, ensure};
use flowlog_abi::{hook, names};
use flowlog_ebpf::{parse_ethernet, wanted};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::{FAR, FAR6, Pair};
use flowlog_tests::records::{Record, all};
use flowlog_tests::traffic::{self, ping};
use flowlog_user::capture::Captured;
use flowlog_user::capture::live::{self, Live};
use flowlog_user::capture::rules::Tables;
use flowlog_user::record::rules::{Group, Rules};
use serde_json::Value;

use crate::end_to_end::tasks;
use crate::loaded::Loaded;
use crate::packets::*;
use flowlog_tests::rules::many;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const OUT: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_EGRESS as usize];

#[test]
fn the_kernel_decides_as_the_host_does() {
    let tables = many();
    let mut loaded = Loaded::new();
    loaded.set_rules(&tables, 1);
    let frames = [A4, B4, [172, 16, 3, 4], [192, 0, 2, 1]].into_iter().flat_map(|source| {
        [A4, [172, 16, 39, 15], [172, 16, 39, 16], [192, 0, 2, 2]].into_iter().flat_map(move |destination| {
            [443, 999, 1_999, 2_000].into_iter().flat_map(move |port| {
                [(6, tcp(port, 7, ACK, &[], b"")), (17, udp(port, 7, b""))]
                    .map(|(number, segment)| ethernet(0x0800, &ipv4(source, destination, number, &segment)))
            })
        })
    });
    let (mut passed, mut rejected) = (0, 0);
    for frame in frames {
        let (key, _) = parse_ethernet(&frame[..]).expect("a packet").key();
        if wanted(&key, &tables) {
            passed += 1;
        } else {
            rejected += 1;
        }
        // Twice: the second is decided by what is remembered of the first.
        for round in 1..=2 {
            loaded.run(IN, &frame);
            let hook = loaded.hook(false);
            let sums = (hook.counted_packets, hook.rejected_packets);
            let expected = (2 * passed, 2 * rejected);
            let back = 2 - round;
            let last = if wanted(&key, &tables) { (back, 0) } else { (0, back) };
            assert_eq!(sums, (expected.0 - last.0, expected.1 - last.1), "{key:?}, round {round}");
        }
    }
    assert!(passed > 10 && rejected > 10, "{passed} passed, {rejected} rejected");
    assert!(loaded.flows().iter().all(|(key, entry)| wanted(key, &tables) && entry.generation == 1));
}

#[test]
fn later_fragments_pass_and_both_sides_of_the_node_reject() {
    let mut loaded = Loaded::new();
    loaded.set_rules(&Tables::new(&Rules::default()), 1);
    loaded.run(IN, &a_to_b(SYN, b""));
    loaded.run(OUT, &b_to_a(SYN | ACK, b""));
    assert_eq!((loaded.hook(false).rejected_bytes, loaded.hook(true).rejected_packets), (54, 1));
    assert_eq!(loaded.flows().len(), 0);
    loaded.run(IN, &ethernet(0x0800, &ipv4_with(A4, B4, 17, &[], 100, b"later")));
    assert_eq!(loaded.hook(false).counted_packets, 1);
}

#[test]
fn new_rules_hold_for_connections_that_were_let_in_or_kept_out_by_the_old() {
    let mut loaded = Loaded::new();
    loaded.set_rules(&Tables::new(&Rules::default()), 1);
    loaded.run(IN, &a_to_b(ACK, b""));
    loaded.set_rules(&many(), 2);
    loaded.run(IN, &b_to_a(ACK, b""));
    let (_, entry) = loaded.flow();
    assert_eq!((entry.generation, entry.directions[1].packets), (2, 1));
    loaded.set_rules(&Tables::new(&Rules::default()), 3);
    loaded.run(IN, &a_to_b(ACK, b""));
    let hook = loaded.hook(false);
    assert_eq!((hook.rejected_packets, hook.counted_packets), (2, 1));
    // Back again: the entry goes on where it was.
    loaded.set_rules(&many(), 4);
    loaded.run(IN, &a_to_b(ACK, b""));
    let (_, entry) = loaded.flow();
    assert_eq!((entry.generation, entry.directions[0].packets), (4, 1));
}

const WEB: &str = "
  - name: web
    filePath: LOGS/web.log
    includeFilters: [{destination_port: [\"8080\"], protocol: [tcp]}]
    excludeFilters: [{source_port: [\"1\"]}, {reply: [true]}]
";
const DNS: &str = "
  - name: dns
    filePath: LOGS/dns.log
    includeFilters: [{protocol: [udp], ip_version: [IPv4]}]
";
const REST: &str = "
  - name: all
    filePath: LOGS/all.log
    events: [start, end]
";

/// What a record says, without times and ids.
pub(crate) fn essence(record: &Record) -> String {
    let mut flow = record.0.get("flow").cloned().unwrap_or_default();
    for changing in ["uuid", "time"] {
        flow.as_object_mut().map(|flow| flow.remove(changing));
    }
    if let Some(extensions) = flow.pointer_mut("/extensions/value").and_then(Value::as_object_mut) {
        for changing in ["connection", "started", "first_seen", "last_seen", "rtt"] {
            extensions.remove(changing);
        }
    }
    flow.to_string()
}

#[test]
fn a_task_has_the_same_records_alone_and_in_company() -> Result<()> {
    let pair = Pair::new(false)?;
    let folder = tempfile::tempdir()?;
    // Three daemons at one interface see the very same packets.
    let texts = [WEB.to_owned(), format!("{WEB}{DNS}"), format!("{DNS}{WEB}{REST}")];
    let mut daemons = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let logs = folder.join("logs");
        let tasks = tasks(&folder, &format!("flowLogs:{text}"))?;
        daemons.push((Daemon::start(&pair.near, &tasks, &logs, &[])?, logs));
    }
    traffic::tcp(&pair, format!("{FAR}:8080").parse()?, 20, 300, 5_000)?;
    traffic::tcp(&pair, format!("[{FAR6}]:8080").parse()?, 10, 300, 5_000)?;
    traffic::tcp(&pair, format!("{FAR}:8081").parse()?, 10, 300, 5_000)?;
    traffic::udp(&pair, format!("{FAR}:5353").parse()?, 1_000, 120)?;
    ping(&pair, FAR, 10)?;
    let (mut web, mut rejected) = (Vec::new(), Vec::new());
    for (daemon, logs) in daemons {
        let ended = daemon.stop()?;
        ended.check()?;
        let mut lines: Vec<String> = all(&logs, "web-")?.iter().map(essence).collect();
        lines.sort();
        web.push(lines);
        rejected.push(ended.number("/packets/rejected/packets")?);
    }
    ensure!(web[0].len() == 60, "{} records", web[0].len());
    ensure!(web[0] == web[1] && web[0] == web[2], "{web:#?}");
    // The datagrams, their ten acknowledgements and twenty echoes are wanted by nobody, somebody, everybody.
    ensure!(rejected[0] == rejected[1] + 1_010 && rejected[1] > 20, "{rejected:?}");
    ensure!(rejected[2] == 0, "{rejected:?}");
    Ok(())
}

/// What left through the only interface: counted and rejected.
fn sent(live: &Live) -> Result<(u64, u64)> {
    let ledger = live.ledger()?;
    let (.., egress) =
        ledger.hooks.iter().find(|(_, side, _)| *side == "egress").context("an egress hook")?;
    Ok((egress.counted_packets, egress.rejected_packets))
}

#[test]
fn rules_change_while_packets_are_counted() -> Result<()> {
    let pair = Pair::new(false)?;
    let working = pair.near.enter(|| -> Result<()> {
        let options = live::Options { rules: Rules::default(), ..live::Options::default() };
        let mut live = Live::start(&options)?;
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        // Nobody listens there: the answers are ICMP, and come in.
        let send = |count: u64| (0..count).try_for_each(|_| socket.send_to(b"x", (FAR, 5_353)).map(drop));
        send(3)?;
        ensure!(sent(&live)? == (0, 3), "nothing is wanted: {:?}", sent(&live)?);
        let udp = Rules { groups: vec![Group { protocols: Some([17].into()), ..Group::default() }] };
        live.widen_rules(&udp)?;
        send(4)?;
        ensure!(sent(&live)? == (4, 3), "datagrams are wanted: {:?}", sent(&live)?);
        let tcp = Rules { groups: vec![Group { protocols: Some([6].into()), ..Group::default() }] };
        let both = Rules { groups: [&udp.groups[..], &tcp.groups].concat() };
        live.widen_rules(&both)?;
        live.widen_rules(&udp)?; // covered already, so nothing is taken away
        send(1)?;
        ensure!(sent(&live)? == (5, 3), "widened: {:?}", sent(&live)?);
        live.set_rules(&tcp)?;
        send(2)?;
        ensure!(sent(&live)? == (5, 5), "narrowed: {:?}", sent(&live)?);
        live.widen_rules(&Rules::everything())?;
        send(1)?;
        let mut ended = 0;
        let ledger = live.stop(&mut |captured| {
            if let Captured::End(report, _) = captured
                && report.key.protocol == 17
            {
                ended += report.directions.iter().map(|side| side.packets).sum::<u64>();
            }
        })?;
        ensure!(ended == 6 && ledger.table_packets == 0, "{ended} packets in ends");
        Ok(())
    });
    working.join().map_err(|_| anyhow::anyhow!("the capture died"))?
}
