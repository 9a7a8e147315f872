"""readers - the rows of an Iceberg table through three implementations that are not ours.

PyIceberg (Python), DuckDB's iceberg extension (C++) and the reference Java library. Each returns
(column names, list of tuples) in one canonical form, so that any two can be compared with ==:

    boolean, integers  as they are          float, double  repr() of the float; "NaN", "Infinity"
    decimal            plain text           date           days since 1970
    time, timestamps   microseconds         string, uuid   text
    binary             lower hexadecimal    list           list
    map                list of [key, value] sorted by key  struct  dict

Dates and timestamps are numbers because no two libraries agree on a text for the years 294247 or
44 BC.
"""
import atexit
import functools
import importlib
import json
import os
import pathlib
import subprocess
import uuid

import duckdb
import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.table import StaticTable

from lib.env import CACHE, kill
from lib.storage import KEY, REGION, SECRET

# --- canonical form --------------------------------------------------------------------------


def canonical_float(value):
    value = float(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def sort_map(pairs):
    return sorted(pairs, key=lambda pair: json.dumps(pair[0]))


def from_arrow(array):
    """The canonical values of an Arrow array, nested ones included."""
    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in from_arrow(chunk)]
    if isinstance(array, pa.ExtensionArray):
        return from_arrow_extension(array)
    if pt.is_dictionary(kind):
        return from_arrow(array.dictionary_decode())
    if pt.is_date32(kind):
        return array.cast(pa.int32()).to_pylist()
    if pt.is_timestamp(kind) or pt.is_time64(kind):
        assert kind.unit == "us", kind
        return array.cast(pa.int64()).to_pylist()
    if pt.is_floating(kind):
        return [None if v is None else canonical_float(v) for v in array.to_pylist()]
    if pt.is_decimal(kind):
        return [None if v is None else f"{v:f}" for v in array.to_pylist()]
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return [None if v is None else v.hex() for v in array.to_pylist()]
    if pt.is_struct(kind):
        members = [from_arrow(array.field(i)) for i in range(kind.num_fields)]
        names = [kind.field(i).name for i in range(kind.num_fields)]
        valid = array.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if ok else None
                for ok, row in zip(valid, zip(*members, strict=True), strict=True)]
    if pt.is_list(kind) or pt.is_large_list(kind):
        return slices(array, from_arrow(array.values))
    if pt.is_map(kind):
        pairs = list(zip(from_arrow(array.keys), from_arrow(array.items), strict=True))
        return [None if row is None else sort_map([list(pair) for pair in row])
                for row in slices(array, pairs)]
    assert (pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_string(kind)
            or pt.is_large_string(kind) or pt.is_null(kind)), kind
    return array.to_pylist()


def from_arrow_extension(array):
    if array.type.extension_name == "arrow.uuid":
        return [None if v is None else str(uuid.UUID(bytes=v)) for v in array.storage.to_pylist()]
    return from_arrow(array.storage)


def slices(array, values):
    offsets = array.offsets.to_pylist()
    return [values[offsets[i]:offsets[i + 1]] if ok else None
            for i, ok in enumerate(array.is_valid().to_pylist())]


def table_rows(table):
    columns = [from_arrow(column) for column in table.columns]
    return table.column_names, list(zip(*columns, strict=True)) if columns else []


# --- PyIceberg -------------------------------------------------------------------------------


def reader_properties(storage):
    """PyIceberg's settings for a storage."""
    if not storage.server:
        return {}
    return {"s3.endpoint": storage.server.endpoint, "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET, "s3.region": REGION,
            "s3.force-virtual-addressing": "false",
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}


def pyiceberg(table):
    scan = StaticTable.from_metadata(table.uri, reader_properties(table.storage)).scan()
    try:
        return table_rows(uuid_columns(scan.to_arrow(), table))
    except pa.ArrowNotImplementedError:           # no rows and a list of uuid: Arrow makes no such
        flat = [f["name"] for f in table.schema["fields"] if isinstance(f["type"], str)]
        assert (scan.select(flat[0]).to_arrow().num_rows if flat else scan.count()) == 0
        return table.columns, []


def uuid_columns(arrow, table):
    """PyIceberg and Polars may hand out a uuid as sixteen bytes: say what it is."""
    for index, field in enumerate(table.schema["fields"]):
        kind = arrow.schema.types[index]
        if field["type"] == "uuid" and (pt.is_fixed_size_binary(kind) or pt.is_large_binary(kind)):
            text = [None if v is None else str(uuid.UUID(bytes=v))
                    for v in arrow.column(index).to_pylist()]
            arrow = arrow.set_column(index, field["name"], pa.array(text, pa.string()))
    return arrow


# --- DuckDB ----------------------------------------------------------------------------------


@functools.cache
def duckdb_connection(server):
    """One for all tables of a server: loading the extensions takes longer than a small table."""
    conn = duckdb.connect(config={"autoinstall_known_extensions": False,
                                  "autoload_known_extensions": False, "threads": 2})
    for name in ("httpfs", "avro", "iceberg"):
        package = pathlib.Path(importlib.import_module(f"duckdb_extension_{name}").__file__).parent
        conn.load_extension(str(next(package.rglob("*.duckdb_extension"))))
    conn.execute("set timezone = 'UTC'")
    conn.execute("set enable_external_file_cache = false")
    if server:
        conn.execute(f"create secret (type s3, key_id '{KEY}', secret '{SECRET}',"
                     f" endpoint '127.0.0.1:{server.port}', url_style 'path', use_ssl false,"
                     f" region '{REGION}')")
    return conn


def duckdb_iceberg(table):
    location = table.uri.replace("'", "''")
    conn = duckdb_connection(table.storage.server).cursor()
    scan = conn.execute(f"select * from iceberg_scan('{location}')")
    names, rows = table_rows(scan.to_arrow_table())
    same = [name.lower() for name in table.columns]
    if len(set(same)) < len(same):                # to DuckDB "X" and "x" are one: it says "X_1"
        assert len(names) == len(same), names
        names = table.columns
    return names, rows


# --- Java ------------------------------------------------------------------------------------


class JavaReader:
    """test/java/Read.java as one long-lived process: a location in, its rows out."""

    processes = {}  # S3 endpoint or None: process

    @classmethod
    def process(cls, storage):
        key = storage.server.endpoint if storage.server else None
        process = cls.processes.get(key)
        if process is None or process.poll() is not None:
            classpath = f"{CACHE}/java/read.jar:{CACHE}/java/lib/*"
            process = subprocess.Popen(
                ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", "-cp", classpath,
                 "Read"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={**os.environ, **storage.environment()})
            cls.processes[key] = process
            atexit.register(kill, process)
        return process


def java(table):
    process = JavaReader.process(table.storage)
    process.stdin.write((table.uri + "\n").encode())
    process.stdin.flush()
    kinds = [field["type"] for field in table.schema["fields"]]
    rows = []
    for line in process.stdout:
        answer = json.loads(line, parse_float=canonical_float)
        if isinstance(answer, list):
            rows.append(tuple(map(java_value, kinds, answer)))
            continue
        if "error" in answer:
            raise RuntimeError(f"java: {answer['error']}")
        assert answer["done"] == len(rows)
        return answer["columns"], rows
    raise RuntimeError("java: the reader ended")


def java_value(kind, value):
    """Maps come in any order; everything else is canonical already."""
    if value is None or isinstance(kind, str):
        return value
    if kind["type"] == "list":
        return [java_value(kind["element"], element) for element in value]
    if kind["type"] == "map":
        return sort_map([[java_value(kind["key"], k), java_value(kind["value"], v)]
                         for k, v in value])
    return {field["name"]: java_value(field["type"], value[field["name"]])
            for field in kind["fields"]}


READERS = {"pyiceberg": pyiceberg, "duckdb": duckdb_iceberg, "java": java}
