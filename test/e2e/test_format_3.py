"""Tables of format version 3 that the reference Java library wrote (test/java/Write.java): what
`walberg sql` says of them against PyIceberg, DuckDB and Java."""
import datetime
import decimal
import json
import pathlib
import subprocess

import pytest

from lib import readers
from lib.env import CACHE, FULL, PROGRAM, ROOT
from lib.lake import Lake
from lib.storage import Storage
from lib.walberg import environment

READERS = {"pyiceberg": readers.pyiceberg, "duckdb": readers.duckdb_iceberg, "java": readers.java}


def write_tables(storage):
    root = storage.uri if storage.server else f"file://{storage.uri}"
    subprocess.run(["java", "-cp", f"{CACHE}/java/lib/*", str(ROOT / "test/java/Write.java"), root],
                   check=True, timeout=300, env=environment(storage))
    return storage


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("java") / "lake"
    folder.mkdir()
    return write_tables(Storage(folder))


def sql(storage, query):
    return subprocess.run([str(PROGRAM), "sql", storage.uri, query, "--format", "json"],
                          capture_output=True, text=True, timeout=60, check=False,
                          env=environment(storage))


def rows(storage, query):
    done = sql(storage, query)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_float=decimal.Decimal)


def refusal(storage, table):
    """Why a table is left out."""
    done = sql(storage, f"select * from {table}")
    assert done.returncode == 1 and done.stdout == "", done.stdout
    before = f'walberg: relation "{table}" cannot be read: '
    assert done.stderr.startswith(before), done.stderr
    return done.stderr.removeprefix(before).rstrip("\n")


# --- deletes -----------------------------------------------------------------------------------


def ids_agree(storage, table, names):
    mine = sorted(row["id"] for row in rows(storage, f"select id from {table}"))
    for name in names:
        _, theirs = READERS[name](Lake(storage).table(table))
        assert mine == sorted(row[0] for row in theirs), name
    count, = rows(storage, f"select count(*) as n from {table}")
    assert count["n"] == len(mine)
    return mine


def test_vectors(tables):
    left = ids_agree(tables, "vectors", READERS)
    gone = {0, 7, 999, *range(100, 200), 1003, 1004, 1500, 2001, *range(2990, 4000)}
    assert left == [i for i in range(5000) if i not in gone]
    # a filter that reaches the files, and one that cannot
    assert rows(tables, "select id from vectors where id in (2000, 2001, 2990)") == [{"id": 2000}]
    assert rows(tables, "select count(*) as n from vectors where id % 1000 = 999") == [{"n": 2}]


def test_vectors_of_partitions(tables):
    assert len(ids_agree(tables, "parts", READERS)) == 24


def test_a_vector_replaces_position_deletes(tables):
    # PyIceberg takes both, against the letter of the spec
    assert ids_agree(tables, "replaced", ["duckdb", "java"]) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


@pytest.mark.skipif(not FULL, reason="the full run does")
def test_vectors_on_s3(s3):
    storage = write_tables(s3.warehouse())
    assert len(ids_agree(storage, "vectors", READERS)) == 3883
    assert len(ids_agree(storage, "parts", READERS)) == 24


@pytest.fixture
def spoiled(tables):
    """spoiled(change) runs change(bytes) over the Puffin files of the table "parts"; None removes
    them. All is as before after the test."""
    saved = []

    def spoil(change):
        for path in pathlib.Path(tables.uri, "public", "parts").glob("data/**/*.puffin"):
            saved.append((path, path.read_bytes()))
            content = change(saved[-1][1])
            path.unlink()
            if content is not None:
                path.write_bytes(content)
        assert saved
        return tables

    yield spoil
    for path, content in saved:
        path.write_bytes(content)


FLIPPED = {
    "in a bitmap": (lambda puffin: puffin[:40] + bytes([puffin[40] ^ 1]) + puffin[41:],
                    "deletion vector: the checksum is wrong"),
    "in the magic": (lambda puffin: puffin[:8] + b"\0" + puffin[9:],
                     "deletion vector: the magic bytes are wrong"),
    "cut": (lambda puffin: puffin[:30], "it "),
    "gone": (lambda puffin: None, "is missing"),
}


@pytest.mark.parametrize("fault", FLIPPED)
def test_a_damaged_vector_leaves_the_table_out(spoiled, fault):
    change, reason = FLIPPED[fault]
    storage = spoiled(change)
    assert reason in refusal(storage, "parts")
    assert len(rows(storage, "select id from replaced")) == 9  # the others are served


# --- defaults ----------------------------------------------------------------------------------

EPOCH = datetime.datetime(1970, 1, 1)


def moment(microseconds):
    return str(EPOCH + datetime.timedelta(microseconds=microseconds))


def printed(kind, value):
    """A canonical value of the readers as `walberg sql --format json` has it."""
    if value is None:
        return None
    if kind == "date":
        return moment(value * 86400000000)[:10]
    if kind == "time":
        return moment(value)[11:]
    if kind == "timestamp":
        return moment(value)
    if kind == "timestamptz":
        return moment(value) + "+00"
    if kind == "float":
        return decimal.Decimal(f"{float(value):.8g}")
    if kind == "double" or str(kind).startswith("decimal"):
        return decimal.Decimal(value)
    if kind == "binary" or str(kind).startswith("fixed"):
        return "\\x" + value
    return value


def same_rows(storage, name):
    table = Lake(storage).table(name)
    kinds = [field["type"] for field in table.schema["fields"]]
    mine = [tuple(row.values()) for row in rows(storage, f"select * from {name} order by id")]
    for reader, read in READERS.items():
        columns, theirs = read(table)
        assert columns == table.columns
        theirs = sorted(theirs, key=lambda row: row[0])
        assert mine == [tuple(map(printed, kinds, row)) for row in theirs], reader
    return mine


def test_defaults(tables):
    old, full, nulls = same_rows(tables, "defaults")
    columns = Lake(tables).table("defaults").columns
    assert [c for c, value in zip(columns, old, strict=True) if value is None] == ["none"]
    assert None not in full
    # a row whose writer had no value is another thing than a file without the column
    assert nulls[:2] == (3, True) and set(nulls[2:]) == {None}
    # a filter on the default
    assert rows(tables, "select id from defaults where day = '1969-12-31'") == [{"id": 1}]
    assert rows(tables, "select id from defaults where small is null") == [{"id": 3}]


def nested_rows(storage, name):
    names = Lake(storage).table(name).columns[1:]
    columns = ", ".join(f"to_json({column}) as {column}" for column in names)
    return [{"id": row["id"], **{c: row[c] and json.loads(row[c], parse_float=decimal.Decimal)
                                 for c in names}}
            for row in rows(storage, f"select id, {columns} from {name} order by id")]


def plain(value, kind):
    """A canonical nested value as to_json has it."""
    if value is None or isinstance(kind, str):
        return printed(kind, value)
    if kind["type"] == "struct":
        return {f["name"]: plain(value[f["name"]], f["type"]) for f in kind["fields"]}
    if kind["type"] == "list":
        return [plain(item, kind["element"]) for item in value]
    return {key: plain(item, kind["value"]) for key, item in value}


def test_members_of_structs(tables):
    """Added with a default, renamed, moved, dropped, their name given to another."""
    table = Lake(tables).table("nested")
    kinds = {field["name"]: field["type"] for field in table.schema["fields"]}
    mine = nested_rows(tables, "nested")
    for reader, read in READERS.items():
        columns, theirs = read(table)
        theirs = [{c: plain(v, kinds[c]) for c, v in zip(columns, row, strict=True)}
                  for row in sorted(theirs)]
        if reader == "pyiceberg":  # reads a NULL list or map as an empty one
            theirs[2].update(items=None, named=None)
        assert mine == theirs, reader
    assert mine[0]["pair"] == {"b": "five", "z": 5, "c": "2017-11-16", "a": "new"}


@pytest.fixture
def changed(tables):
    """changed(name, change) publishes change(metadata) as the next version of a table."""
    added = []

    def publish(name, change):
        folder = pathlib.Path(tables.uri, "public", name, "metadata")
        metadata = json.loads((folder / "v1.metadata.json").read_text())
        change(metadata)
        added.append(folder)
        (folder / "v2.metadata.json").write_text(json.dumps(metadata))
        (folder / "version-hint.text").write_text("2")
        return tables

    yield publish
    for folder in added:
        (folder / "v2.metadata.json").unlink()
        (folder / "version-hint.text").write_text("1")


def current_schema(metadata):
    wanted = metadata["current-schema-id"]
    return next(s for s in metadata["schemas"] if s["schema-id"] == wanted)


def optional(number, name, kind, default=None):
    field = {"id": number, "name": name, "required": False, "type": kind}
    return field if default is None else {**field, "initial-default": default}


def listed(number, kind):
    return {"type": "list", "element-id": number, "element": kind, "element-required": False}


NESTED = [  # the forms of "JSON single-value serialization"; no library that writes them was found
    (optional(101, "l", listed(102, "string"), ["a,b", "it's \"", None, "", "null"]),
     ["a,b", "it's \"", None, "", "null"]),
    (optional(103, "dates", listed(104, listed(105, "date")), [["2017-11-16"], [], None]),
     [["2017-11-16"], [], None]),
    (optional(106, "m", {"type": "map", "key-id": 107, "key": "string", "value-id": 108,
                         "value": "decimal(9,2)", "value-required": False},
              {"keys": ["a=}", "b"], "values": ["14.20", None]}),
     {"a=}": decimal.Decimal("14.20"), "b": None}),
    (optional(109, "given", {"type": "struct", "fields": [
        optional(110, "x", "int", 7), optional(111, "y", "string", "y")]}, {"110": 8}),
     {"x": 8, "y": "y"}),
    (optional(112, "own", {"type": "struct", "fields": [
        optional(113, "x", "long", 1 << 62), optional(114, "y", "string")]}, {}),
     {"x": 1 << 62, "y": None}),
    (optional(115, "none", {"type": "struct", "fields": [optional(116, "x", "int", 7)]}), None),
    (optional(117, "far", "date", "+12345-06-07"), "12345-06-07"),
    (optional(118, "past", "timestamp", "-0043-03-15T12:00:00"), None),
]


def test_defaults_of_nested_columns(changed):
    def change(metadata):
        current_schema(metadata)["fields"] = [
            *current_schema(metadata)["fields"][:1], *(field for field, _ in NESTED)]
    storage = changed("defaults", change)
    columns = ", ".join(f"to_json({field['name']}) as {field['name']}" for field, _ in NESTED[:6])
    for row in rows(storage, f"select {columns} from defaults"):
        assert [value and json.loads(value, parse_float=decimal.Decimal)
                for value in row.values()] == [wanted for _, wanted in NESTED[:6]]
    assert rows(storage, "select distinct far, past from defaults") == [
        {"far": "12345-06-07", "past": "0044-03-15 12:00:00 BC"}]


# Refused by us, or by DuckDB when the view is made.
@pytest.mark.parametrize("kind, default", [
    ("int", "five"), ("int", 1.5), ("long", True), ("boolean", "true"), ("string", 5),
    ("binary", "0"), ("binary", "xx"), ("date", "2017-02-30"), ("uuid", "f79c"),
    ("decimal(4,2)", "123.45"), (listed(102, "int"), {"a": 1}), (listed(102, "int"), ["x"])])
def test_a_default_that_is_no_value_leaves_the_table_out(changed, kind, default):
    storage = changed("defaults", lambda metadata: current_schema(metadata)["fields"].append(
        optional(101, "odd", kind, default)))
    refusal(storage, "defaults")
    assert len(rows(storage, "select id from replaced")) == 9


# --- types that it brought ---------------------------------------------------------------------


@pytest.mark.parametrize("name, kind", [("nanos", "timestamp_ns"), ("variants", "variant"),
                                        ("points", "geometry"), ("nothing", "unknown")])
def test_types_that_are_not_read(tables, name, kind):
    assert refusal(tables, name).startswith(
        f"it has a column of a type that is not supported (v: {kind}")
