"""Reads flowlog's files with what people have: protobuf, zstandard, DuckDB, Polars, pandas, pyarrow.

Usage: readers.py FOLDER PROTO RECORDS PACKETS BYTES [GO_JSON GO_PROTOBUF OUR_PROTOBUF]
Fails by an assertion that says what is not as it should be.
"""

import base64
import gzip
import importlib
import io
import json
import pathlib
import sys

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.json
import pyarrow.parquet
import zstandard
from google.protobuf import json_format
from grpc_tools import protoc

folder = pathlib.Path(sys.argv[1])
proto = pathlib.Path(sys.argv[2])
records, packets, size = map(int, sys.argv[3:6])


def plain(path):
    if path.suffix == ".zst":
        with open(path, "rb") as file:
            return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def one(name):
    (path,) = (folder / name).glob("a-*")
    return path


def same(what, got, expected):
    assert got == expected, f"{what}: {got!r}, expected {expected!r}"


# protobuf: the schema compiles, and each record says what the JSON says.
(folder / "schema").mkdir()
known = pathlib.Path(protoc.__file__).parent / "_proto"
code = protoc.main(["protoc", f"-I{proto.parent}", f"-I{known}", f"--python_out={folder / 'schema'}", str(proto)])
same("protoc", code, 0)
sys.path.insert(0, str(folder / "schema"))
schema = importlib.import_module("flowlog_pb2")


def delimited(data):
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield schema.Record.FromString(data[at : at + length])
        at += length


def as_dict(record):
    return json_format.MessageToDict(record, preserving_proto_field_name=True)


def ns(stamp):
    # Whole seconds by one library, the digits behind the point by hand.
    seconds, _, rest = stamp.rstrip("Z").partition(".")
    return int(pandas.Timestamp(seconds + "Z").timestamp()) * 10**9 + int(rest.ljust(9, "0"))


lines = [json.loads(line) for line in plain(one("json")).splitlines()]
same("JSON lines", len(lines), records)
for name in ["protobuf", "protobuf-gzip", "protobuf-plain"]:
    count = 0
    for record, line in zip(delimited(plain(one(name))), lines, strict=True):
        ours = line["flow"]["extensions"]["value"]
        expected = {**line, "flow": {key: value for key, value in line["flow"].items() if key != "extensions"}}
        measured = record.measured
        time = record.flow.time.seconds * 10**9 + record.flow.time.nanos
        for key in ["packets", "bytes", "packets_total", "bytes_total", "connection"]:
            same(key, getattr(measured, key), ours[key])
        for key in ["started", "first_seen", "last_seen"]:
            same(key, time - getattr(measured, key + "_before_ns"), ns(ours[key]))
        same("event", schema.Measured.Event.Name(measured.event).lower(), ours["event"])
        same("interfaces", list(measured.interfaces), ours.get("interfaces", []))
        same("rtt", measured.rtt_ns, ours.get("rtt", 0))
        record.ClearField("measured")
        same("record", as_dict(record), expected)
        count += 1
    same(name, count, records)

# Hubble's own events: what Go wrote, and what flowlog made of the same.
if len(sys.argv) > 6:
    go_json, go_protobuf, our_protobuf = map(pathlib.Path, sys.argv[6:9])
    go = [schema.Record.FromString(base64.b64decode(line)) for line in go_protobuf.read_text().splitlines()]
    for ours, theirs, line in zip(delimited(plain(our_protobuf)), go, go_json.read_text().splitlines(), strict=True):
        same("Hubble's event", ours, theirs)
        same("Hubble's event as JSON", as_dict(ours), json.loads(line))

# SQL and data frames.
sums = (records, packets, size)
query = "SELECT count(*), sum(packets)::BIGINT, sum(bytes)::BIGINT FROM {}"
flat, parquet, csv = one("flat"), folder / "flows.parquet", folder / "flows.csv"
same("DuckDB on flat zstd", duckdb.sql(query.format(f"read_json('{flat}', format='newline_delimited', compression='zstd')")).fetchall()[0], sums)
nested = f"""(SELECT flow.extensions.value.packets AS packets, flow.extensions.value.bytes AS bytes
    FROM read_json('{one("json")}', format='newline_delimited', compression='zstd'))"""
same("DuckDB on JSON zstd", duckdb.sql(query.format(nested)).fetchall()[0], sums)
same("DuckDB on Parquet", duckdb.sql(query.format(f"'{parquet}'")).fetchall()[0], sums)
same("DuckDB on CSV", duckdb.sql(query.format(f"'{csv}'")).fetchall()[0], sums)

frame = pandas.read_parquet(parquet)
same("pandas on Parquet", (len(frame), int(frame.packets.sum()), int(frame.bytes.sum())), sums)
assert frame.time.is_monotonic_increasing, "Parquet is not sorted by time"
same("time's type", str(frame.time.dtype), "datetime64[ns, UTC]")
frame = pandas.read_json(flat, lines=True, compression="zstd")
same("pandas on flat zstd", (len(frame), int(frame.packets.sum()), int(frame.bytes.sum())), sums)
frame = pandas.read_csv(csv)
same("pandas on CSV", (len(frame), int(frame.packets.sum()), int(frame.bytes.sum())), sums)

for what, frame in [
    ("Parquet", polars.read_parquet(parquet)),
    ("flat", polars.read_ndjson(io.BytesIO(plain(flat)))),
    ("CSV", polars.read_csv(csv, infer_schema_length=None)),
]:
    same(f"Polars on {what}", (frame.height, frame["packets"].sum(), frame["bytes"].sum()), sums)

table = pyarrow.parquet.read_table(parquet)
same("pyarrow", table.num_rows, records)
for column, kind in {
    "time": "timestamp[ns, tz=UTC]",
    "packets": "uint64",
    "is_reply": "bool",
    "source_ip": "string",
    "source_labels": "list<element: string not null>",
}.items():
    same(column, str(table.schema.field(column).type), kind)
with pyarrow.input_stream(str(flat), compression="zstd") as stream:
    same("pyarrow on flat zstd", pyarrow.json.read_json(stream).num_rows, records)

# Every cell of Parquet is the flat record's; order is by time, so both are brought into one order.
columns = [column.name for column in table.schema]
rows = {row["uuid"]: row for row in table.to_pylist()}
for line in plain(flat).splitlines():
    line = json.loads(line)
    row = rows[line["uuid"]]
    for column in columns:
        value = row[column]
        if column in ("time", "started", "first_seen", "last_seen"):
            value = value and value.isoformat().replace("+00:00", "Z")
            expected = line.get(column) and pandas.Timestamp(line[column]).isoformat().replace("+00:00", "Z")
            same(column, value, expected)
        else:
            same(column, value, line.get(column))
print("all readers agree")
