//! Every format, written as the daemon writes it and read back by others' tools and by ours; sizes on a model of a
//! node's traffic.

#[path = "../bench/model.rs"]
mod model;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_user::config;
use flowlog_user::enrich::Enricher;
use flowlog_user::pipeline::{Batch, Pipeline};
use flowlog_user::task::Overflow;
use flowlog_user::write::Roots;
use serde_json::Value;

use crate::hubble::cases;

/// Writes the model's records by these tasks (name and keys), as the daemon would; each task's only file.
pub(crate) fn written(folder: &Path, tasks: &[(&str, &str)], records: usize) -> Result<Vec<PathBuf>> {
    let task = |(name, keys): &(&str, &str)| {
        let path = folder.join(name).join("a.log");
        format!("- {{name: {name}, filePath: {}, fileMaxSizeMb: 1000, {keys}}}\n", path.display())
    };
    let text: String = tasks.iter().map(task).collect();
    let file = folder.join("tasks.yaml");
    std::fs::write(&file, format!("flowLogs:\n{text}"))?;
    let plan = config::load(&[file]).map_err(|error| anyhow::anyhow!("{:?}", error.problems()))?.plan;
    let (node, flows) = model::records(17, records);
    let node = Arc::new(node);
    let roots = Arc::new(Roots::new(&[folder.into()])?.with_node(&node.name));
    let started = Pipeline::start(plan, &roots, Enricher::new(Vec::new()), Overflow::Wait);
    let mut pipeline = started.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    for batch in flows.chunks(4096) {
        pipeline.take(Batch { flows: vec![batch.to_vec()], node: Arc::clone(&node) });
    }
    let finished = pipeline.finish();
    let path = |(name, _): &(&str, &str)| {
        let task = finished.iter().find(|task| &*task.name == *name);
        task.and_then(|task| task.files.last().cloned()).with_context(|| format!("no file of {name}"))
    };
    tasks.iter().map(path).collect()
}

/// What a command prints; its failure is an error.
pub(crate) fn printed(command: &mut Command) -> Result<Vec<u8>> {
    let Output { status, stdout, stderr } = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    Ok(stdout)
}

pub(crate) fn cat(arguments: &[&str], file: &Path) -> Result<Vec<u8>> {
    printed(Command::new(binary()).arg("cat").args(arguments).arg(file))
}

/// Puts recorded events through a task with these keys; its file.
fn replayed(events: &Path, keys: &str, out: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(out)?;
    let tasks = out.join("tasks.yaml");
    std::fs::write(&tasks, format!("flowLogs:\n- {{name: t, filePath: /l/t.log, {keys}}}\n"))?;
    let files = out.join("files");
    printed(
        Command::new(binary())
            .args(["replay", "--flows"])
            .arg(events)
            .arg("--tasks")
            .arg(&tasks)
            .arg("--output-dir")
            .arg(&files),
    )?;
    let mut found = flowlog_tests::records::files(&files)?;
    found.pop().context("a file")
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in digits {
        bits = bits << 6 | u32::try_from(digit).unwrap_or(0);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or(0));
        }
    }
    bytes
}

/// Bytes behind their length, as protobuf's libraries delimit messages.
fn delimited(record: &[u8]) -> Vec<u8> {
    let (mut length, mut bytes) = (record.len(), Vec::new());
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap_or(0));
    bytes.extend_from_slice(record);
    bytes
}

/// Without messages in which nothing is, for which one level has no form.
fn pruned(value: Value) -> Value {
    let Value::Object(entries) = value else { return value };
    let entries = entries.into_iter().map(|(key, value)| (key, pruned(value)));
    let kept = |value: &Value| value.as_object().is_none_or(|entries| !entries.is_empty());
    Value::Object(entries.filter(|(_, value)| kept(value)).collect())
}

fn lines(bytes: &[u8]) -> Result<Vec<Value>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(pruned(serde_json::from_slice(line)?))).collect()
}

/// What Go made of Hubble's events is read from protobuf as Go wrote it in JSON, and comes back from every format.
#[test]
fn hubbles_events_are_the_same_in_every_format() -> Result<()> {
    let (Some(json), Some(protobuf)) = (cases("flows.jsonl"), cases("flows.pb.b64")) else { return Ok(()) };
    let expected = std::fs::read(&json)?;
    let work = tempfile::tempdir()?;
    let events = work.path().join("events");
    let records = std::fs::read_to_string(protobuf)?;
    std::fs::write(&events, records.lines().flat_map(|line| delimited(&base64(line))).collect::<Vec<u8>>())?;
    ensure!(cat(&[], &events)? == expected, "Go's protobuf is not read as Go's JSON");

    let from_go = replayed(&events, "compression: none", &work.path().join("from-go"))?;
    ensure!(std::fs::read(from_go)? == expected, "Go's protobuf is not replayed as Go's JSON");
    for keys in ["format: protobuf", "format: protobuf, compression: gzip, compressionLevel: 1"] {
        let file = replayed(&json, keys, &work.path().join(keys.replace([' ', ':', ','], "")))?;
        ensure!(cat(&[], &file)? == expected, "{keys}");
    }
    let flat = replayed(&json, "format: flat, compression: none", &work.path().join("flat"))?;
    let back = lines(&cat(&[], &flat)?)?;
    for (number, (got, expected)) in back.iter().zip(lines(&expected)?).enumerate() {
        ensure!(*got == expected, "flow {}:\n{got}\nexpected:\n{expected}", number + 1);
    }
    ensure!(back.len() == records.lines().count());
    Ok(())
}

/// One stream of records in each format and compression: all of them hold the same, and ordinary tools open them.
#[test]
fn the_same_records_in_every_format_and_compression() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tasks = [
        ("plain", "compression: none"),
        ("json", "format: json, compressionLevel: 3"),
        ("flat", "format: flat"),
        ("flat-gzip", "format: flat, compression: gzip, compressionLevel: 9"),
        ("protobuf", "format: protobuf"),
        ("protobuf-gzip", "format: protobuf, compression: gzip"),
        ("protobuf-plain", "format: protobuf, compression: none"),
    ];
    let paths = written(folder.path(), &tasks, 1500)?;
    let expected = std::fs::read(&paths[0])?;
    ensure!(expected.iter().filter(|byte| **byte == b'\n').count() == 1500);
    for ((name, _), path) in tasks.iter().zip(&paths) {
        ensure!(cat(&[], path)? == expected, "{name}");
        let verdict = String::from_utf8(printed(Command::new(binary()).arg("verify").arg(path))?)?;
        let state = match *name {
            plain if plain.ends_with("plain") => ": no damage found, 1500 lines, no checksum: ",
            gzip if gzip.ends_with("gzip") => ": whole, 1500 lines, checksum agrees\n",
            _ => ": whole, 1500 lines, index agrees\n",
        };
        ensure!(verdict.contains(state), "{verdict}");
        let json = printed(Command::new(binary()).args(["verify", "-o", "json"]).arg(path))?;
        let json: serde_json::Value = serde_json::from_slice(&json)?;
        let whole = if name.ends_with("plain") { serde_json::Value::Null } else { true.into() };
        ensure!(json["whole"] == whole && json["damage"] == serde_json::json!([]), "{json}");
        let (program, extension) = match *name {
            "plain" | "protobuf-plain" => continue,
            gzip if gzip.ends_with("gzip") => ("gzip", "gz"),
            _ => ("zstd", "zst"),
        };
        ensure!(path.extension().is_some_and(|found| found == extension), "{}", path.display());
        let text = printed(Command::new(program).args(["-dc"]).arg(path))?;
        ensure!(!text.is_empty());
        if program == "gzip" {
            // `gzip -l` reads the last member's trailer, so its length is the file's only where there is one member.
            let list = String::from_utf8(printed(Command::new("gzip").arg("-l").arg(path))?)?;
            let length =
                list.lines().nth(1).and_then(|line| line.split_whitespace().nth(1)).context("a length")?;
            ensure!(length.parse::<usize>()? == text.len(), "more than one member: {list}");
        }
    }
    let flat = printed(Command::new("zstd").args(["-dcq"]).arg(&paths[2]))?;
    ensure!(
        cat(&["-o", "flat"], &paths[4])? == flat,
        "flat lines made of protobuf differ from those written"
    );
    let sum = "[length, (map(.packets) | add), (map(.bytes) | add)] | @csv";
    let mut jq = Command::new("jq");
    let mut jq = jq.args(["-rs", sum]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    std::io::Write::write_all(&mut jq.stdin.take().context("stdin")?, &flat)?;
    let sums = String::from_utf8(jq.wait_with_output()?.stdout)?;
    let (_, flows) = model::records(17, 1500);
    let (packets, bytes) = flows.iter().fold((0, 0), |sum, flow| (sum.0 + flow.packets, sum.1 + flow.bytes));
    ensure!(
        sums.trim() == format!("1500,{packets},{bytes}"),
        "jq adds up {sums}, expected {packets} and {bytes}"
    );
    Ok(())
}

/// Records of several formats, live and finished, from files and stdin: one stream in order of time, and filters see all.
#[test]
fn formats_mix() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tasks = [("j", "format: json"), ("f", "format: flat"), ("p", "format: protobuf")];
    let paths = written(folder.path(), &tasks, 400)?;
    let all = folder.path().join("all");
    std::fs::create_dir(&all)?;
    for ((name, _), path) in tasks.iter().zip(&paths) {
        let stamp = path.file_name().context("a name")?.to_string_lossy().replacen('a', name, 1);
        std::fs::copy(path, all.join(stamp))?;
    }
    let one = lines(&cat(&[], &paths[0])?)?;
    let merged = lines(&cat(&[], &all)?)?;
    ensure!(merged.len() == 1200);
    let mut times: HashMap<String, usize> = HashMap::new();
    for line in &merged {
        *times.entry(line.to_string()).or_default() += 1;
    }
    ensure!(
        one.iter().all(|line| times.get(&line.to_string()) == Some(&3)),
        "a record is not there three times"
    );
    let some = |file: &Path| cat(&["--protocol", "udp", "--port", "53"], file);
    ensure!(some(&paths[1])? == some(&paths[0])? && some(&paths[2])? == some(&paths[0])?);
    ensure!(!some(&paths[0])?.is_empty());
    let mut piped = Command::new(binary());
    piped.args(["cat", "-"]).stdin(Stdio::from(std::fs::File::open(&paths[2])?));
    ensure!(lines(&printed(&mut piped)?)? == one);
    Ok(())
}

#[test]
fn a_mask_holds_in_every_format() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mask = "fieldMaskExact: true, fieldMask: [l4.TCP.destination_port, extensions.bytes, source.identity], compression: none";
    let tasks = [mask.to_owned(), format!("format: flat, {mask}"), format!("format: protobuf, {mask}")];
    let tasks: Vec<(&str, &str)> =
        ["j", "f", "p"].into_iter().zip(tasks.iter().map(String::as_str)).collect();
    let paths = written(folder.path(), &tasks, 500)?;
    let json = std::fs::read(&paths[0])?;
    ensure!(cat(&[], &paths[2])? == json);
    ensure!(lines(&cat(&[], &paths[1])?)? == lines(&json)?);
    for line in lines(&std::fs::read(&paths[1])?)? {
        for key in line.as_object().context("an object")?.keys() {
            let kept = ["kind", "protocol", "destination_port", "source_identity", "bytes"];
            ensure!(kept.contains(&key.as_str()), "{key} in {line}");
        }
    }
    // Nothing that the mask took is anywhere in the bytes.
    let bytes = std::fs::read(&paths[2])?;
    for taken in ["10.244.", "flowlog", "east/node-17", "reserved:", "TCP Flags", "eth0"] {
        ensure!(!bytes.windows(taken.len()).any(|window| window == taken.as_bytes()), "{taken}");
    }
    Ok(())
}

/// Delimited records have no newline to look for: behind a hole, the next record is found all the same.
#[test]
fn protobuf_is_read_around_damage() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tasks = [("p", "format: protobuf, compression: none"), ("j", "compression: none")];
    let paths = written(folder.path(), &tasks, 400)?;
    let expected = String::from_utf8(std::fs::read(&paths[1])?)?;
    let expected: Vec<&str> = expected.lines().collect();
    let mut bytes = std::fs::read(&paths[0])?;
    let hole = bytes.len() / 2;
    bytes[hole..hole + 100].fill(0xff);
    let damaged = folder.path().join("d-20261130T201426.000Z.log");
    std::fs::write(&damaged, &bytes)?;
    let output = Command::new(binary()).arg("cat").arg(&damaged).output()?;
    ensure!(output.status.code() == Some(1), "{:?}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let got: Vec<&str> = text.lines().collect();
    let before = got.iter().zip(&expected).take_while(|(got, expected)| got == expected).count();
    let after =
        got.iter().rev().zip(expected.iter().rev()).take_while(|(got, expected)| got == expected).count();
    ensure!(
        before > 150 && after > 150 && before + after >= 397,
        "{before} before and {after} after the hole"
    );
    ensure!(got.len() <= before + after, "{} records, {before} + {after} of them true", got.len());
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("damaged at byte"), "{said}");
    // Cut anywhere, the whole records before the cut are there.
    for cut in [1, 2, 400, bytes.len() / 3] {
        std::fs::write(&damaged, &std::fs::read(&paths[0])?[..cut])?;
        let text = String::from_utf8(Command::new(binary()).arg("cat").arg(&damaged).output()?.stdout)?;
        let got = text.lines().count();
        ensure!(text.lines().eq(expected.iter().copied().take(got)), "cut at {cut}");
    }
    Ok(())
}

/// What says who, when and how much: the record for which sizes are usually given.
const FIVE_TUPLE: &str = "fieldMaskExact: true, fieldMask: [time, IP.source, IP.destination, l4, extensions.first_seen, \
                          extensions.packets, extensions.bytes]";

#[test]
fn records_are_small() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let keys = ["protobuf", "flat", "json"].map(|format| format!("format: {format}, {FIVE_TUPLE}"));
    let tasks = [
        ("protobuf", keys[0].as_str()),
        ("flat", &keys[1]),
        ("json", &keys[2]),
        ("whole", "format: protobuf"),
    ];
    let count = 10_000;
    let paths = written(folder.path(), &tasks, count)?;
    let size = |bytes: u64| bytes as f64 / count as f64;
    for ((name, _), path) in tasks.iter().zip(&paths) {
        println!("{name}: {:.1} B a record", size(path.metadata()?.len()));
    }
    let parquet = size(cat(&["-o", "parquet"], &paths[0])?.len() as u64);
    println!("parquet: {parquet:.1} B a record");
    ensure!(size(paths[0].metadata()?.len()) < 24.0);
    ensure!(parquet < 18.0);
    Ok(())
}

/// The packages that `cargo xtask test` puts there; `None`, saying so, where they are not.
pub(crate) fn python() -> Option<Command> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python");
    if !packages.join(".complete").is_file() {
        println!("SKIPPED: no readers at {}: `cargo xtask test` installs them with pip", packages.display());
        return None;
    }
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// DuckDB, Polars, pandas, pyarrow, protobuf and zstandard read what was written, and add up to what the model says.
#[test]
fn others_read_every_format() -> Result<()> {
    let Some(mut python) = python() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let count = 1200;
    let tasks = [
        ("json", "format: json"),
        ("flat", "format: flat"),
        ("protobuf", "format: protobuf"),
        ("protobuf-gzip", "format: protobuf, compression: gzip"),
        ("protobuf-plain", "format: protobuf, compression: none"),
    ];
    let paths = written(folder.path(), &tasks, count)?;
    std::fs::write(folder.path().join("flows.parquet"), cat(&["-o", "parquet"], &paths[2])?)?;
    std::fs::write(folder.path().join("flows.csv"), cat(&["-o", "csv"], &paths[0])?)?;
    let (_, flows) = model::records(17, count);
    let sum = |of: fn(&flowlog_user::record::Flow) -> u64| flows.iter().map(of).sum::<u64>().to_string();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    python
        .arg(tests.join("offline/readers.py"))
        .arg(folder.path())
        .arg(tests.join("../config/flowlog.proto"));
    python.args([count.to_string(), sum(|flow| flow.packets), sum(|flow| flow.bytes)]);
    if let (Some(json), Some(protobuf)) = (cases("flows.jsonl"), cases("flows.pb.b64")) {
        let ours = replayed(&json, "format: protobuf", &folder.path().join("ours"))?;
        python.args([json, protobuf, ours]);
    }
    let said = String::from_utf8(printed(&mut python)?)?;
    ensure!(said.contains("all readers agree"), "{said}");
    Ok(())
}
