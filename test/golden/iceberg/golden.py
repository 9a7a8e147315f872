#!/usr/bin/env python3
"""Make the python-* tables of this folder: one with PyIceberg, and Avro files with fastavro whose
schemas look like nobody's.

usage: golden.py OUT
"""
import datetime
import json
import shutil
import sys
from pathlib import Path

import fastavro
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

ROOT = Path("/tmp/iceberg-golden")


def optional(value):
    return "null" if value is None else value


def mapping(values):
    if values is None:
        return "null"
    return "{%s}" % "".join(
        "%d=%s " % (k, "x" + v.hex() if isinstance(v, bytes) else v)
        for k, v in sorted(values.items()))


def entry(entry):
    f = entry.data_file
    lines = [
        "live seq=%s fileseq=%s content=%d path=%s format=%s records=%d bytes=%d sort=%s"
        % (entry.sequence_number, entry.file_sequence_number, f.content, f.file_path,
           f.file_format.value, f.record_count, f.file_size_in_bytes, optional(f.sort_order_id)),
        "  sizes=%s values=%s nulls=%s nans=%s"
        % tuple(map(mapping, (f.column_sizes, f.value_counts, f.null_value_counts,
                              f.nan_value_counts))),
        "  lower=%s upper=%s" % (mapping(f.lower_bounds), mapping(f.upper_bounds)),
    ]
    return "".join(line + "\n" for line in lines)


def pyiceberg_table(out):
    catalog = load_catalog("c", type="sql", uri="sqlite:///:memory:", warehouse="file://%s" % ROOT)
    catalog.create_namespace("ns")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
        NestedField(3, "at", TimestampType(), required=False),
        NestedField(4, "n", IntegerType(), required=False))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"),
                         PartitionField(3, 1001, DayTransform(), "at_day"))
    table = catalog.create_table("ns.t", schema, partition_spec=spec,
                                 properties={"format-version": "2"})
    day = datetime.datetime(2026, 1, 2, 3, 4, 5)
    for name in ("a", "b"):
        rows = [{"id": i, "name": name, "at": day, "n": None} for i in range(3)]
        table.append(pa.Table.from_pylist(rows, schema=schema.as_arrow()))
    table.delete("id = 1 and name = 'a'")
    to = out / "python-v2"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for path in (ROOT / "ns" / "t" / "metadata").iterdir():
        shutil.copy(path, to)
    with open(to / "entries.txt", "w") as text:
        for snapshot in table.snapshots():
            text.write("list %s\n" % snapshot.manifest_list.rsplit("/", 1)[1])
            for m in snapshot.manifests(table.io):
                text.write("manifest %s content=%d spec=%d seq=%d min=%d snapshot=%d "
                           "files=%d,%d,%d rows=%d,%d,%d\n" % (
                               m.manifest_path.rsplit("/", 1)[1], m.content, m.partition_spec_id,
                               m.sequence_number, m.min_sequence_number, m.added_snapshot_id,
                               m.added_files_count, m.existing_files_count, m.deleted_files_count,
                               m.added_rows_count, m.existing_rows_count, m.deleted_rows_count))
                for e in m.fetch_manifest_entry(table.io):
                    text.write(entry(e))


# Fields in another order, unions the other way round, fields nobody knows, real maps.
STRANGE = {
    "type": "record", "name": "x.manifest_entry", "fields": [
        {"name": "later", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
        {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "df", "fields": [
            {"name": "file_size_in_bytes", "type": "int", "field-id": 104},
            {"name": "lower_bounds", "type": [{"type": "map", "values": "bytes"}, "null"],
             "field-id": 125},
            {"name": "value_counts", "field-id": 109, "type": ["null", {
                "type": "array", "logicalType": "map", "items": {
                    "type": "record", "name": "kv", "fields": [
                        {"name": "value", "type": ["long", "null"]},
                        {"name": "comment", "type": "string"},
                        {"name": "key", "type": "int"}]}}]},
            {"name": "something", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
            {"name": "partition", "field-id": 102, "type": {
                "type": "record", "name": "p", "fields": [
                    {"name": "d", "field-id": 1000, "type": [
                        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                        "null"]}]}},
            {"name": "renamed_path", "type": "string", "field-id": 100},
            {"name": "record_count", "type": "long", "field-id": 103},
            {"name": "file_format", "type": "string", "field-id": 101},
            {"name": "split_offsets", "field-id": 132,
             "type": [{"type": "array", "items": "long"}, "null"]},
        ]}},
        {"name": "twice", "type": ["null", "kv", "double", "boolean"]},
        {"name": "status", "type": "int", "field-id": 0},
    ]}


def strange_entry(i):
    return {
        "later": [{"k": "v" * i}, {}], "status": 1, "twice": [None, 1.5, True][i % 3],
        "data_file": {
            "file_size_in_bytes": 100 + i, "lower_bounds": {"1": b"\x01", "12": b""},
            "value_counts": [{"key": 2, "value": i, "comment": "c"},
                             {"key": 1, "value": 7, "comment": ""},
                             {"key": 3, "value": None, "comment": ""}],
            "something": "AB"[i % 2], "partition": {"d": b"\x00\x00\x01" if i % 2 else None},
            "renamed_path": "file:/data/%d.parquet" % i, "record_count": i,
            "file_format": "PARQUET", "split_offsets": [4, 8] if i else None}}


def without_ids(schema):
    if isinstance(schema, dict):
        return {k: without_ids(v) for k, v in schema.items() if k not in ("field-id", "element-id")}
    return [without_ids(s) for s in schema] if isinstance(schema, list) else schema


def avro_files(out):
    to = out / "python-avro"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    records = [strange_entry(i) for i in range(300)]
    for codec in ("null", "deflate", "zstandard", "bzip2"):
        with open(to / ("strange-%s.avro" % codec), "wb") as file:
            fastavro.writer(file, STRANGE, records[:300 if codec != "bzip2" else 1], codec=codec,
                            sync_interval=2000)
    listing = json.loads((out / "manifest-list-v2.avsc").read_text())
    with open(to / "list-without-ids.avro", "wb") as file:
        fastavro.writer(file, without_ids(listing), [{
            "manifest_path": "file:/m.avro", "manifest_length": 10, "partition_spec_id": 3,
            "content": 1, "sequence_number": 5, "min_sequence_number": 4,
            "added_snapshot_id": 8744736658442914487, "added_files_count": 1,
            "existing_files_count": 2, "deleted_files_count": 3, "added_rows_count": 4,
            "existing_rows_count": 5, "deleted_rows_count": 6, "partitions": [
                {"contains_null": True, "contains_nan": None, "lower_bound": b"\x01",
                 "upper_bound": None}], "key_metadata": None}])


def main():
    out = Path(sys.argv[1])
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir()
    pyiceberg_table(out)
    avro_files(out)
    shutil.rmtree(ROOT)


main()
