"""foreign - Iceberg tables written by PyIceberg in the layout of the file catalog, to try the
harness itself on tables that are certainly not ours. Position deletes, which PyIceberg does not
write, are added with fastavro and pyarrow."""
import copy
import datetime
import decimal
import io
import json
import uuid

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as t
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from lib.lake import Lake
from lib.readers import reader_properties

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
PARTITIONED = PartitionSpec(PartitionField(8, 1000, IdentityTransform(), "at"),
                            PartitionField(10, 1001, IdentityTransform(), "name"))


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


def write(storage, name="things", deleted=(), spec=UNPARTITIONED_PARTITION_SPEC):
    """A table public.<name> in the warehouse with rows(), without the rows of these ids."""
    root = storage.uri if storage.server else f"file://{storage.uri}"
    catalog = InMemoryCatalog("foreign", warehouse=root, **reader_properties(storage))
    catalog.create_namespace("public")
    table = catalog.create_table(f"public.{name}", SCHEMA, f"{root}/public/{name}",
                                 partition_spec=spec)
    table.append(pa.Table.from_pylist(rows(), schema=table.schema().as_arrow()))
    for number in deleted:
        table.delete(f"id == {number}")
    folder = f"{storage.uri}/public/{name}/metadata"
    storage.write(f"{folder}/v1.metadata.json", storage.read(table.metadata_location))
    storage.write(f"{folder}/version-hint.text", b"1")
    return Lake(storage).table(name)


def null_and_empty_list_of_structs(folder):
    """What PyIceberg reads of a NULL and an empty list of structs that it wrote."""
    catalog = InMemoryCatalog("foreign", warehouse=f"file://{folder}")
    catalog.create_namespace("public")
    pairs = t.ListType(2, t.StructType(t.NestedField(3, "x", t.IntegerType())),
                       element_required=False)
    table = catalog.create_table("public.lists", Schema(t.NestedField(1, "v", pairs)))
    table.append(pa.Table.from_pylist([{"v": None}, {"v": []}],
                                      schema=table.schema().as_arrow()))
    return table.scan().to_arrow()["v"].to_pylist()


# --- position deletes, by hand ---------------------------------------------------------------


def with_position_deletes(table, positions, change=None):
    """A second version of the table with one v2 position delete file, as the spec describes it;
    change(rows) may spoil the rows of that file before it is written."""
    storage, metadata = table.storage, copy.deepcopy(table.metadata)
    folder = metadata["location"] + "/metadata"
    schema, header, entries, manifests_schema, manifests = avro_parts(table)
    data_path = entries[0]["data_file"]["file_path"]
    rows = [(data_path, position) for position in sorted(positions)]
    rows = change(rows) if change else rows
    delete_path, size = write_delete_parquet(storage, metadata["location"], rows)

    number = metadata["last-sequence-number"] + 1
    snapshot = metadata["current-snapshot-id"] + 1
    entry = copy.deepcopy(entries[0])
    bounds = [{"key": 2147483546, "value": data_path.encode()}]
    entry.update(snapshot_id=snapshot, sequence_number=None, file_sequence_number=None)
    entry["data_file"].update(
        {key: None for key, value in entry["data_file"].items() if isinstance(value, list)},
        content=1, file_path=delete_path, record_count=len(rows), file_size_in_bytes=size,
        sort_order_id=None, lower_bounds=bounds, upper_bounds=bounds)
    manifest_path = f"{folder}/deletes-m0.avro"
    header = {**header, "content": "deletes"}
    length = write_avro(storage, manifest_path, schema, [entry], header)
    manifests.append({
        **manifests[0], "manifest_path": manifest_path, "manifest_length": length, "content": 1,
        "sequence_number": number, "min_sequence_number": number, "added_snapshot_id": snapshot,
        "added_files_count": 1, "added_rows_count": len(rows)})
    list_path = f"{folder}/deletes-list.avro"
    write_avro(storage, list_path, manifests_schema, manifests, {})

    summary = dict(table.summary)
    summary.update({
        "operation": "delete", "total-delete-files": "1", "total-position-deletes": str(len(rows)),
        "total-files-size": str(int(summary["total-files-size"]) + size)})
    stamp = metadata["last-updated-ms"] + 1
    metadata["snapshots"].append({**table.snapshot, "snapshot-id": snapshot,
                                  "parent-snapshot-id": metadata["current-snapshot-id"],
                                  "sequence-number": number, "timestamp-ms": stamp,
                                  "manifest-list": list_path, "summary": summary})
    metadata["snapshot-log"].append({"snapshot-id": snapshot, "timestamp-ms": stamp})
    metadata["refs"]["main"]["snapshot-id"] = snapshot
    metadata.update({"current-snapshot-id": snapshot, "last-sequence-number": number,
                     "last-updated-ms": stamp})
    storage.write(f"{folder}/v2.metadata.json", json.dumps(metadata).encode())
    return Lake(storage).table(table.folder.split("/")[-1])


def avro_parts(table):
    """Schemas, header and records of the only manifest and of the manifest list."""
    lists = fastavro.reader(io.BytesIO(table.storage.read(table.snapshot["manifest-list"])))
    manifests = list(lists)
    reader = fastavro.reader(io.BytesIO(table.storage.read(manifests[0]["manifest_path"])))
    header = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    return reader.writer_schema, header, list(reader), lists.writer_schema, manifests


def write_avro(storage, path, schema, records, header):
    out = io.BytesIO()
    fastavro.writer(out, schema, records, metadata=header)
    storage.write(path, out.getvalue())
    return len(out.getvalue())


def write_delete_parquet(storage, location, rows):
    fields = [pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
              pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"})]
    arrays = [pa.array([path for path, _ in rows], pa.string()),
              pa.array([position for _, position in rows], pa.int64())]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), out)
    path = f"{location}/data/deletes.parquet"
    storage.write(path, out.getvalue())
    return path, len(out.getvalue())
