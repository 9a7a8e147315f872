#!/usr/bin/env python3
"""Check with pyarrow, which shares no code with DuckDB, what duck/parquet.c writes.

    WALBERG_KEEP=/tmp/keep build/test/unit_parquet
    python3 test/golden/check_parquet.py /tmp/keep/kinds.parquet /tmp/keep/dead.parquet

Beside each file lies a .jsonl: the fields, then what each row should hold. Compared are field ids
(nested ones too), Arrow types, the number and order of rows, and every value.
"""

import datetime
import json
import math
import struct
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

(BOOL, INT32, INT64, FLOAT32, FLOAT64, DECIMAL, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, STRING, JSON,
 BINARY, UUID, LIST, MAP, STRUCT) = range(17)

TYPES = {
    BOOL: pa.bool_(), INT32: pa.int32(), INT64: pa.int64(), FLOAT32: pa.float32(),
    FLOAT64: pa.float64(), DATE: pa.date32(), TIME: pa.time64("us"), TIMESTAMP: pa.timestamp("us"),
    TIMESTAMPTZ: pa.timestamp("us", tz="UTC"), STRING: pa.string(), JSON: pa.string(),
    BINARY: pa.binary(),
}


def fail(where, wanted, got):
    sys.exit(f"{where}: wanted {wanted!r}, got {got!r}")


def check_field(where, field, wanted):
    name, field_id, kind, parts = wanted
    where = f"{where}.{name}"
    if field.name != name:
        fail(f"{where}: name", name, field.name)
    got = int((field.metadata or {}).get(b"PARQUET:field_id", -1))
    if got != field_id:
        fail(f"{where}: field id", field_id, got)
    if kind in TYPES and field.type != TYPES[kind]:
        fail(f"{where}: type", TYPES[kind], field.type)
    if kind == DECIMAL and not pa.types.is_decimal(field.type):
        fail(f"{where}: type", "decimal", field.type)
    if kind == UUID and str(field.type) not in ("extension<arrow.uuid>", "fixed_size_binary[16]"):
        fail(f"{where}: type", "uuid", field.type)
    if kind == LIST:
        check_field(where, field.type.value_field, parts[0])
    elif kind == MAP:
        check_field(where, field.type.key_field, parts[0])
        check_field(where, field.type.item_field, parts[1])
    elif kind == STRUCT:
        for i, part in enumerate(parts):
            check_field(where, field.type.field(i), part)


def micros(delta):
    return (delta.days * 86400 + delta.seconds) * 1000000 + delta.microseconds


def plain(kind, value):
    """What Arrow gives, in the spelling of the .jsonl."""
    if kind == DATE:
        return value.toordinal() - datetime.date(1970, 1, 1).toordinal()
    if kind == TIME:
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000000 + value.microsecond
    if kind == TIMESTAMP:
        return micros(value - datetime.datetime(1970, 1, 1))
    if kind == TIMESTAMPTZ:
        return micros(value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc))
    if kind == DECIMAL:
        return format(value, "f")
    if kind == BINARY:
        return value.hex()
    if kind == UUID:
        return (value.bytes if isinstance(value, uuid.UUID) else value).hex()
    return value


def equal(field, wanted, got):
    _, _, kind, parts = field
    if wanted is None or got is None:
        return wanted is None and got is None
    if kind in (FLOAT32, FLOAT64):
        number = float.fromhex(wanted)
        if math.isnan(number):
            return math.isnan(got)
        return struct.pack("<d", number) == struct.pack("<d", got)
    if kind == LIST:
        return len(wanted) == len(got) and all(
            equal(parts[0], w, g) for w, g in zip(wanted, got))
    if kind == MAP:
        return len(wanted) == len(got) and all(
            equal(parts[0], w[0], g[0]) and equal(parts[1], w[1], g[1])
            for w, g in zip(wanted, got))
    if kind == STRUCT:
        return all(equal(p, w, got[p[0]]) for p, w in zip(parts, wanted))
    return plain(kind, got) == wanted


def check(path):
    with open(path.removesuffix(".parquet") + ".jsonl", encoding="utf-8") as lines:
        fields = json.loads(next(lines))
        wanted = [json.loads(line) for line in lines]
    file = pq.ParquetFile(path)
    for column, field in zip(file.schema_arrow, fields):
        check_field(path, column, field)
    if file.metadata.num_rows != len(wanted):
        fail(f"{path}: rows", len(wanted), file.metadata.num_rows)
    values = 0
    first = 0
    for batch in file.iter_batches(batch_size=1000):
        for i, field in enumerate(fields):
            for k, got in enumerate(batch.column(i).to_pylist()):
                row = first + k
                if not equal(field, wanted[row][i], got):
                    fail(f"{path}: row {row}, {field[0]}", wanted[row][i], got)
                values += 1
        first += batch.num_rows
    print(f"{path}: {len(wanted)} rows, {len(fields)} columns, {values} values equal, "
          f"{file.metadata.num_row_groups} row groups, "
          f"{file.metadata.row_group(0).column(0).compression}")


for name in sys.argv[1:]:
    check(name)
