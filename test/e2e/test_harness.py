"""The harness itself, on tables that are not ours: the readers agree, and the checks can fail."""

import fastavro
import pytest

from lib import foreign
from lib.iceberg_check import check_table
from lib.oracle import Truth, differences, freeze
from lib.postgres import Database
from lib.readers import READERS
from lib.storage import Storage
from lib.workload import Workload


@pytest.fixture(name="table")
def foreign_table(tmp_path):
    return foreign.write(Storage(tmp_path))


def expected_rows():
    """What foreign.rows() holds, in canonical form, by hand."""
    return [
        (1, True, -2, "0.10000000149011612", "-0.0", "1234567890.10", -719162, -1,
         1767268800000001, "h\u00e9\u2028llo\n", "00ff", "00000000-0000-0000-0000-000000000005",
         ["a", None, ""], [["a", None], ["z", "1"]], {"a": 1, "b": None}),
        (2, *[None] * 14),
        (3, None, None, "NaN", "Infinity", None, None, None, None, "", None, None, [], [],
         {"a": None, "b": None}),
    ]


@pytest.mark.parametrize("reader", READERS)
def test_reader_gives_canonical_rows(reader, table):
    names, rows = READERS[reader](table)
    assert names == table.columns
    assert sorted(rows) == expected_rows()


@pytest.mark.parametrize("reader", READERS)
def test_reader_gives_canonical_rows_from_s3(reader, s3):
    table = foreign.write(s3.warehouse())
    names, rows = READERS[reader](table)
    assert names == table.columns
    assert sorted(rows) == expected_rows()


@pytest.mark.parametrize("reader", READERS)
def test_reader_sees_deletes(reader, tmp_path):
    table = foreign.write(Storage(tmp_path), deleted=[2])
    assert sorted(row[0] for row in READERS[reader](table)[1]) == [1, 3]


def test_pyiceberg_reads_a_null_list_of_structs_as_empty(tmp_path):
    """Why oracle.blurred() is there. When this fails, PyIceberg has been mended: take it away."""
    assert foreign.null_and_empty_list_of_structs(tmp_path) == [[], []]


def test_true_metadata_has_no_complaints(table):
    # PyIceberg leaves two optional keys out of a manifest's header, nothing else.
    assert [c for c in check_table(table) if "in the file's metadata" not in c] == []


@pytest.mark.parametrize("reader", READERS)
def test_reader_applies_position_deletes(reader, table):
    deleted = foreign.with_position_deletes(table, [0, 2])
    assert [row[0] for row in READERS[reader](deleted)[1]] == [2]
    assert [c for c in check_table(deleted, 1) if "in the file's metadata" not in c] == []


SPOILED = {
    "not sorted by path and position": lambda rows: rows[::-1],
    "is beyond the file's end": lambda rows: [*rows, (rows[0][0], 3)],
    "unique": lambda rows: [rows[0], rows[0]],
}


@pytest.mark.parametrize("fault", SPOILED)
def test_spoiled_position_deletes_are_found(fault, table):
    deleted = foreign.with_position_deletes(table, [0, 2], SPOILED[fault])
    assert [complaint for complaint in check_table(deleted) if fault in complaint]


def rewrite_entry(table, change, number=0):
    """Plant a fault in the first entry of a manifest."""
    from lib.iceberg_check import Check
    check = Check(table)
    _, manifests = check.avro(table.snapshot["manifest-list"])
    path = table.storage.key(manifests[number]["manifest_path"])
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        schema, header, entries = reader.writer_schema, reader.metadata, list(reader)
    change(entries[0])
    header = {k: v for k, v in header.items() if not k.startswith("avro.")}
    with open(path, "wb") as file:
        fastavro.writer(file, schema, entries, metadata=header)


FAULTS = {
    "record_count": lambda e: e["data_file"].update(record_count=7),
    "size": lambda e: e["data_file"].update(file_size_in_bytes=1),
    "does not exist": lambda e: e["data_file"].update(file_path=e["data_file"]["file_path"] + "x"),
    "lower bound": lambda e: e["data_file"].update(
        lower_bounds=[{"key": 1, "value": (99).to_bytes(8, "little")}]),
    "null_value_counts": lambda e: e["data_file"].update(
        null_value_counts=[{"key": 2, "value": 0}]),
    "not added": lambda e: e.update(status=0, sequence_number=None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault, table):
    rewrite_entry(table, FAULTS[fault])
    assert [complaint for complaint in check_table(table) if fault in complaint]


@pytest.fixture
def partitioned(tmp_path):
    return foreign.write(Storage(tmp_path / "lake"), spec=foreign.PARTITIONED)


def test_true_partitions_have_no_complaints(partitioned):
    # A header without the optional keys, and summaries that PyIceberg makes as we would.
    assert [c for c in check_table(partitioned) if "in the file's metadata" not in c] == []


PARTITION_FAULTS = {
    "identity of 8 in its rows": lambda e: e["data_file"]["partition"].update(at=3),
    "identity of 10 in its rows": lambda e: e["data_file"]["partition"].update(name="z"),
}


@pytest.mark.parametrize("fault", PARTITION_FAULTS)
def test_wrong_partition_is_found(fault, partitioned):
    rewrite_entry(partitioned, PARTITION_FAULTS[fault])
    complaints = check_table(partitioned)
    assert [complaint for complaint in complaints if fault in complaint]
    assert [complaint for complaint in complaints if "_bound of" in complaint]


def test_deletes_of_another_partition_are_found(partitioned):
    deleted = foreign.with_position_deletes(partitioned, [0])
    assert [c for c in check_table(deleted) if "spec and partition" in c] == []
    rewrite_entry(deleted, lambda e: e["data_file"]["partition"].update(at=3), number=-1)
    assert [c for c in check_table(deleted) if "spec and partition" in c]


def test_wrong_summary_is_found(table):
    table.snapshot["summary"]["total-records"] = "4"
    assert [c for c in check_table(table) if "summary total-records" in c]


TYPED = """create table typed (
    id int primary key, f4 real, n numeric(12,2), free numeric, d date, at timestamp,
    at_tz timestamptz, padded char(4), raw bytea, tags text[], grid int[][], attrs hstore,
    p point3, ps point3[])"""


def test_oracle_says_what_a_person_would(database):
    """Expected values by hand: the oracle is compared with nothing else of ours."""
    database.execute("create extension hstore",
                     "create type point3 as (x int4, label text, y numeric(8,2))", TYPED,
                     """insert into typed values
        (1, '0.1', '1.1', '1.10', '0001-12-31 BC', '1969-12-31 23:59:59.999999',
         '1970-01-01 01:00:00+01', 'ab', '\\x00ff', '{a,NULL,"NULL"}', '{{1,2},{3,4}}',
         'b=>2, a=>NULL', '(1,,2.5)', '{"(,,)",NULL}'),
        (2, '-0', 'NaN', 'NaN', 'infinity', '-infinity', '294276-01-01 00:00:00+00', '', '',
         '[2:3]={a,b}', '{1,2}', '', '(,,)', '{}'),
        (3, null, null, null, null, null, null, null, null, null, null, null, null, null)""")
    with database.connect() as conn:
        truth = Truth(conn, "typed")
    assert truth.key == ["id"]
    empty = {"x": None, "label": None, "y": None}
    assert sorted(truth.rows) == [
        (1, "0.10000000149011612", "1.10", "1.10", -719163, -1, 0, "ab  ", "00ff",
         ["a", None, "NULL"], [[1, 2], [3, 4]], [["a", None], ["b", "2"]],
         {"x": 1, "label": None, "y": "2.50"}, [empty, None]),
        (2, "-0.0", None, "NaN", None, None, None, "    ", "", None, None, [], empty, []),
        (3, *[None] * 13),
    ]
    assert truth.rejects == 6


def test_differences_are_told_by_key_column_and_value(database):
    database.execute("create table t (id int primary key, name text)",
                     "insert into t values (1, 'a'), (2, 'b'), (3, null)")
    with database.connect() as conn:
        truth = Truth(conn, "t")
    assert differences(truth, ["name", "id"], [("a", 1), ("b", 2), (None, 3)]) == []
    assert differences(truth, ["id", "name"], [(1, "a"), (2, "c"), (2, "b"), (4, "d")]) == [
        "[2]: twice in the lake", "[3]: not in the lake", "[4]: in the lake, not in the source"]
    assert differences(truth, ["id", "name"], [(1, "a"), (2, "c"), (3, "")]) == [
        "[2]: name: source 'b', lake 'c'", "[3]: name: source None, lake ''"]
    assert differences(truth, ["id"], [(1,)]) != []


def test_workload_is_the_same_for_the_same_seed(postgres):
    seen = []
    for _ in range(2):
        database = Database(postgres, "same_seed")
        with database.connect() as conn:
            workload = Workload(conn, 7, alters=0.05)
            workload.fill(10)
            for _ in range(60):
                workload.transaction()
            seen.append([sorted(map(freeze, Truth(conn, name).rows)) for name in workload.names])
    postgres.drop_database("same_seed")
    assert seen[0] == seen[1]
    assert sum(map(len, seen[0])) > 100
