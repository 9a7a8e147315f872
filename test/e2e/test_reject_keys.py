"""A value that its column cannot hold, where it tells rows apart."""
import pytest

from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres
from lib.readers import READERS
from lib.storage import Storage
from lib.walberg import Walberg

TABLES = ("create table t (id int, d date, v text, primary key (id, d))",
          "create table other (id int primary key)")
PAIR = "insert into t values (1, '-infinity', 'minus'), (1, 'infinity', 'plus')"
CAST = {"tables__public.t.columns": "{d: {cast: string}}"}
ON_REJECT = pytest.mark.parametrize("on_reject", ["record", "park"])


def run(walberg, code, **settings):
    assert walberg.call("run", "--once", *walberg.positional(), **settings).returncode == code


def why(walberg):
    return {t["name"]: t["error"] for t in walberg.status()["tables"]}["public.t"]


def rows(walberg, table="t", space="public"):
    return sorted(READERS["java"](Lake(walberg.storage).table(table, space))[1])


def records(walberg):
    """(key, column, value) of all rejects."""
    names, found = READERS["java"](Lake(walberg.storage).table("rejects", "_walberg"))
    wanted = [names.index(n) for n in ("key", "column", "value")]
    return sorted(tuple(row[i] for i in wanted) for row in found)


@ON_REJECT
def test_the_copy_parks_the_table(on_reject, database, walberg, lake):
    database.execute(*TABLES, PAIR, "insert into t values (1, '2026-01-01', 'day')",
                     "insert into other values (1)")
    run(walberg, 1, on_reject=on_reject)
    assert "key column d cannot be held" in why(walberg)
    assert "{d: {cast: string}}" in why(walberg)
    asked = walberg.call("sql", walberg.storage.uri, "select * from t")
    assert "its copy is not complete yet, and it is parked\n" in asked.stderr
    assert rows(walberg) == []
    assert ('{"id":1,"d":"-infinity"}', "d", "-infinity") in records(walberg)
    compare(database, lake, ["other"])

    run(walberg, 0, **CAST)
    database.execute("update t set v = 'less' where d = '-infinity'",
                     "delete from t where d = 'infinity'")
    run(walberg, 0, **CAST)
    assert rows(walberg) == [(1, "-infinity", "less"), (1, "2026-01-01", "day")]


def test_any_value_parks_when_that_is_set(database, walberg, lake):
    """By the copy as by the stream; the other tables go on."""
    database.execute("create table t (id int primary key, d date)",
                     "create table other (id int primary key)", "insert into other values (1)",
                     "insert into t select n, '2026-01-01' from generate_series(1, 20000) n",
                     "insert into t values (0, 'infinity')")
    run(walberg, 1, on_reject="park")
    assert "on_reject is park" in why(walberg)
    assert rows(walberg) == []
    assert records(walberg) == [('{"id":0}', "d", "infinity")]
    compare(database, lake, ["other"])
    run(walberg, 1, on_reject="park")  # it is still there
    assert "on_reject is park" in why(walberg)

    walberg.start(on_reject="park")
    wait_for("parked", lambda: "on_reject is park" in (why(walberg) or ""), 30)
    database.execute("insert into other values (2)")
    wait_for("others", lambda: is_equal(database, lake, ["other"]), 30)
    database.execute("update t set d = '2026-01-02' where id = 0")
    assert walberg.call("resync", *walberg.positional(), "t").returncode == 0
    walberg.wait_streaming()
    assert compare(database, lake, ["t", "other"]) == 20003
    # a copy of what the lake has already: its rows stay
    database.execute("update t set d = 'infinity' where id = 1")
    wait_for("parked", lambda: "on_reject is park" in (why(walberg) or ""), 30)
    done = walberg.call("resync", *walberg.positional(), "t")
    assert done.returncode != 0, done.stdout
    assert len(rows(walberg)) == 20001


@ON_REJECT
def test_the_stream_parks_the_table(on_reject, database, walberg, lake):
    database.execute(*TABLES, "insert into t values (1, '2026-01-01', 'day')")
    walberg.once()
    database.execute("begin; insert into t values (2, '2026-01-02', 'no'); "
                     f"{PAIR}; insert into other values (2); commit")
    run(walberg, 1, on_reject=on_reject)
    assert "key column d cannot be held" in why(walberg)
    assert [row[2] for row in rows(walberg)] == ["day"]
    assert records(walberg) == [('{"id":1,"d":"-infinity"}', "d", "-infinity")]
    compare(database, lake, ["other"])

    run(walberg, 0, **CAST)
    assert rows(walberg) == [(1, "-infinity", "minus"), (1, "2026-01-01", "day"),
                             (1, "infinity", "plus"), (2, "2026-01-02", "no")]


def test_another_key_lets_it_go_on(database, walberg, lake):
    """What waited in the slot comes, and such a value is an ordinary reject then."""
    database.execute("create table t (id int, d date, primary key (id, d))",
                     "create table other (id int primary key)", "insert into t values (1, now())")
    walberg.once()
    database.execute("insert into t values (2, 'infinity')")
    run(walberg, 1)
    assert compare(database, lake, ["other"]) == 0
    run(walberg, 0, **{"tables__public.t.key": "[id]"})
    compare(database, lake, ["t"])


def test_a_key_that_moves_onto_such_values(database, walberg):
    """They were ordinary rejects, two of them; a change of one of them cannot be placed."""
    database.execute("create table t (id int primary key, d date not null, v text)",
                     "insert into t values (1, '-infinity', 'minus'), (2, 'infinity', 'plus')")
    walberg.once()
    database.execute("alter table t drop constraint t_pkey", "alter table t add primary key (d)",
                     "insert into t values (3, '2026-01-01', 'day')")
    run(walberg, 0)
    done = walberg.call("verify", *walberg.positional())
    assert done.returncode == 1 and "key column d cannot be held" in done.stdout
    database.execute("update t set v = 'less' where id = 1")
    run(walberg, 1)
    assert "key column d cannot be held" in why(walberg)
    assert [row[::2] for row in rows(walberg)] == [(1, "minus"), (2, "plus"), (3, "day")]


def test_text_that_is_not_utf8(tmp_path):
    server = Postgres()
    try:
        with server.connect() as conn:
            conn.execute("create database raw encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'"
                         " template template0")
        bad = "convert_from('\\x61{}62', 'SQL_ASCII')"
        server.execute("raw", "create table t (k text primary key, v int)",
                       f"insert into t values ({bad.format('fe')}, 1), ({bad.format('ff')}, 2)")
        walberg = Walberg(Database(server, "raw", new=False), Storage(tmp_path / "lake"), tmp_path)
        run(walberg, 1)
        assert "key column k cannot be held" in why(walberg) and "cast" not in why(walberg)
        assert rows(walberg) == []
        assert records(walberg) == [('{"k":"a\\\\xfeb"}', "k", "a\\xfeb")]
    finally:
        server.remove()


def test_rows_without_a_key_are_equal_by_value(database, walberg, lake):
    """Rows that differ only there are alike in the lake: whichever goes, the same is left."""
    database.execute("create table t (id int, d date, v text)",
                     "alter table t replica identity full",
                     "insert into t values (1, '-infinity', 'a'), (1, 'infinity', 'a'),"
                     " (1, null, 'a'), (2, 'infinity', repeat('x', 9000))")
    walberg.once()
    assert compare(database, lake, ["t"]) == 4
    database.execute("insert into t values (1, '-infinity', 'a'), (3, 'infinity', 'b')",
                     "delete from t where d = 'infinity' and id = 1",
                     "update t set v = 'c' where d is null",
                     "update t set d = '-infinity' where id = 2",
                     "update t set d = '2026-01-01' where id = 3")
    walberg.once()
    assert compare(database, lake, ["t"]) == 5
    database.execute("delete from t where d = '-infinity'")
    walberg.once()
    assert compare(database, lake, ["t"]) == 2
    walberg.call("verify", *walberg.positional(), check=True)
