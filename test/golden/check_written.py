#!/usr/bin/env python3
"""Have independent readers read a table whose metadata we wrote.

usage: check_written.py WRITE_TABLE [JAVA_READER]

WRITE_TABLE is test/tools/write_table.c, compiled. Needs pyiceberg[pyarrow], fastavro, duckdb and
its iceberg, avro and httpfs extensions from PyPI. JAVA_READER is a command that prints the rows of
a metadata file as JSON lines, and may be left out. Prints one line per check; exits 1 when one
fails.
"""
import datetime
import decimal
import importlib
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.table import StaticTable

EPOCH = datetime.datetime(1970, 1, 1)
UTC = datetime.timezone.utc
FAILED = []


def check(name, ok, detail=""):
    print("%s %s%s" % ("ok  " if ok else "FAIL", name, "" if ok else ": %s" % (detail,)))
    if not ok:
        FAILED.append(name)


def field(name, type_, id_, nullable=True):
    return pa.field(name, type_, nullable, {"PARQUET:field_id": str(id_)})


SCHEMA = pa.schema([
    field("id", pa.int64(), 1, False), field("b", pa.bool_(), 2), field("i", pa.int32(), 3),
    field("f", pa.float32(), 4), field("d", pa.float64(), 5),
    field("n", pa.decimal128(12, 2), 6), field("big", pa.decimal128(38, 4), 7),
    field("day", pa.date32(), 8), field("at", pa.time64("us"), 9),
    field("ts", pa.timestamp("us"), 10), field("tz", pa.timestamp("us", "UTC"), 11),
    field("s", pa.string(), 12), field("raw", pa.binary(), 13), field("u", pa.binary(16), 14),
    field("l", pa.list_(field("element", pa.int32(), 17)), 15),
    field("st", pa.struct([field("x", pa.int32(), 18), field("y", pa.string(), 19)]), 16),
])


def row(i):
    """The same formulas are in write_table.c."""
    real = math.nan if i % 50 == 0 else i / 8 - 10
    stamp = EPOCH + datetime.timedelta(microseconds=(i - 500) * 86400000001)
    us = i * 1000001
    return {
        "id": i, "b": i % 3 == 0, "i": None if i % 10 == 0 else i * 7 - 3000, "f": real, "d": real,
        "n": decimal.Decimal((i - 500) * 1234567).scaleb(-2),
        "big": decimal.Decimal((i - 500) * 10**27).scaleb(-4),
        "day": (EPOCH + datetime.timedelta(days=i - 500)).date(),
        "at": (EPOCH + datetime.timedelta(microseconds=us)).time(), "ts": stamp,
        "tz": stamp.replace(tzinfo=UTC), "s": "row %06d \u20ac long enough" % i,
        "raw": b"bytes %020d" % i,
        "u": bytes([0, 0, 0, 0, 0, 0, 0x70, i & 255, 0x80, 0, 0, 0, 0, 0, 0, i >> 8]),
        "l": list(range(i % 4)), "st": None if i % 5 == 0 else {"x": i * 7 - 3000, "y": "y%d" % i},
    }


def write_data(folder):
    decimal.getcontext().prec = 50
    os.makedirs(folder + "/data")
    os.makedirs(folder + "/metadata")
    names = {"a": range(1000), "b": range(1000, 1100)}
    for name, rows in names.items():
        table = pa.Table.from_pylist([row(i) for i in rows], schema=SCHEMA)
        pq.write_table(table, "%s/data/%s.parquet" % (folder, name))
    deletes = pa.schema([field("file_path", pa.string(), 2147483546, False),
                         field("pos", pa.int64(), 2147483545, False)])
    path = "file://%s/data/a.parquet" % folder
    pq.write_table(pa.Table.from_pydict({"file_path": [path, path], "pos": [3, 500]}, deletes),
                   folder + "/data/deletes.parquet")
    return [str(os.path.getsize("%s/data/%s.parquet" % (folder, n)))
            for n in ("a", "b", "deletes")]


# what each version of the metadata holds
EXPECTED = {
    1: [],
    2: list(range(1000)),
    3: [i for i in range(1000) if i not in (3, 500)],
    4: [i for i in range(1100) if i not in (3, 500)],
    5: [i for i in range(1000) if i not in (3, 500)],
}


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, bytes) and isinstance(b, uuid.UUID):
        return a == b.bytes
    return a == b


def compare(name, got, ids):
    got = sorted(got, key=lambda r: r["id"])
    check(name + " ids", [r["id"] for r in got] == ids, len(got))
    for have, i in zip(got, ids, strict=True):
        want = row(i)
        bad = [k for k in want if not same(want[k], have[k])]
        if bad:
            check(name + " values", False, (i, bad[0], want[bad[0]], have[bad[0]]))
            return
    check(name + " values", True)


def metadata(folder, version):
    return "%s/metadata/v%d.metadata.json" % (folder, version)


def check_pyiceberg(folder):
    for version, ids in EXPECTED.items():
        table = StaticTable.from_metadata("file://" + metadata(folder, version))
        compare("pyiceberg v%d" % version, table.scan().to_arrow().to_pylist(), ids)
    table = StaticTable.from_metadata("file://" + metadata(folder, 5))
    check("pyiceberg pruning hit", table.scan("id = 17").to_arrow().num_rows == 1)
    check("pyiceberg pruning text",
          table.scan("s = 'row 000999 \u20ac long enough'").to_arrow().num_rows == 1)
    check("pyiceberg pruning miss", len(list(table.scan("id > 5000").plan_files())) == 0)
    check("pyiceberg pruning null", len(list(table.scan("s is null").plan_files())) == 0)
    for ask in ("snapshots", "manifests", "history", "refs"): # entries, files: not with uuids
        check("pyiceberg inspect " + ask, getattr(table.inspect, ask)().num_rows > 0)
    summary = {k: v for k, v in table.current_snapshot().summary.additional_properties.items()}
    check("totals", (summary["total-records"], summary["total-position-deletes"],
                     summary["total-data-files"], summary["total-delete-files"],
                     summary["deleted-records"]) == ("1000", "2", "1", "1", "100"), summary)
    check("sequence numbers", [s.sequence_number for s in table.metadata.snapshots] == [1, 2, 3, 4])
    check("operations", [s.summary.operation.value for s in table.metadata.snapshots]
          == ["append", "delete", "append", "delete"])
    check_bounds(folder, table)


def check_bounds(folder, table):
    """Bounds against the true smallest and largest values, as PyIceberg decodes them."""
    files = {e.data_file.file_path.rsplit("/", 1)[1]: e.data_file
             for m in table.current_snapshot().manifests(table.io)
             for e in m.fetch_manifest_entry(table.io)}
    data = files["a.parquet"]
    lower, upper, nans = data.lower_bounds, data.upper_bounds, data.nan_value_counts
    counts, nulls = data.value_counts, data.null_value_counts
    rows = [row(i) for i in range(1000)]
    for column in table.schema().fields:
        values = [r[column.name] for r in rows]
        have = [v for v in values if v is not None and v == v]
        if not column.field_type.is_primitive:
            continue
        low = from_bytes(column.field_type, lower[column.field_id])
        high = from_bytes(column.field_type, upper[column.field_id])
        if isinstance(low, (datetime.date, datetime.time, datetime.datetime)):
            low = high = None
        want_low, want_high = min(have), max(have)
        if column.name in ("s", "raw"):
            ok = want_low.startswith(low) and high > want_high and len(low) == len(high) == 16
        elif column.name == "u":
            ok = (bytes(lower[column.field_id]), bytes(upper[column.field_id])) \
                == (want_low, want_high)
        elif column.name in ("day", "at", "ts", "tz"):
            whole = pa.array(have, SCHEMA.field(column.name).type)
            whole = whole.cast(pa.int32() if column.name == "day" else pa.int64()).to_pylist()
            ok = (from_bytes(column.field_type, lower[column.field_id]),
                  from_bytes(column.field_type, upper[column.field_id])) == (min(whole), max(whole))
        else:
            ok = (low, high) == (want_low, want_high)
        check("bounds of " + column.name, ok, (low, high, want_low, want_high))
        check("counts of " + column.name,
              (counts[column.field_id], nulls[column.field_id])
              == (1000, sum(v is None for v in values)))
    check("nan counts", nans == {4: 20, 5: 20}, nans)
    elements = sum(i % 4 for i in range(1000))
    check("list counts", (counts[17], nulls[17], 17 in lower) == (elements, 0, False))
    check("struct counts", (counts[18], nulls[18]) == (1000, 200))
    check("struct bounds", (from_bytes(table.schema().find_type(18), lower[18]),
                            from_bytes(table.schema().find_type(19), lower[19])) == (-2993, "y1"))
    deletes = files["deletes.parquet"]
    path = b"file://%s/data/a.parquet" % folder.encode()
    check("delete bounds whole", deletes.lower_bounds[2147483546] == path
          and deletes.upper_bounds[2147483546] == path)


def check_duckdb(folder):
    con = duckdb.connect(config={"autoinstall_known_extensions": False})
    for name in ("httpfs", "avro", "iceberg"):
        module = importlib.import_module("duckdb_extension_" + name)
        path = next(Path(module.__file__).parent.rglob("*.duckdb_extension"))
        con.execute("LOAD '%s'" % path)
    con.execute("set timezone = 'UTC'")
    for version, ids in EXPECTED.items():
        cursor = con.execute("select * from iceberg_scan('%s')" % metadata(folder, version))
        names = [d[0] for d in cursor.description]
        got = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        compare("duckdb v%d" % version, got, ids)
    for where, count in (("id = 17", 1), ("s = 'row 000999 \u20ac long enough'", 1),
                         ("n < -6000000", 13), ("u = '00000000-0000-7005-8000-000000000000'", 1)):
        got = con.execute("select count(*) from iceberg_scan('%s') where %s"
                          % (metadata(folder, 5), where)).fetchone()[0]
        check("duckdb where " + where, got == count, got)


def check_fastavro(folder):
    golden = Path(__file__).parent / "iceberg"
    for pattern, schema in (("snap-*.avro", "manifest-list-v2.avsc"),
                            ("manifest-*.avro", "manifest-entry-v2-unpartitioned.avsc")):
        want = json.loads((golden / schema).read_text())
        for path in sorted(Path(folder, "metadata").glob(pattern)):
            with open(path, "rb") as file:
                reader = fastavro.reader(file)
                records = list(reader)
            check("fastavro " + path.name, json.loads(reader.metadata["avro.schema"]) == want
                  and len(records) > 0)


def check_java(folder, command):
    for version, ids in EXPECTED.items():
        run = subprocess.run(shlex.split(command) + [metadata(folder, version)],
                             capture_output=True, text=True)
        lines = [json.loads(line) for line in run.stdout.splitlines()
                 if line.startswith("{")]
        check("java v%d" % version, run.returncode == 0
              and sorted(line["id"] for line in lines if "id" in line) == ids,
              run.stderr[-400:] + run.stdout[:400])


def main():
    folder = tempfile.mkdtemp()
    sizes = write_data(folder)
    subprocess.run([sys.argv[1], folder] + sizes, check=True)
    print("table in " + folder)
    check_fastavro(folder)
    check_pyiceberg(folder)
    check_duckdb(folder)
    if len(sys.argv) > 2:
        check_java(folder, sys.argv[2])
    print("%d failed" % len(FAILED))
    sys.exit(1 if FAILED else 0)


main()
