"""Values of many megabytes, long keys and very wide rows: by the copy, the stream, and updates that
leave them alone. All arrive, and the memory that they cost is watched."""
import pytest

from lib.env import FULL, wait_for
from lib.oracle import compare
from lib.readers import READERS

MB = 1024 * 1024
# Of a value of so many bytes as it comes. Text that does not compress well, in 32-byte words.
WORDS = "(select string_agg(md5(i::text), '') from generate_series(1, {size} / 32) i)"
KINDS = {
    "text": WORDS,
    "bytea": f"decode({WORDS}, 'hex')",
    "jsonb": f"jsonb_build_object('k', {WORDS}, 'n', 1.50)",
    "text[]": f"array['', {WORDS}, null]",
}
CASES = [(kind, 1) for kind in KINDS] + [("bytea", 20)]
if FULL:
    CASES += [(kind, size) for size in (20, 60) for kind in KINDS if (kind, size) not in CASES]


def change(database, walberg, lake, kind, value):
    """Copied, inserted, updated with the value unsent, moved, updated. Peak memory in bytes."""
    database.execute(f"create table t (id int primary key, v {kind}, n int)",
                     "alter table t alter v set storage external",
                     f"insert into t values (1, {value}, 0), (2, null, 0), (3, {value}, 0)")
    walberg.start(memory="64MB")
    wait_for("copy", lambda: lake.has("t") and lake.table("t").position, 180)
    walberg.wait_caught_up(180)
    database.execute(f"insert into t values (4, {value}, 0)",
                     "update t set n = 1 where id in (1, 2)",             # v is not sent
                     "update t set id = 5 where id = 3",                  # v is not sent, new key
                     f"update t set v = {value} where id = 2",
                     "delete from t where id = 1")
    walberg.wait_caught_up(180)
    return walberg.resident_bytes()


@pytest.mark.parametrize(("kind", "size"), CASES)
def test_value_of_many_megabytes(kind, size, database, walberg, lake):
    peak = change(database, walberg, lake, kind, KINDS[kind].format(size=size * MB))
    assert compare(database, lake, ["t"], readers=["duckdb", "pyiceberg"]) == 3
    print(f"{kind} of {size} MB: {peak // MB} MB")
    assert peak < 192 * MB + 6 * size * MB


def test_array_of_a_million_numbers(database, walberg, lake):
    peak = change(database, walberg, lake, "integer[]",
                  "(select array_agg(i * 1103515245 % 2147483647) from"
                  " generate_series(1::bigint, 1000000) i)::integer[]")
    truth = database.rows("select id, v, n from t order by id")
    assert [len(v) for _, v, _ in truth] == [1000000] * 3
    for reader in ("duckdb", "pyiceberg"):
        _, rows = READERS[reader](lake.table("t"))
        assert sorted(rows) == truth, reader
    print(f"{peak // MB} MB")
    assert peak < 256 * MB


def test_verify_reads_what_run_wrote(database, walberg):
    """One value is larger than all the memory that others need."""
    database.execute("create table t (id int primary key, v text, n int)",
                     f"insert into t values (1, repeat('abcdefgh', {150 * MB // 8}), 1),"
                     " (2, '', 2)")
    walberg.once()
    database.execute("update t set n = -n")
    walberg.once()
    walberg.call("verify", *walberg.positional(), check=True)


def test_value_beyond_the_limit(database, walberg, lake):
    """NULL, and recorded by its beginning: by the copy, the stream, unsent, in a list, in a struct.
    All else of its row arrives, and a value of exactly the limit."""
    over = f"repeat('\u00e9', {MB // 2}) || 'x'"
    database.execute("create type pair as (x int, y text)",
                     "create table t (id int primary key, v text, b bytea, l text[], p pair,"
                     " n int)",
                     "create table twins (v text, n int)",
                     "alter table twins replica identity full",
                     "create table other (id int primary key)",
                     f"insert into t values (1, {over}, 'x', array['a'], null, 1),"
                     f" (2, repeat('x', {MB}), decode(repeat('00', {MB // 2 - 1}), 'hex'), null,"
                     " null, 2)",
                     f"insert into twins values ({over}, 1), ('y' || {over}, 1)")
    walberg.once(value_limit="1MB")
    database.execute(f"insert into t values (3, 'y', 'y', array['a', {over}], null, 3),"
                     f" (4, 'y', 'y', null, row(7, {over}), 4)",
                     "update t set n = -n",                              # v of 1 is not sent
                     "update t set id = 10 where id = 1",
                     f"update t set v = {over} where id = 2",
                     "delete from twins where v like 'y%'",
                     "insert into other values (1)")
    walberg.once(value_limit="1MB")
    compare(database, lake, ["other"])
    _, rows = READERS["java"](lake.table("t"))
    assert sorted((row[0], row[1], row[3], row[4], row[5]) for row in rows) == [
        (2, None, None, None, -2), (3, "y", None, None, -3), (4, "y", None, None, -4),
        (10, None, ["a"], None, -1)]
    assert {row[0]: len(row[2]) for row in rows} == {2: MB - 2, 3: 2, 4: 2, 10: 2}
    _, rows = READERS["java"](lake.table("twins"))
    assert sorted(rows) == [(None, 1)]
    names, rows = READERS["java"](lake.table("rejects", "_walberg"))
    records = [dict(zip(names, row, strict=True)) for row in rows]
    assert sorted((r["table"], r["key"] or "", r["column"]) for r in records) == [
        ("t", '{"id":1}', "v"), ("t", '{"id":2}', "v"), ("t", '{"id":3}', "l"),
        ("t", '{"id":4}', "p"), ("twins", "", "v"), ("twins", "", "v")]
    first = next(r for r in records if r["key"] == '{"id":1}')
    assert first["value"] == "\u00e9" * 500
    assert first["reason"] == f"longer than value_limit: {MB + 1} bytes"
    walberg.call("verify", *walberg.positional(), check=True, value_limit="1MB")


def test_keys_of_two_kilobytes(database, walberg, lake):
    """As long as an index takes them: 2,704 bytes after compression."""
    database.execute("create table t (k text, v text, n int, primary key (k))",
                     "create table parent (k bytea primary key, v text)",
                     f"insert into t select i || {WORDS.format(size=2048)}, 'x', i"
                     " from generate_series(1, 200) i",
                     "insert into parent select decode(md5(i::text) || repeat('00', 2000)"
                     " || md5(i::text), 'hex'), i from generate_series(1, 50) i")
    walberg.once()
    database.execute("update t set v = repeat(v, 20), n = -n where n % 3 = 0",
                     "update t set k = 'moved ' || k where n % 5 = 0",
                     "delete from t where n % 7 = 0",
                     "update parent set v = 'y' where v::int % 2 = 0",
                     "delete from parent where v = '1'")
    walberg.once()
    compare(database, lake, ["t", "parent"])
    walberg.call("verify", *walberg.positional(), check=True)


def test_1600_columns_with_wide_texts(database, walberg, lake):
    """As many columns as Postgres takes; 300 of them too long for the row itself."""
    columns = ", ".join(f"c{i} text" for i in range(1599))
    wide = [i for i in range(1599) if i % 5 == 0][:300]
    names = ", ".join(f"c{i}" for i in wide)
    value = WORDS.format(size=4096)
    database.execute(f"create table t (id int primary key, {columns})",
                     *(f"alter table t alter c{i} set storage external" for i in wide),
                     f"insert into t (id, {names}) select n, {', '.join(['w'] * len(wide))}"
                     f" from generate_series(1, 20) n, {value} w(w)",
                     "insert into t (id, c1598) values (21, 'last')")
    walberg.once()
    database.execute("update t set c1 = 'short' where id < 15",
                     f"insert into t (id, {names}) select n, {', '.join(['w'] * len(wide))}"
                     f" from generate_series(31, 40) n, {value} w(w)",
                     "delete from t where id in (3, 33)",
                     "update t set id = -id where id % 4 = 0")
    walberg.once()
    # The oracle asks two questions for each column, and Postgres answers 1,664 at most.
    truth = database.rows("select * from t order by id")
    for reader in ("duckdb", "java"):
        names, rows = READERS[reader](lake.table("t"))
        assert names == ["id", *(f"c{i}" for i in range(1599))], reader
        assert sorted(rows, key=lambda row: row[0]) == truth, reader
