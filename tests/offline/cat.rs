//! `flowlog cat` as a person calls it: filters, limits, masks, shapes, stdin, damage.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use serde_json::Value;

/// Twelve flows, a second apart: ports 8000 to 8011, TCP and UDP by turns, every third a reply; then a loss and an end.
fn log(folder: &Path) -> Result<(PathBuf, Vec<String>)> {
    let mut lines: Vec<String> = (0..12)
        .map(|n| {
            let l4 = if n % 2 == 0 { "TCP" } else { "UDP" };
            let time = format!("2026-11-30T20:14:{n:02}.250Z");
            format!(
                "{{\"flow\":{{\"time\":\"{time}\",\"verdict\":\"FORWARDED\",\"IP\":{{\"source\":\"10.0.0.{n}\",\"destination\":\
                 \"192.0.2.1\",\"ipVersion\":\"IPv4\"}},\"l4\":{{\"{l4}\":{{\"source_port\":{},\"destination_port\":443}}}},\
                 \"source\":{{\"identity\":1}},\"destination\":{{\"identity\":70000}},\"Type\":\"L3_L4\",\"node_name\":\"n1\",\
                 \"event_type\":{{\"type\":4,\"sub_type\":11}},\"is_reply\":{},\"Summary\":\"{n} packets\"}},\
                 \"node_name\":\"n1\",\"time\":\"{time}\"}}",
                8000 + n,
                n % 3 == 2
            )
        })
        .collect();
    lines.push(
        r#"{"lost_events":{"source":"OBSERVER_EVENTS_QUEUE","num_events_lost":"7"},"node_name":"n1","time":"2026-11-30T20:14:12Z"}"#
            .into(),
    );
    lines.push(
        r#"{"node_status":{"state_change":"NODE_GONE","node_names":["n1"],"message":"m"},"node_name":"n1","time":"2026-11-30T20:14:13Z"}"#
            .into(),
    );
    let path = folder.join("a-20261130T201400.250Z.log");
    std::fs::write(&path, lines.join("\n") + "\n")?;
    Ok((path, lines))
}

fn cat(arguments: &[&str], file: &Path) -> Result<Output> {
    Ok(Command::new(binary()).arg("cat").args(arguments).arg(file).output()?)
}

fn text(output: &Output) -> Result<String> {
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout.clone())?)
}

#[test]
fn filters_choose_flows_and_limits_how_many() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, lines) = log(folder.path())?;
    let all: Vec<usize> = (0..14).collect();
    let cases: [(&[&str], &[usize]); 15] = [
        (&[], &all),
        (&["--protocol", "udp"], &[1, 3, 5, 7, 9, 11]),
        (&["--ip", "10.0.0.2"], &[2]),
        (&["--to-ip", "10.0.0.2"], &[]),
        (&["--port", "8004", "--port", "8005"], &[4, 5]),
        (&["--from-port", "8004", "--protocol", "udp"], &[]),
        (&["--ip", "10.0.0.0/30"], &[0, 1, 2, 3]),
        // What is about the log itself fits no filter, and no exclude either.
        (&["--not", "--protocol", "tcp"], &[1, 3, 5, 7, 9, 11, 12, 13]),
        (
            &["--not", "--protocol", "tcp", "--from-identity", "host", "--not", "--from-port", "8001"],
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        ),
        (&["--first", "3"], &[0, 1, 2]),
        (&["--last", "2"], &[10, 11, 12, 13]),
        (&["--last", "2", "--protocol", "tcp"], &[8, 10]),
        (&["--first", "2", "--since", "2026-11-30T20:14:05Z"], &[5, 6]),
        (
            &["--denylist", r#"{"protocol":["udp"]} {"source_ip":["10.0.0.8/29"]}"#, "--allowlist", "{}"],
            &[0, 2, 4, 6, 12, 13],
        ),
        (&["--cel-expression", "_flow.IP.source.endsWith('.7')"], &[7]),
    ];
    for (arguments, want) in cases {
        let got = text(&cat(arguments, &file)?)?;
        let want: String = want.iter().map(|n| format!("{}\n", lines[*n])).collect();
        ensure!(got == want, "{arguments:?}: {got}");
    }
    // The same from stdin, and `--print-raw-filters` gives what `--allowlist` takes.
    let raw = text(&cat(&["--ip", "10.0.0.2", "--print-raw-filters"], &file)?)?;
    ensure!(
        raw == "allowlist:\n    - '{\"source_ip\":[\"10.0.0.2\"]}'\n    - '{\"destination_ip\":[\"10.0.0.2\"]}'\n",
        "{raw}"
    );
    let mut child = Command::new(binary())
        .args(["cat", "-", "--allowlist", r#"{"source_ip":["10.0.0.2"]}"#])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("stdin")?.write_all(&std::fs::read(&file)?)?;
    ensure!(text(&child.wait_with_output()?)? == format!("{}\n", lines[2]));
    for arguments in
        [&["--first", "1", "--last", "1"][..], &["-f", "--first", "1"], &["--all", "--last", "1"], &["--not"]]
    {
        let code = cat(arguments, &file)?.status.code();
        ensure!(code == Some(2), "{arguments:?}: {code:?}");
    }
    Ok(())
}

#[test]
fn shapes_are_hubbles() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, _) = log(folder.path())?;
    // As the format strings of the client's printer have it.
    let compact = text(&cat(&["-o", "compact", "--port", "8001", "--port", "8002"], &file)?)?;
    ensure!(
        compact
            == "Nov 30 20:14:01.250: 10.0.0.1:8001 (host) -> 192.0.2.1:443 (ID:70000) to-network FORWARDED (1 packets)\n\
                Nov 30 20:14:02.250: 192.0.2.1:443 (ID:70000) <- 10.0.0.2:8002 (host) to-network FORWARDED (2 packets)\n",
        "{compact}"
    );
    let lost = text(&cat(&["-o", "compact", "--last", "1"], &file)?)?;
    ensure!(lost.contains("(11 packets)\nEVENTS LOST: OBSERVER_EVENTS_QUEUE CPU(0) 7\n"), "{lost}");
    let dict = text(&cat(&["-o", "dict", "--first", "2", "--print-node-name"], &file)?)?;
    let want = |n: u32| {
        format!(
            "  TIMESTAMP: Nov 30 20:14:0{n}.250\n       NODE: n1\n     SOURCE: 10.0.0.{n}:800{n}\nDESTINATION: 192.0.2.1:443\n       \
             TYPE: to-network\n    VERDICT: FORWARDED\n    SUMMARY: {n} packets\n"
        )
    };
    ensure!(dict == format!("{}------------\n{}", want(0), want(1)), "{dict}");
    Ok(())
}

/// The sequences are those that Hubble's client (fatih/color) writes for the same parts of a line.
#[test]
fn colours_are_for_terminals_and_times_as_hubble_writes_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, _) = log(folder.path())?;
    let one = ["-o", "compact", "--port", "8001"];
    let coloured = text(&cat(&[&one[..], &["--color", "always"]].concat(), &file)?)?;
    ensure!(
        coloured
            == "Nov 30 20:14:01.250: \x1b[36m10.0.0.1:8001\x1b[0m \x1b[35m(host)\x1b[0m -> \x1b[36m192.0.2.1:443\x1b[0m \
                \x1b[35m(ID:70000)\x1b[0m to-network \x1b[32mFORWARDED\x1b[0m (1 packets)\n",
        "{coloured:?}"
    );
    for plain in [&["--color", "never"][..], &["--color", "auto"], &[]] {
        ensure!(!text(&cat(&[&one[..], plain].concat(), &file)?)?.contains('\x1b'), "{plain:?}");
    }
    let at_terminal = |flags: &str, no_color: &str| -> Result<bool> {
        let line = format!("{} cat -o compact {flags} {}", binary().display(), file.display());
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("NO_COLOR", no_color).stdin(Stdio::null());
        Ok(String::from_utf8(script.output()?.stdout)?.contains("\x1b[36m10.0.0.1:8001"))
    };
    ensure!(at_terminal("", "")? && !at_terminal("", "1")? && !at_terminal("--color never", "")?);
    for (format, want) in [
        ("rfc3339milli", "2026-11-30T20:14:01.25Z: 10.0.0.1"),
        ("RFC1123Z", "Mon, 30 Nov 2026 20:14:01 +0000: 10.0.0.1"),
        ("YearMonthDayHourMinute", "2026-11-30T20:14Z: 10.0.0.1"),
    ] {
        let line = text(&cat(&[&one[..], &["--time-format", format]].concat(), &file)?)?;
        ensure!(line.starts_with(want), "{line}");
    }
    let table = text(&cat(&["-o", "table", "--port", "8001", "--time-format", "StampMilli"], &file)?)?;
    ensure!(table.contains("\nNov 30 20:14:01.250  10.0.0.1:8001"), "{table}");
    ensure!(cat(&["--time-format", "Kitchen"], &file)?.status.code() == Some(2));
    Ok(())
}

#[test]
fn errors_and_warnings_are_left_out_where_nobody_wants_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, lines) = log(folder.path())?;
    std::fs::write(&file, lines.join("\n") + "\nno record\n")?;
    // For people what a log says of itself is among the errors; among records it is one, which no output loses.
    for (output, keeps) in
        [("json", true), ("flat", true), ("csv", true), ("table", false), ("compact", false), ("dict", false)]
    {
        let silent = cat(&["-s", "-o", output], &file)?;
        let said = String::from_utf8(silent.stdout)?;
        ensure!(silent.stderr.is_empty() && silent.status.code() == Some(1), "{output}: {:?}", silent.stderr);
        ensure!(said.contains("NODE_GONE") == keeps, "{output}: {said}");
        let loud = cat(&["-o", output], &file)?;
        ensure!(!loud.stderr.is_empty() && String::from_utf8(loud.stdout)?.contains("NODE_GONE"), "{output}");
    }
    let counts = |arguments: &[&str]| cat(arguments, &file).map(|output| output.stdout);
    ensure!(counts(&["-s", "--stats"])? == counts(&["--stats"])?, "counted as they are");
    Ok(())
}

/// Who reads a folder by a script is not told that all is well where there is nothing.
#[test]
fn where_there_is_no_file_that_is_said_and_the_exit_code_tells() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("sub"))?;
    for arguments in [&[][..], &["--stats"], &["-o", "csv"], &["--since", "1h"], &["-s"]] {
        let output = cat(arguments, folder.path())?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(1), "{arguments:?}: {:?}", output.status);
        ensure!(said.contains("no files"), "{arguments:?}: {said}");
    }
    let (file, _) = log(folder.path())?;
    for (name, hint) in
        [("a-20261130T201400.250Z.log.zst", ".log.zst`, if that is meant"), ("b", "(os error 2); check")]
    {
        std::fs::rename(&file, folder.path().join(name))?;
        let output = cat(&[], &file)?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(1) && said.contains(hint), "{name}: {said}");
        std::fs::rename(folder.path().join(name), &file)?;
    }
    let output = cat(&["--since", "2026-11-30T20:14:05Z", "--until", "2026-11-30T20:14:01Z"], &file)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(1) && said.contains("exchange them"), "{said}");
    let output = cat(&["--since", "2026-11-30T20:14:05Z", "--until", "2026-11-30T20:14:05Z"], &file)?;
    ensure!(output.status.success(), "one moment is a range");
    Ok(())
}

#[test]
fn a_field_mask_leaves_out_the_rest() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, _) = log(folder.path())?;
    let masked = text(&cat(&["--field-mask", "verdict,IP.source", "--first", "1"], &file)?)?;
    ensure!(
        masked
            == "{\"flow\":{\"time\":\"2026-11-30T20:14:00.250Z\",\"verdict\":\"FORWARDED\",\"IP\":{\"source\":\"10.0.0.0\"},\
                \"node_name\":\"n1\"},\"node_name\":\"n1\",\"time\":\"2026-11-30T20:14:00.250Z\"}\n",
        "{masked}"
    );
    for (arguments, what) in [
        (&["--field-mask", "IP.sauce"][..], "did you mean `IP.source`?"),
        (&["--field-mask", "IP", "-o", "compact"], "chooses fields of records"),
    ] {
        let output = cat(arguments, &file)?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(1) && said.contains(what), "{arguments:?}: {said}");
    }
    Ok(())
}

#[test]
fn what_files_hold_is_told_and_damage_named_with_its_place() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, lines) = log(folder.path())?;
    let stats: Value = serde_json::from_str(&text(&cat(&["--stats"], &file)?)?)?;
    let bytes = std::fs::metadata(&file)?.len();
    for (pointer, want) in [
        ("/records", 12.into()),
        ("/notices", 2.into()),
        ("/lost", 7.into()),
        ("/text_bytes", bytes.into()),
        ("/file_bytes", bytes.into()),
        ("/ratio", 1.0.into()),
        ("/range/0", "2026-11-30T20:14:00.25Z".into()),
        ("/range/1", "2026-11-30T20:14:11.25Z".into()),
        ("/gaps", 0.into()),
        ("/damage", Value::Array(Vec::new())),
    ] {
        ensure!(stats.pointer(pointer) == Some(&want), "{pointer}: {stats}");
    }
    // Of what a filter leaves.
    let some: Value = serde_json::from_str(&text(&cat(&["--stats", "--protocol", "udp"], &file)?)?)?;
    ensure!(some["records"] == 6, "{some}");

    let plain = lines.join("\n") + "\n";
    let (before, behind) = plain.split_at(plain.find("\"10.0.0.4\"").context("the fifth")?);
    let begins = before.rfind('\n').context("a line")? + 1;
    std::fs::write(&file, format!("{before}\n{behind}"))?;
    for filter in [&[][..], &["--verdict", "FORWARDED"]] {
        let output = cat(filter, &file)?;
        let (out, said) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.code() == Some(1), "{said}");
        ensure!(said.contains(&format!("damaged at byte {begins}")), "byte {begins}: {said}");
        let flows = out.lines().filter(|line| line.starts_with("{\"flow\"")).count();
        ensure!(flows == 11, "{flows} flows");
    }
    // A whole object that is no event: only where somebody looks into it.
    std::fs::write(&file, format!("{plain}{{\"flow\":{{\"verdict\":7.5}}}}\n"))?;
    ensure!(cat(&[], &file)?.status.success());
    let output = cat(&["--ip", "10.0.0.1"], &file)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(
        output.status.code() == Some(1) && said.contains("no event") && said.contains("verdict"),
        "{said}"
    );
    Ok(())
}

/// The real Hubble's verdicts, with its filters given as flags.
#[test]
fn raw_filters_take_what_hubble_takes() -> Result<()> {
    let (Some(flows), Some(tasks), Some(expected)) = (
        super::hubble::cases("flows.jsonl"),
        super::hubble::cases("tasks.yaml"),
        super::hubble::cases("expected.jsonl"),
    ) else {
        return Ok(());
    };
    let lines = std::fs::read_to_string(&flows)?;
    let lines: Vec<&str> = lines.lines().collect();
    let taken: Vec<Vec<String>> = std::fs::read_to_string(expected)?
        .lines()
        .map(serde_json::from_str)
        .collect::<serde_json::Result<_>>()?;
    let tasks = std::fs::read_to_string(tasks)?;
    let mut compared = 0;
    for task in tasks.split("- name: ").skip(1).step_by(29) {
        let (name, _) = task.split_once('\n').context("a name")?;
        let list = |key: &str| -> Result<Vec<Value>> {
            let line = task.lines().find_map(|line| line.trim().strip_prefix(key)).context("a list")?;
            Ok(serde_json::from_str(line)?)
        };
        let text = |list: Vec<Value>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let (include, exclude) = (text(list("includeFilters: ")?), text(list("excludeFilters: ")?));
        let output = cat(&["--allowlist", &include, "--denylist", &exclude], &flows)?;
        let got = String::from_utf8(output.stdout)?;
        let want: String = lines
            .iter()
            .zip(&taken)
            .filter(|(_, taken)| taken.iter().any(|taken| taken == name))
            .map(|(line, _)| format!("{line}\n"))
            .collect();
        ensure!(got == want, "{name}: {} lines, {} expected", got.lines().count(), want.lines().count());
        compared += lines.len();
    }
    ensure!(compared >= 10_000, "only {compared} verdicts");
    Ok(())
}
