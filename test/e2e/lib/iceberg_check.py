"""iceberg_check - is a table's metadata true? Read with fastavro and pyarrow, by the letter of the
Iceberg table spec, knowing nothing of how it was written.

check_table(table) returns a list of complaints; empty means that

* the metadata's ids, logs and refs hang together,
* every file that the current snapshot references exists, once, with the size the manifest says,
* counts in data files, manifests, the manifest list and the snapshot summary agree,
* sequence numbers are inherited and ordered as the spec has it,
* bounds, null counts and value counts contain what is in the columns,
* position deletes are sorted, unique, in range, and of a file that lives,
* partition specs keep their ids, every row of a data file gives the file's partition (by
  PyIceberg's transforms), deletes are of the spec and partition of the file they point into, and
  the partition summaries of the manifest list hold,
* sort orders are of columns that are there, and the rows of a file that says it is sorted are,
* of format version 3: row ids and deletion vectors (iceberg_check_v3).
"""
import decimal
import io
import json
import struct
import uuid

import fastavro
import fastavro.read
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType

from lib import iceberg_check_v3 as v3

ADDED, EXISTING, DELETED = 1, 0, 2
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
DELETE_FILE_PATH, DELETE_POS = 2147483546, 2147483545
ROW_LINEAGE = {2147483540, 2147483539}            # _row_id, _last_updated_sequence_number
# Partition values are compared as they are stored; no Python date reaches the year 294276.
fastavro.read.LOGICAL_READERS.clear()
MANIFEST_KEYS = ("schema", "schema-id", "partition-spec", "partition-spec-id", "format-version",
                 "content")


class Check:
    def __init__(self, table):
        self.table = table
        self.metadata = table.metadata
        self.storage = table.storage
        self.complaints = []
        self.live_rows = 0

    def expect(self, holds, message):
        if not holds:
            self.complaints.append(message)
        return holds

    def equal(self, what, got, wanted):
        return self.expect(got == wanted, f"{what}: {got!r}, should be {wanted!r}")

    def run(self):
        self.check_metadata()
        for snapshot in self.metadata.get("snapshots") or []:
            self.expect(self.storage.exists(snapshot["manifest-list"]),
                        f"snapshot {snapshot['snapshot-id']}: its manifest list is gone")
        if self.table.snapshot:
            self.check_snapshot(self.table.snapshot)

    # --- metadata.json ---------------------------------------------------------------------

    def check_metadata(self):
        metadata = self.metadata
        snapshots = metadata.get("snapshots") or []
        ids = [snapshot["snapshot-id"] for snapshot in snapshots]
        numbers = [snapshot["sequence-number"] for snapshot in snapshots]

        self.expect(metadata["format-version"] in (2, 3), "format version is not 2 or 3")
        self.equal("snapshot ids", len(set(ids)), len(ids))
        self.equal("sequence numbers are in order", numbers, sorted(set(numbers)))
        if numbers:
            self.expect(metadata["last-sequence-number"] >= max(numbers),
                        "last-sequence-number is behind a snapshot")
        current = metadata.get("current-snapshot-id")
        if current not in (None, -1):
            self.expect(current in ids, "current-snapshot-id is no snapshot")
            self.equal("refs.main", metadata["refs"]["main"]["snapshot-id"], current)
            self.equal("the last entry of snapshot-log",
                       metadata["snapshot-log"][-1]["snapshot-id"], current)
        log = [entry["timestamp-ms"] for entry in metadata.get("snapshot-log", [])]
        self.equal("snapshot-log is in order", log, sorted(log))
        self.expect(not log or metadata["last-updated-ms"] >= log[-1],
                    "last-updated-ms is before the last snapshot")
        for snapshot in snapshots:
            self.expect(snapshot["snapshot-id"] > 0, "a snapshot id is not positive")
            self.expect("operation" in snapshot["summary"], "a summary without operation")
            self.expect(all(isinstance(v, str) for v in snapshot["summary"].values()),
                        "a summary value is not a string")
        for schema in metadata["schemas"]:
            self.check_schema(schema)
        self.expect(metadata["current-schema-id"] in [s["schema-id"] for s in metadata["schemas"]],
                    "current-schema-id is no schema")
        self.expect(not metadata["location"].endswith("/"), "location ends with a slash")
        self.check_specs()
        self.check_sort_orders()
        if metadata["format-version"] >= 3:
            v3.check_row_lineage(self, metadata)

    def check_specs(self):
        """Spec, "Partition Evolution": an id stays with its source and transform."""
        specs = self.metadata["partition-specs"]
        ids = [spec["spec-id"] for spec in specs]
        meanings = {}
        named = {}
        columns = {}
        for schema in self.metadata["schemas"]:
            for column in schema["fields"]:
                columns.setdefault(column["name"], set()).add(column["id"])
        self.equal("spec ids are unique", len(set(ids)), len(ids))
        self.expect(self.metadata["default-spec-id"] in ids, "default-spec-id is no spec")
        for spec in specs:
            where = f"spec {spec['spec-id']}"
            names = [field["name"] for field in spec["fields"]]
            self.equal(f"{where}: names are unique", len(set(names)), len(names))
            for field in spec["fields"]:
                meaning = (field["source-id"], field["transform"])
                self.expect(1000 <= field["field-id"] <= self.metadata["last-partition-id"],
                            f"{where}: field id {field['field-id']}")
                self.equal(f"{where}: meaning of {field['field-id']}",
                           meanings.setdefault(field["field-id"], meaning), meaning)
                self.equal(f"{where}: who is called {field['name']}",
                           named.setdefault(field["name"], field["field-id"]), field["field-id"])
                # Java cannot read by a schema that has another column of the name
                others = columns.get(field["name"], set()) - {field["source-id"]}
                self.expect(not others, f"{where}: field {field['name']} of column "
                            f"{field['source-id']} is called like columns {others}")
        self.equal("a source and transform has one id", len(set(meanings.values())), len(meanings))
        current = {field["id"] for field in self.table.schema["fields"]}
        for field in self.spec(self.metadata["default-spec-id"])["fields"]:
            self.expect(field["source-id"] in current or field["transform"] == "void",
                        f"the default spec is of column {field['source-id']}, which is gone")

    def check_sort_orders(self):
        """Spec, "Sort Orders": 0 is the unsorted one. Java loads no table whose default order is of
        a column that is gone."""
        orders = {order["order-id"]: order["fields"] for order in self.metadata["sort-orders"]}
        default = self.metadata["default-sort-order-id"]
        self.equal("sort order ids are unique", len(orders), len(self.metadata["sort-orders"]))
        self.expect(default in orders, "default-sort-order-id is no sort order")
        for number, fields in orders.items():
            self.equal(f"sort order {number} has no fields", fields == [], number == 0)
        current = set(field_ids(self.table.schema))
        for field in orders.get(default, []):
            self.expect(field["source-id"] in current,
                        f"the default sort order is of column {field['source-id']}, which is gone")

    def spec(self, number):
        return next(s for s in self.metadata["partition-specs"] if s["spec-id"] == number)

    def check_schema(self, schema):
        ids = list(field_ids(schema))
        self.equal("field ids are unique", len(ids), len(set(ids)))
        self.expect(not ids or max(ids) <= self.metadata["last-column-id"],
                    "a field id is above last-column-id")
        top = {field["id"]: field for field in schema["fields"]}
        for identifier in schema.get("identifier-field-ids", []):
            field = top.get(identifier)
            self.expect(field is not None and field["required"]
                        and field["type"] not in ("float", "double")
                        and isinstance(field["type"], str),
                        f"identifier field {identifier} is not a required, exact, plain column")

    # --- snapshot, manifests ---------------------------------------------------------------

    def check_snapshot(self, snapshot):
        _, manifests = self.avro(snapshot["manifest-list"])
        by_manifest = {manifest["manifest_path"]: self.check_manifest(snapshot, manifest)
                       for manifest in manifests}
        entries = [entry for some in by_manifest.values() for entry in some]
        v3.check_row_ids(self, snapshot, manifests, by_manifest)
        v3.check_changes(self, snapshot, entries)
        live = [entry for entry in entries if entry["status"] != DELETED]
        paths = [(e["data_file"]["file_path"], e["data_file"].get("content_offset")) for e in live]
        self.equal("live paths are unique", len(set(paths)), len(paths))
        data = {e["data_file"]["file_path"]: e for e in live if e["data_file"]["content"] == DATA}
        deletes = [entry for entry in live if entry["data_file"]["content"] != DATA]
        for entry in data.values():
            self.check_data_file(entry)
        deleted = v3.check_vectors(self, deletes, data)
        vectors = set(deleted)
        for entry in deletes:
            self.equal("content of a delete file", entry["data_file"]["content"], POSITION_DELETES)
            if entry["data_file"]["file_format"].lower() == "parquet":
                self.check_position_deletes(entry, data, deleted, vectors)
        self.check_summary(snapshot, list(data.values()), deletes)
        changed = {(e["spec_id"], repr(e["data_file"]["partition"])) for e in entries
                   if e["status"] != EXISTING and e["snapshot_id"] == snapshot["snapshot-id"]}
        if "changed-partition-count" in snapshot["summary"]:
            self.equal("changed-partition-count",
                       int(snapshot["summary"]["changed-partition-count"]), len(changed))
        total = sum(entry["data_file"]["record_count"] for entry in data.values())
        self.live_rows = total - sum(len(rows) for rows in deleted.values())

    def avro(self, location):
        reader = fastavro.reader(io.BytesIO(self.storage.read(location)))
        return reader.metadata, list(reader)

    def check_manifest(self, snapshot, manifest):
        where = "manifest " + manifest["manifest_path"].rsplit("/", 1)[-1]
        self.equal(f"{where}: length", self.storage.size(manifest["manifest_path"]),
                   manifest["manifest_length"])
        header, entries = self.avro(manifest["manifest_path"])
        for key in MANIFEST_KEYS:
            self.expect(key in header, f"{where}: no {key} in the file's metadata")
        content = {0: "data", 1: "deletes"}[manifest["content"]]
        self.equal(f"{where}: content", header.get("content"), content)
        self.equal(f"{where}: spec", int(header.get("partition-spec-id", -1)),
                   manifest["partition_spec_id"])
        json.loads(header.get("schema", "null"))
        spec = self.spec(manifest["partition_spec_id"])
        self.equal(f"{where}: fields of the spec", nameless(json.loads(header["partition-spec"])),
                   nameless(spec["fields"]))
        self.check_partition_summaries(where, spec, manifest, entries)
        for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
            chosen = [e["data_file"]["record_count"] for e in entries if e["status"] == status]
            self.equal(f"{where}: {name}_files_count", manifest[f"{name}_files_count"], len(chosen))
            self.equal(f"{where}: {name}_rows_count", manifest[f"{name}_rows_count"], sum(chosen))
        for entry in entries:
            entry["spec_id"] = manifest["partition_spec_id"]
            self.inherit(where, manifest, entry)
            is_data = entry["data_file"]["content"] == DATA
            self.equal(f"{where}: an entry's content is data", is_data, content == "data")
        living = [e["sequence_number"] for e in entries if e["status"] != DELETED]
        if living:
            self.equal(f"{where}: min_sequence_number", manifest["min_sequence_number"],
                       min(living))
        self.expect(manifest["sequence_number"] <= snapshot["sequence-number"],
                    f"{where}: newer than its snapshot")
        return entries

    def check_partition_summaries(self, where, spec, manifest, entries):
        """Spec, field_summary: of all entries, removed ones included."""
        summaries = manifest.get("partitions") or []
        self.equal(f"{where}: partition summaries", len(summaries), len(spec["fields"]))
        types = {f["id"]: f["type"] for s in self.metadata["schemas"] for f in s["fields"]}
        for number, (field, summary) in enumerate(zip(spec["fields"], summaries, strict=True)):
            kind = result_kind(field["transform"], types[field["source-id"]])
            stored = [list(e["data_file"]["partition"].values())[number] for e in entries]
            values = [stored_value(kind, value) for value in stored if value is not None]
            numbers = [value for value in values if value == value]
            self.equal(f"{where}: contains_null of {field['name']}", summary["contains_null"],
                       len(values) < len(stored))
            self.equal(f"{where}: contains_nan of {field['name']}",
                       summary["contains_nan"] or False, len(numbers) < len(values))
            for key, extreme in (("lower_bound", min), ("upper_bound", max)):
                if summary[key] is not None:
                    self.equal(f"{where}: {key} of {field['name']}",
                               decode_bound(kind, summary[key]), extreme(numbers))
                elif kind != "uuid":
                    self.equal(f"{where}: values without {key} of {field['name']}", numbers, [])

    def check_partition(self, where, entry, by_id):
        """Every row of the file gives the file's partition."""
        types = {f["id"]: f["type"] for s in self.metadata["schemas"] for f in s["fields"]}
        stored = list(entry["data_file"]["partition"].values())
        fields = self.spec(entry["spec_id"])["fields"]
        self.equal(f"{where}: fields of its partition", len(stored), len(fields))
        for field, value in zip(fields, stored, strict=True):
            source = types[field["source-id"]]
            kind = result_kind(field["transform"], source)
            value = None if value is None else stored_value(kind, value)
            wanted = set(transformed(field["transform"], source, by_id[field["source-id"]]))
            self.equal(f"{where}: {field['transform']} of {field['source-id']} in its rows",
                       {same_nan(w) for w in wanted}, {same_nan(value)})

    def check_sorted(self, where, entry, by_id):
        """A file with a sort order has its rows in it, as a whole."""
        number = entry["data_file"].get("sort_order_id")
        orders = {order["order-id"]: order["fields"] for order in self.metadata["sort-orders"]}
        if not number or not self.expect(number in orders, f"{where}: sort order {number}"):
            return
        types = {f["id"]: f["type"] for s in self.metadata["schemas"] for f in s["fields"]}
        keys = [sort_keys(field, types[field["source-id"]], by_id[field["source-id"]])
                for field in orders[number]]
        rows = list(zip(*keys, strict=True))
        for row in range(1, len(rows)):
            if not self.expect(rows[row - 1] <= rows[row],
                               f"{where}: row {row} is not in sort order {number}: {rows[row]}"):
                return

    def inherit(self, where, manifest, entry):
        """Spec, "Sequence Number Inheritance": null means the manifest's, for added files only."""
        for key in ("sequence_number", "file_sequence_number"):
            if entry[key] is None:
                self.expect(entry["status"] == ADDED, f"{where}: {key} is null and not added")
                entry[key] = manifest["sequence_number"]
        if entry["snapshot_id"] is None:
            entry["snapshot_id"] = manifest["added_snapshot_id"]
        self.expect(entry["sequence_number"] <= entry["file_sequence_number"],
                    f"{where}: a file's data is newer than the file")

    # --- files -----------------------------------------------------------------------------

    def open_parquet(self, entry):
        file = entry["data_file"]
        where = file["file_path"].rsplit("/", 1)[-1]
        if not self.expect(self.storage.exists(file["file_path"]), f"{where} does not exist"):
            return where, None
        self.equal(f"{where}: size", self.storage.size(file["file_path"]),
                   file["file_size_in_bytes"])
        parquet = pq.ParquetFile(io.BytesIO(self.storage.read(file["file_path"])))
        self.equal(f"{where}: record_count", file["record_count"], parquet.metadata.num_rows)
        offsets = file.get("split_offsets")
        self.expect(not offsets or offsets == sorted(offsets), f"{where}: split_offsets not sorted")
        return where, parquet

    def check_data_file(self, entry):
        where, parquet = self.open_parquet(entry)
        if parquet is None:
            return
        file = entry["data_file"]
        table = parquet.read()
        known = {number for schema in self.metadata["schemas"] for number in field_ids(schema)}
        known |= ROW_LINEAGE if self.metadata["format-version"] > 2 else set()
        by_id = {}
        for index, field in enumerate(table.schema):
            number = int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
            self.expect(number in known, f"{where}: column {field.name} has field id {number}")
            by_id[number] = table.column(index)
        self.check_partition(where, entry, by_id)
        self.check_sorted(where, entry, by_id)
        types = {f["id"]: f["type"] for s in self.metadata["schemas"] for f in s["fields"]}
        for key, what in (("value_counts", len), ("null_value_counts", lambda c: c.null_count)):
            for number, count in pairs(file.get(key)):
                if number in by_id and isinstance(types.get(number), str):
                    self.equal(f"{where}: {key} of {number}", count, what(by_id[number]))
        bounds = dict(pairs(file.get("lower_bounds"))), dict(pairs(file.get("upper_bounds")))
        for number in bounds[0].keys() | bounds[1].keys():
            if number in by_id and isinstance(types.get(number), str):
                self.check_bounds(f"{where}: field {number}", types[number], by_id[number],
                                  bounds[0].get(number), bounds[1].get(number))

    def check_bounds(self, where, kind, column, lower, upper):
        values = [v for v in comparable(kind, column) if v is not None and v == v]
        if not values:
            return
        if lower is not None:
            bound = decode_bound(kind, lower)
            self.expect(bound <= min(values), f"{where}: lower bound {bound!r} > {min(values)!r}")
        if upper is not None:
            bound = decode_bound(kind, upper)
            self.expect(bound >= max(values), f"{where}: upper bound {bound!r} < {max(values)!r}")

    def check_position_deletes(self, entry, data, deleted, vectors):
        """Where a data file has a vector, position deletes say nothing of it any more."""
        where, parquet = self.open_parquet(entry)
        if parquet is None:
            return
        table = parquet.read()
        ids = [int((f.metadata or {}).get(b"PARQUET:field_id", b"-1")) for f in table.schema]
        self.equal(f"{where}: field ids", ids, [DELETE_FILE_PATH, DELETE_POS])
        rows = list(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))
        keys = [(path.encode(), pos) for path, pos in rows]
        self.expect(keys == sorted(set(keys)), f"{where}: not sorted by path and position, unique")
        referenced = entry["data_file"].get("referenced_data_file")
        self.expect(not referenced or {path for path, _ in rows} == {referenced},
                    f"{where}: deletes rows of another file than referenced_data_file")
        bounds = dict(pairs(entry["data_file"].get("lower_bounds")))
        if rows and DELETE_FILE_PATH in bounds:
            upper = dict(pairs(entry["data_file"]["upper_bounds"]))
            self.equal(f"{where}: bounds of file_path",
                       (bounds[DELETE_FILE_PATH], upper[DELETE_FILE_PATH]),
                       (keys[0][0], max(key[0] for key in keys)))
        for path, pos in rows:
            target = data.get(path)
            if target is None:
                continue  # a file that was compacted away: the delete has nothing left to say
            self.expect(0 <= pos < target["data_file"]["record_count"],
                        f"{where}: position {pos} is beyond the file's end")
            self.expect(target["sequence_number"] <= entry["sequence_number"],
                        f"{where}: older than the data file it deletes from")
            self.equal(f"{where}: spec and partition",
                       (entry["spec_id"], same_nans(entry["data_file"]["partition"])),
                       (target["spec_id"], same_nans(target["data_file"]["partition"])))
            if target["sequence_number"] <= entry["sequence_number"] and path not in vectors:
                deleted.setdefault(path, set()).add(pos)

    def check_summary(self, snapshot, data, deletes):
        summary = snapshot["summary"]
        files = [entry["data_file"] for entry in data + deletes]
        totals = {
            "total-data-files": len(data),
            "total-delete-files": len(deletes),
            "total-records": sum(entry["data_file"]["record_count"] for entry in data),
            "total-position-deletes": sum(e["data_file"]["record_count"] for e in deletes),
            "total-equality-deletes": 0,
            "total-files-size": sum(
                f.get("content_size_in_bytes") or f["file_size_in_bytes"] for f in files),
        }
        for key, value in totals.items():
            self.equal(f"summary {key}", int(summary.get(key, 0)), value)


# --- values --------------------------------------------------------------------------------


def pairs(value):
    """A manifest's int-keyed map: fastavro gives a dict or a list of key-value records."""
    if not value:
        return []
    if isinstance(value, dict):
        return [(int(k), v) for k, v in value.items()]
    return [(item["key"], item["value"]) for item in value]


def field_ids(schema):
    for field in schema["fields"]:
        yield field["id"]
        yield from type_ids(field["type"])


def type_ids(kind):
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from field_ids(kind)
    elif kind["type"] == "list":
        yield kind["element-id"]
        yield from type_ids(kind["element"])
    else:
        yield kind["key-id"]
        yield kind["value-id"]
        yield from type_ids(kind["key"])
        yield from type_ids(kind["value"])


def same_nan(value):
    return "NaN" if value != value else value


def same_nans(partition):
    return [same_nan(value) for value in partition.values()]


def nameless(fields):
    """Partition fields as they are known: by id. A field gives its name up to a column."""
    return [{key: value for key, value in field.items() if key != "name"} for field in fields]


def result_kind(transform, source):
    """The type of a partition field. Spec, "Partition Transforms"."""
    if transform in ("year", "month", "hour") or transform.startswith("bucket"):
        return "int"
    return "date" if transform == "day" else source


def stored_value(kind, value):
    """A value of a manifest, without logical types, in the form of decode_bound."""
    if kind.startswith("decimal"):
        return int.from_bytes(value, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


def transformed(transform, kind, column):
    """The partition values of a column, by PyIceberg, in the form of decode_bound."""
    if transform == "void":
        return [None] * len(column)
    function = parse_transform(transform).transform(IcebergType.handle_primitive_type(kind, None))
    return [None if value is None else one_transformed(transform, kind, function, value)
            for value in comparable(kind, column)]


class Descending:
    """Compares the other way."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __lt__(self, other):
        return other.value < self.value

    def __le__(self, other):
        return other.value <= self.value

    def __repr__(self):
        return repr(self.value)


def sort_keys(field, kind, column):
    """For each row what Python compares as the sort field does, NULLs included."""
    values = (comparable(kind, column) if field["transform"] == "identity"
              else transformed(field["transform"], kind, column))
    first = field["null-order"] == "nulls-first"
    turned = Descending if field["direction"] == "desc" else lambda value: value
    return [(not first, turned(0)) if value is None else (first, turned(total_order(value)))
            for value in values]


def total_order(value):
    """-NaN < -Infinity < ... < -0 < 0 < ... < Infinity < NaN"""
    if not isinstance(value, float):
        return value
    bits = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & (1 << 63) - 1) - 1


PER_CYCLE = {"year": 400, "month": 4800, "day": 146097, "hour": 146097 * 24}


def one_transformed(transform, kind, function, value):
    scale = None
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        value = decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=80))
    elif kind == "string":
        value = value.decode()
    elif kind == "uuid":
        value = uuid.UUID(bytes=value)
    cycles = 0
    if transform in PER_CYCLE:                    # into Python's years: 400 of them are 146097 days
        cycle = 146097 * (1 if kind == "date" else 86400 * 10**6)
        cycles, value = divmod(value, cycle)
    with decimal.localcontext(decimal.Context(prec=80)):
        result = function(value)
    if cycles:
        result += cycles * PER_CYCLE[transform]
    if isinstance(result, decimal.Decimal):
        return int(result.scaleb(scale, decimal.Context(prec=80)))
    if isinstance(result, uuid.UUID):
        return result.bytes
    if transform.startswith("truncate") and kind in ("int", "long"):
        bits = 32 if kind == "int" else 64        # as Java wraps around
        return (result + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    if transform == "hour":
        return max(min(result, 2**31 - 1), -2**31)
    return result.encode() if isinstance(result, str) else result


def comparable(kind, column):
    """The column's values in a form that sorts as the spec says and meets decode_bound's."""
    if kind == "string":
        return [None if v is None else v.encode() for v in column.to_pylist()]
    if kind == "date":
        return column.cast(pa.int32()).to_pylist()
    if kind in ("time", "timestamp", "timestamptz"):
        return column.cast(pa.int64()).to_pylist()
    if kind == "uuid":
        return [None if v is None else v.bytes if isinstance(v, uuid.UUID) else bytes(v)
                for v in column.to_pylist()]
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        exact = decimal.Context(prec=80)          # the default one rounds to 28 digits
        return [None if v is None else int(v.scaleb(scale, exact)) for v in column.to_pylist()]
    return column.to_pylist()


def decode_bound(kind, raw):
    """Iceberg spec, Appendix D: binary single-value serialization."""
    forms = {"int": "<i", "date": "<i", "long": "<q", "time": "<q", "timestamp": "<q",
             "timestamptz": "<q", "float": "<f", "double": "<d"}
    if kind == "boolean":
        return raw != b"\x00"
    if kind in forms:
        if kind in ("long", "double") and len(raw) == 4:  # written before the type was widened
            return struct.unpack("<i" if kind == "long" else "<f", raw)[0]
        return struct.unpack(forms[kind], raw)[0]
    if kind.startswith("decimal"):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def check_table(table, rows=None):
    """All complaints; rows: how many a reader found."""
    check = Check(table)
    check.run()
    if rows is not None and check.live_rows is not None:
        check.equal("live rows", check.live_rows, rows)
    return check.complaints
