"""Iceberg format version 3: deletion vectors, row lineage, column defaults, and the way there.

Everything else that holds under version 2 is run under version 3 by WALBERG_FORMAT_VERSION=3; what
each commit writes is held against the specs by lib/iceberg_check_v3.py.
"""
import io
import json
import time

import fastavro
import pytest

from lib.oracle import compare

V3 = {"sink.iceberg.format_version": 3}
TABLE = "create table t (id int primary key, a int, b text)"
ROWS = "insert into t select n, n, 'row ' || n from generate_series(1, 10) n"


@pytest.fixture(name="v3")
def version_3(walberg):
    walberg.settings.update(V3)
    return walberg


def manifests(table):
    """The current snapshot's manifest list."""
    return list(fastavro.reader(io.BytesIO(table.storage.read(table.snapshot["manifest-list"]))))


def live_deletes(table):
    """Data-file entries of live delete files."""
    found = []
    for manifest in manifests(table):
        if manifest["content"] == 1:
            entries = fastavro.reader(io.BytesIO(
                table.storage.read(manifest["manifest_path"])))
            found += [e["data_file"] for e in entries if e["status"] != 2]
    return found


def formats(table):
    return sorted({file["file_format"] for file in live_deletes(table)})


def write_metadata(walberg, lake, table, metadata):
    """The next version of a table, as another writer would."""
    folder = f"{walberg.storage.uri}/{table.folder}/metadata"
    version = lake.hint(table) + 1
    walberg.storage.write(f"{folder}/v{version}.metadata.json", json.dumps(metadata).encode())
    walberg.storage.write(f"{folder}/version-hint.text", str(version).encode())


# --- the way from version 2 ------------------------------------------------------------------


@pytest.mark.parametrize("partition", ["[]", "['truncate[2](b)', 'bucket[3](id)']"],
                         ids=["whole", "partitioned"])
def test_table_of_version_2_is_raised(partition, database, walberg, lake):
    """Position deletes are read until a commit turns them into vectors; row ids come to all."""
    walberg.settings["tables.*.*.partition"] = partition
    walberg.settings["sink.iceberg.format_version"] = 2
    database.execute(TABLE, ROWS)
    walberg.once()
    database.execute("update t set a = -a where id < 4", "delete from t where id = 5")
    walberg.once()
    assert compare(database, lake, ["t"]) == 9
    table = lake.table("t")
    assert (table.metadata["format-version"], formats(table)) == (2, ["PARQUET"])

    walberg.settings.update(V3)
    database.execute("insert into t values (20, 20, 'new')")  # nothing is deleted
    walberg.once()
    assert compare(database, lake, ["t"]) == 10
    table = lake.table("t")
    assert (table.metadata["format-version"], formats(table)) == (3, ["PARQUET"])
    assert table.snapshot["first-row-id"] == 0
    assert table.metadata["next-row-id"] == table.snapshot["added-rows"] >= 14
    assert "format version is raised" in walberg.log()

    database.execute("update t set b = 'again' where id in (1, 6, 20)")
    walberg.once()
    assert compare(database, lake, ["t"]) == 10
    table = lake.table("t")
    assert formats(table) == ["PUFFIN"]
    assert int(table.summary["removed-position-delete-files"]) >= 1
    assert int(table.summary["added-dvs"]) == int(table.summary["total-delete-files"])
    old = [s for s in table.metadata["snapshots"] if "first-row-id" not in s]
    assert len(old) == 2, "snapshots of version 2 stay as they are"


def test_table_that_another_engine_raised(database, walberg, lake):
    """As SET TBLPROPERTIES of Spark does: metadata only. The setting 2 asks for no way back."""
    walberg.settings["sink.iceberg.format_version"] = 2
    database.execute(TABLE, ROWS)
    walberg.once()
    database.execute("delete from t where id = 5")
    walberg.once()
    table = lake.table("t")
    write_metadata(walberg, lake, table, {**table.metadata, "format-version": 3, "next-row-id": 0})

    database.execute("delete from t where id = 6", "insert into t values (11, 11, 'x')")
    walberg.once()
    assert compare(database, lake, ["t"]) == 9
    assert lake.table("t").metadata["format-version"] == 3
    assert formats(lake.table("t")) == ["PUFFIN"]
    assert "keeps its format version" in walberg.log()


# --- deletion vectors ------------------------------------------------------------------------


def test_a_vector_grows_with_each_commit(database, v3, lake):
    """One vector per data file, whatever the number of commits that deleted from it."""
    database.execute(TABLE, "insert into t select n, n, 'row' from generate_series(1, 100) n")
    v3.once()
    for round_number in range(3):
        database.execute(f"delete from t where id % 10 = {round_number}",
                         f"insert into t values ({1000 + round_number}, 0, 'new')")
        v3.once()
        assert compare(database, lake, ["t"]) == 100 - 9 * (round_number + 1)
    vectors = live_deletes(lake.table("t"))
    assert [file["record_count"] for file in vectors] == [30]
    assert lake.table("t").summary["removed-dvs"] == "1"


def test_truncate_takes_the_vectors_along(database, v3, lake):
    database.execute(TABLE, ROWS)
    v3.once()
    database.execute("delete from t where id < 4")
    v3.once()
    database.execute("truncate t", "insert into t values (1, 1, 'x'), (2, 2, 'y')",
                     "delete from t where id = 2")
    v3.once()
    assert compare(database, lake, ["t"]) == 1
    assert all(file["record_count"] == 1 for file in live_deletes(lake.table("t")))


def test_lost_state_folder(database, v3, lake):
    """Vectors are read back from the lake."""
    database.execute(TABLE, ROWS)
    v3.once()
    database.execute("update t set a = 0 where id % 2 = 0")
    v3.once()
    v3.settings["state"] = str(v3.folder / "another")
    database.execute("update t set b = 'again' where id % 3 = 0", "delete from t where id = 4")
    v3.once()
    assert compare(database, lake, ["t"]) == 9


def delete_manifests(table):
    return {m["manifest_path"]: m["added_files_count"] + m["existing_files_count"]
            for m in manifests(table) if m["content"] == 1}


def test_a_commit_pays_for_what_it_touches(database, v3, lake):
    """Of many vectors, those of other files are neither written nor listed again."""
    v3.settings["tables.*.*.partition"] = "['truncate[2](id)']"
    database.execute(TABLE, "insert into t select n, n, '' from generate_series(0, 1199) n")
    v3.once()
    database.execute("delete from t where id % 2 = 0")
    v3.once()
    assert compare(database, lake, ["t"], readers=["pyiceberg", "java"]) == 600
    before = delete_manifests(lake.table("t"))
    assert sum(before.values()) == 600
    assert len(before) == 2 and max(before.values()) <= 500
    assert len({file["file_path"] for file in live_deletes(lake.table("t"))}) == 1

    database.execute("update t set b = 'x' where id = 1199")
    v3.once()
    after = delete_manifests(lake.table("t"))
    assert len(before.keys() & after.keys()) == 1, "the other manifest stays"
    assert lake.table("t").summary["added-dvs"] == lake.table("t").summary["removed-dvs"] == "1"
    assert compare(database, lake, ["t"], readers=["pyiceberg", "java"]) == 600


def test_small_delete_manifests_are_gathered(database, v3, lake):
    """Each commit leaves one; there are never more than a few."""
    database.execute(TABLE)
    v3.once()
    v3.start(commit__interval="100ms").wait_streaming()
    for number in range(20):
        database.execute(f"insert into t values ({number}, 0, ''), ({number + 100}, 0, '')")
        v3.wait_caught_up()
        database.execute(f"delete from t where id = {number}")
        v3.wait_caught_up()
    assert v3.stop() == 0
    assert compare(database, lake, ["t"]) == 20
    found = delete_manifests(lake.table("t"))
    assert sum(found.values()) == 20
    assert len(found) <= 8


def test_another_writer_takes_row_ids(database, v3, lake):
    """A contested commit is built again on top: sequence number and row ids are those of then."""
    database.execute(TABLE, ROWS)
    v3.start().wait_streaming()
    database.execute("delete from t where id = 1")
    v3.wait_caught_up()
    table = lake.table("t")
    metadata = json.loads(json.dumps(table.metadata))
    snapshot = {**table.snapshot, "snapshot-id": 4711, "parent-snapshot-id":
                table.snapshot["snapshot-id"], "first-row-id": metadata["next-row-id"],
                "sequence-number": metadata["last-sequence-number"] + 1, "added-rows": 1000,
                "timestamp-ms": metadata["last-updated-ms"] + 1, "summary": {
                    key: value for key, value in table.summary.items()
                    if key == "operation" or key.startswith("total-")}}
    metadata["snapshots"].append(snapshot)
    metadata["snapshot-log"].append({"snapshot-id": 4711, "timestamp-ms": snapshot["timestamp-ms"]})
    metadata.update({"current-snapshot-id": 4711, "next-row-id": metadata["next-row-id"] + 1000,
                     "last-sequence-number": snapshot["sequence-number"],
                     "last-updated-ms": snapshot["timestamp-ms"],
                     "refs": {"main": {"snapshot-id": 4711, "type": "branch"}}})
    write_metadata(v3, lake, table, metadata)
    database.execute("delete from t where id in (2, 3)", "insert into t values (11, 11, 'x')")
    v3.wait_caught_up()
    assert v3.stop() == 0
    assert "another writer committed" in v3.log()
    assert compare(database, lake, ["t"]) == 8
    assert lake.table("t").snapshot["first-row-id"] == metadata["next-row-id"]


def row_ids(table):
    """{data file: row id of its first row}, inherited where it is null."""
    found = {}
    for manifest in manifests(table):
        running = manifest["first_row_id"]
        entries = fastavro.reader(io.BytesIO(table.storage.read(manifest["manifest_path"])))
        live = [e["data_file"] for e in entries if e["status"] != 2 and not manifest["content"]]
        for file in live:
            first = file.get("first_row_id")
            found[file["file_path"]] = running if first is None else first
            running += file["record_count"] if first is None else 0
    return found


def test_merged_manifests_keep_row_ids(database, v3, lake):
    """At a hundred manifests they are merged: entries carry the ids that they had."""
    database.execute(TABLE, ROWS)
    v3.start(commit__interval="100ms").wait_streaming()
    seen = {}
    for number in range(130):
        database.execute(f"insert into t values ({number + 100}, 0, '')")
        time.sleep(0.15)
        if number % 30 == 0:
            seen.update(row_ids(lake.table("t")))
    v3.wait_caught_up()
    assert v3.stop() == 0
    table = lake.table("t")
    assert len(manifests(table)) < len(row_ids(table)), "none was merged"
    assert any(int(s["summary"]["manifests-replaced"]) > 0 for s in table.metadata["snapshots"])
    assert len(seen) > 50
    assert {path: first for path, first in row_ids(table).items() if path in seen} == seen
    assert compare(database, lake, ["t"]) == 140


# --- defaults --------------------------------------------------------------------------------

# type, default; what the lake has to say of it
DEFAULTS = [
    ("bool", "true", True),
    ("smallint", "-7", -7),
    ("int", "7", 7),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("real", "0.1", 0.10000000149011612),
    ("float8", "-1e-300", -1e-300),
    ("numeric(12,2)", "-14.20", "-14.20"),
    ("numeric(38,10)", "1234567890123456789012345678.0000000001",
     "1234567890123456789012345678.0000000001"),
    ("numeric", "1234.5600", "1234.5600"),
    ("money", "'-$1,234.56'", "-1234.56"),
    ("date", "'2017-11-16'", "2017-11-16"),
    ("time", "'22:31:08.123456'", "22:31:08.123456"),
    ("timestamp", "'1999-12-31 23:59:59.000001'", "1999-12-31T23:59:59.000001"),
    ("timestamptz", "'2017-11-16 22:31:08+02'", "2017-11-16T20:31:08+00:00"),
    ("text", "'it''s {a} \"b\", \\ and \u00e9'", "it's {a} \"b\", \\ and \u00e9"),
    ("text", "''", ""),
    ("text", "'NULL'", "NULL"),
    ("varchar(10)", "' x '", " x "),
    ("char(4)", "'ab'", "ab  "),
    ("bytea", "'\\x00ff'", "00ff"),
    ("uuid", "'F79C3E09-677C-4BBD-A479-3F349CB785E7'", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("jsonb", "'{\"a\": [1, \"x\"]}'", '{"a": [1, "x"]}'),
    ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    ("box", "'(1,1),(0,0)'", "(1,1),(0,0)"),
    ("interval", "'1 day 02:03:04'", "1 day 02:03:04"),
    ("float8", "0", 0.0),                         # Java takes no whole number for it
    ("real", "7", 7.0),
    ("float8", "'-0'", -0.0),
]


def copies(walberg):
    return walberg.log().count("info copied table=")


def test_defaults_need_no_copy(database, v3, lake):
    """Each type: what the default says is what a copy would deliver, by every reader."""
    database.execute(TABLE, ROWS)
    v3.once()
    before = copies(v3)
    columns = ", ".join(f"add column c{number} {kind} default {value}"
                        for number, (kind, value, _) in enumerate(DEFAULTS))
    database.execute(f"alter table t {columns}", "update t set a = 0 where id = 3",
                     "insert into t (id) values (11)")
    v3.once()
    assert compare(database, lake, ["t"]) == 11
    table = lake.table("t")
    for number, (kind, _, wanted) in enumerate(DEFAULTS):
        field = table.field(f"c{number}")
        assert repr(field["initial-default"]) == repr(field["write-default"]) == repr(wanted), kind
    assert table.metadata["properties"]["walberg.numeric.c8"] == "4,4"

    database.execute(*[f"alter table t alter c{number} drop default"
                       for number in range(len(DEFAULTS))],
                     "alter table t drop column a", "alter table t rename c2 to renamed",
                     "update t set c1 = 1 where id = 4", "insert into t (id, c1) values (12, 5)")
    v3.once()
    assert compare(database, lake, ["t"]) == 12
    assert lake.table("t").field("renamed")["initial-default"] == 7
    assert copies(v3) == before
    assert v3.call("verify", *v3.positional()).returncode == 0, "our own reading"


COPIED = {
    "volatile": "float8 default random()",
    "list": "int[] default '{1,2}'",
    "not a number": "numeric(12,2) default 'NaN'",
    "infinite": "float8 default 'Infinity'",
    "infinite date": "date default 'infinity'",
    "far away": "timestamp default '0044-03-15 12:00 BC'",
    "generated": "int generated always as (id * 2) stored",
}


@pytest.mark.parametrize("column", COPIED)
def test_defaults_that_need_a_copy(column, database, v3, lake):
    database.execute(TABLE, ROWS)
    v3.once()
    database.execute(f"alter table t add column c {COPIED[column]}",
                     "insert into t (id) values (11)")
    v3.once()
    if column == "generated":
        return                                    # does not arrive before Postgres 18
    assert compare(database, lake, ["t"]) == 11
    assert "initial-default" not in lake.table("t").field("c")


def test_old_rows_are_found_by_their_default(database, v3, lake):
    """Key index and unchanged values are read from files that lack the column."""
    database.execute(TABLE, ROWS)
    v3.once()
    before = copies(v3)
    database.execute("alter table t add column tenant int not null default 5",
                     "alter table t add column big text default repeat('x', 3000)",
                     "alter table t drop constraint t_pkey",
                     "alter table t add primary key (tenant, id)",
                     "update t set a = 100 where id = 1", "delete from t where id = 2",
                     "update t set tenant = 6 where id = 3", "insert into t values (4, 0, 'b', 7)")
    v3.once()
    v3.settings["state"] = str(v3.folder / "another")
    database.execute("update t set a = 200 where id = 1", "delete from t where id = 6",
                     "update t set tenant = 8 where id = 7")
    v3.once()
    assert compare(database, lake, ["t"]) == 9
    assert copies(v3) == before


def test_whole_rows_are_found_by_their_default(database, v3, lake):
    """REPLICA IDENTITY FULL without a key: the hash is of all columns."""
    database.execute("create table t (id int, b text)", "alter table t replica identity full",
                     "insert into t select n / 2, 'twin' from generate_series(1, 10) n")
    v3.once()
    before = copies(v3)
    database.execute("alter table t add column c numeric(8,2) default 1.50",
                     "delete from t where ctid = (select max(ctid) from t where id = 3)",
                     "update t set b = 'x' where id = 1")
    v3.once()
    assert compare(database, lake, ["t"]) == 9
    assert copies(v3) == before


@pytest.mark.parametrize("values", [("5", "5"), ("5", "6")], ids=["same", "different"])
def test_partitions_may_disagree(values, database, v3, lake):
    """A column that partitions got one by one: only one value for all needs no copy."""
    database.execute("create table t (id int primary key, a int) partition by range (id)",
                     "create table t1 (id int primary key, a int)",
                     "create table t2 (id int primary key, a int)",
                     "insert into t1 values (1, 1)", "insert into t2 values (101, 2)")
    for number, value in enumerate(values, 1):
        database.execute(f"alter table t{number} add column c int default {value}")
    database.execute("alter table t add column c int",
                     "alter table t attach partition t1 for values from (0) to (100)",
                     "alter table t attach partition t2 for values from (100) to (200)")
    v3.once()
    database.execute("alter table t add column d int default 9", "insert into t values (3, 3)")
    v3.once()
    assert compare(database, lake, ["t"]) == 3


def test_default_and_upgrade_in_one_commit(database, walberg, lake):
    walberg.settings["sink.iceberg.format_version"] = 2
    database.execute(TABLE, ROWS)
    walberg.once()
    before = copies(walberg)
    walberg.settings.update(V3)
    database.execute("alter table t add column c int default 7", "delete from t where id = 1")
    walberg.once()
    assert compare(database, lake, ["t"]) == 9
    assert lake.table("t").field("c")["initial-default"] == 7
    assert copies(walberg) == before
