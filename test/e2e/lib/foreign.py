"""foreign - Iceberg tables written by PyIceberg in the layout of the file catalog, to try the
harness itself on tables that are certainly not ours."""
import datetime
import decimal
import uuid

import pyarrow as pa
from lib.lake import Lake
from lib.readers import reader_properties
from pyiceberg import types as t
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.schema import Schema

SCHEMA = Schema(
    t.NestedField(1, "id", t.LongType(), required=True),
    t.NestedField(2, "flag", t.BooleanType()),
    t.NestedField(3, "small", t.IntegerType()),
    t.NestedField(4, "real", t.FloatType()),
    t.NestedField(5, "wide", t.DoubleType()),
    t.NestedField(6, "price", t.DecimalType(12, 2)),
    t.NestedField(7, "day", t.DateType()),
    t.NestedField(8, "at", t.TimestampType()),
    t.NestedField(9, "at_tz", t.TimestamptzType()),
    t.NestedField(10, "name", t.StringType()),
    t.NestedField(11, "raw", t.BinaryType()),
    t.NestedField(12, "uid", t.UUIDType()),
    t.NestedField(13, "tags", t.ListType(20, t.StringType(), element_required=False)),
    t.NestedField(14, "attrs", t.MapType(21, t.StringType(), 22, t.StringType(),
                                         value_required=False)),
    t.NestedField(15, "pair", t.StructType(t.NestedField(23, "a", t.IntegerType()),
                                           t.NestedField(24, "b", t.StringType()))),
    identifier_field_ids=[1],
)


def rows():
    utc = datetime.timezone.utc
    full = {"id": 1, "flag": True, "small": -2, "real": 0.1, "wide": -0.0,
            "price": decimal.Decimal("1234567890.10"), "day": datetime.date(1, 1, 1),
            "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
            "at_tz": datetime.datetime(2026, 1, 1, 12, 0, 0, 1, utc), "name": "h\u00e9\u2028llo\n",
            "raw": b"\x00\xff", "uid": uuid.UUID(int=5).bytes, "tags": ["a", None, ""],
            "attrs": [("z", "1"), ("a", None)], "pair": {"a": 1, "b": None}}
    nulls = {name: None for name in full}
    strange = {**nulls, "id": 3, "real": float("nan"), "wide": float("inf"), "tags": [],
               "attrs": [], "pair": {"a": None, "b": None}, "name": ""}
    return [full, {**nulls, "id": 2}, strange]


def write(storage, name="things", deleted=()):
    """A table public.<name> in the warehouse with rows(), without the rows of these ids."""
    root = storage.uri if storage.server else f"file://{storage.uri}"
    catalog = InMemoryCatalog("foreign", warehouse=root, **reader_properties(storage))
    catalog.create_namespace("public")
    table = catalog.create_table(f"public.{name}", SCHEMA, f"{root}/public/{name}")
    table.append(pa.Table.from_pylist(rows(), schema=table.schema().as_arrow()))
    for number in deleted:
        table.delete(f"id == {number}")
    folder = f"{storage.uri}/public/{name}/metadata"
    storage.write(f"{folder}/v1.metadata.json", storage.read(table.metadata_location))
    storage.write(f"{folder}/version-hint.text", b"1")
    return Lake(storage).table(name)
