//! Who opened a connection, by what is seen of it first: in the records of the daemon.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::guest::hooks;
use flowlog_tests::netns::{INTERFACE, Pair};
use flowlog_tests::records::all;

use crate::end_to_end::{EVERYTHING, tasks};
use crate::packets::*;
use flowlog_tests::wire::{send, wire};

/// A segment between a client's port and port 443; neither host has the addresses, so nobody answers.
fn segment(client: u16, to_server: bool, flags: u8) -> Vec<u8> {
    let (from, to, ports) = if to_server { (A4, B4, (client, 443)) } else { (B4, A4, (443, client)) };
    ethernet(0x0800, &ipv4(from, to, 6, &tcp(ports.0, ports.1, flags, &[], b"x")))
}

/// A datagram between port 9,000 of A and port 53 of B.
fn datagram(client: u16, to_server: bool) -> Vec<u8> {
    let (from, to, ports) = if to_server { (A4, B4, (client, 53)) } else { (B4, A4, (53, client)) };
    ethernet(0x0800, &ipv4(from, to, 17, &udp(ports.0, ports.1, b"x")))
}

#[test]
fn who_opened_it_is_told_whatever_is_seen_first() -> Result<()> {
    let (wire_folder, pair) = (tempfile::tempdir()?, Pair::new(false)?);
    let wire = wire(wire_folder.path())?;
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let words = ["--hook", hook];
        let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &words)?;
        // (true, ..): the client's packet, which goes out at the near host; the server's come in.
        let sent = [
            // From the beginning.
            (true, segment(1_001, true, SYN)),
            (false, segment(1_001, false, SYN | ACK)),
            (true, segment(1_001, true, ACK)),
            // The SYN was not seen, the answer to it says who sent one.
            (false, segment(1_002, false, SYN | ACK)),
            (true, segment(1_002, true, ACK)),
            // Nothing of the handshake was; the server's packet comes first, then the client's does.
            (false, segment(1_003, false, ACK)),
            (true, segment(1_003, true, ACK)),
            (true, segment(1_004, true, ACK)),
            (false, segment(1_004, false, ACK)),
            // Who asks first is who opens.
            (true, datagram(1_005, true)),
            (false, datagram(1_005, false)),
            (false, datagram(1_006, false)),
            (true, datagram(1_006, true)),
        ];
        for (is_client, frame) in &sent {
            let from = if *is_client { &pair.near } else { &pair.far };
            send(from, &wire, &["raw", INTERFACE], frame)?;
        }
        daemon.stop()?.check()?;
        let mut told = BTreeMap::new();
        for record in all(&logs, "all-")?.iter().filter(|record| record.event() == "end") {
            let (_, source, from, _, to) = record.tuple();
            let is_client = source == "10.1.2.3";
            let client = if is_client { from } else { to };
            let midstream = record.boolean("extensions/value/midstream").unwrap_or(false);
            told.insert((client, is_client), (record.boolean("is_reply"), midstream));
        }
        let mut expected = BTreeMap::new();
        for (client, opener_is_client, midstream) in [
            (1_001, true, false),
            (1_002, true, false),
            (1_003, false, true),
            (1_004, true, true),
            (1_005, true, false),
            (1_006, false, false),
        ] {
            for is_client in [true, false] {
                expected.insert((client, is_client), (Some(is_client != opener_is_client), midstream));
            }
        }
        ensure!(told == expected, "{hook}: {told:#?}");
    }
    Ok(())
}
