"""walberg verify: source and lake compared by value, while walberg runs and while it does not.

Differences are made behind walberg's back: PyIceberg edits the lake's tables, or a source table is
taken out of the publication and goes on alone.
"""
import json
import pathlib
import random
import re
import shutil
import subprocess
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog

from lib.env import FULL, SEED, wait_for
from lib.readers import reader_properties
from lib.walberg import environment


def verify(walberg, *args, code=None, **settings):
    """(exit code, {table: its report})"""
    done = walberg.call("verify", "--json", *walberg.positional(), *args, timeout=300, **settings)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["pipeline"] == walberg.database.name
    assert report["result"] == {0: "equal", 1: "different", 3: "undecided"}[done.returncode]
    if code is not None:
        assert done.returncode == code, report
    return done.returncode, {table["name"]: table for table in report["tables"]}


def keys(table):
    return sorted((d["difference"], json.dumps(d["key"])) for d in table["differences"])


def edit(lake, name, change, space="public"):
    """change(PyIceberg table), committed to the lake as the version after the present one."""
    table = lake.table(name, space)
    storage = lake.storage
    root = storage.uri if storage.server else f"file://{storage.uri}"
    catalog = InMemoryCatalog("edit", warehouse=root, **reader_properties(storage))
    catalog.create_namespace("public")
    theirs = catalog.register_table(("public", name), table.uri)
    change(theirs)
    folder = f"{storage.uri.rstrip('/')}/{table.folder}/metadata"
    number = int(table.location.rsplit("/v", 1)[1].split(".")[0]) + 1
    storage.write(f"{folder}/v{number}.metadata.json", storage.read(theirs.metadata_location))
    storage.write(f"{folder}/version-hint.text", str(number).encode())


def overwrite(column, value, where):
    """An edit that sets one column of the rows that where(arrow table) marks."""
    def change(table):
        rows = table.scan().to_arrow()
        at = rows.schema.get_field_index(column)
        new = pc.if_else(where(rows), pa.scalar(value, rows.schema.field(at).type), rows[column])
        table.overwrite(rows.set_column(at, rows.schema.field(at), new))
    return change


def id_is(number):
    return lambda rows: pc.equal(rows["id"], number)


TABLE = ("create table t (id int primary key, v text, n numeric(12,2))",
         "insert into t select n, 'v' || n, n * 1.25 from generate_series(1, 1000) n")


# --- equal -----------------------------------------------------------------------------------


def test_equal_when_stopped(database, walberg):
    database.execute(*TABLE, "create table empty (id int primary key)",
                     "create table log (line text)", "insert into log values ('a'), ('a'), (null)")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert {name: t["result"] for name, t in tables.items()} == {
        "public.t": "equal", "public.empty": "equal", "public.log": "equal"}
    assert (tables["public.t"]["source_rows"], tables["public.t"]["lake_rows"]) == (1000, 1000)
    assert tables["public.empty"]["source_rows"] == 0
    for name in ("public.t", "t", "*.t"):
        done = walberg.call("verify", *walberg.positional(), name)
        assert done.returncode == 0
        assert done.stdout == "public.t: equal, 1000 rows\n"
    assert "verify" not in done.stderr


def test_equal_after_updates_and_deletes(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    database.execute("update t set v = v || 'x' where id % 3 = 0", "delete from t where id % 7 = 0")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert tables["public.t"]["lake_rows"] == 1000 - 142


def test_equal_while_written_to(database, walberg):
    """Rows change under the comparison all the time; none of them is called different."""
    database.execute(*TABLE, "create table log (line text, n int)",
                     "alter table log replica identity full")
    walberg.start()
    walberg.wait_streaming()
    stop = threading.Event()

    def write(seed):
        dice = random.Random(seed)
        with database.connect(autocommit=False) as conn:
            while not stop.is_set():
                for _ in range(dice.randrange(1, 10)):
                    number = dice.randrange(1, 20000)
                    conn.execute(dice.choice([
                        "insert into t values (%(n)s, 'new', 0) on conflict (id) do update"
                        " set v = 'again'",
                        "update t set n = coalesce(n, 0) + 1 where id = %(n)s",
                        "delete from t where id = %(n)s",
                        "insert into log values ('line ' || %(n)s %% 50, %(n)s)",
                        "delete from log where n = %(n)s"]), {"n": number})
                if dice.random() < 0.1:
                    conn.rollback()
                else:
                    conn.commit()
                time.sleep(0.005)

    writers = [threading.Thread(target=write, args=(SEED + i,)) for i in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(5):
            _, tables = verify(walberg, code=0)
            assert len(tables) == 2
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    walberg.wait_caught_up()
    verify(walberg, code=0)


def test_a_row_that_keeps_changing_is_not_decided(database, walberg):
    database.execute(*TABLE)
    walberg.start(commit__interval="1s")
    walberg.wait_caught_up()
    stop = threading.Event()

    def write():
        with database.connect() as conn:
            while not stop.is_set():
                conn.execute("update t set n = n + 1 where id = 7")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        _, tables = verify(walberg, code=3)
    finally:
        stop.set()
        writer.join()
    assert (tables["public.t"]["different"], tables["public.t"]["undecided"]) == (0, 1)
    walberg.wait_caught_up()
    verify(walberg, code=0)


VALUES = """create table t (id int primary key, txt text, num numeric, price numeric(8,2),
    real4 real, real8 double precision, doc jsonb, j json, list int[], texts text[], raw bytea,
    day date, at timestamptz, uid uuid, flag bool, span interval)"""
ROWS = """insert into t values
    (1, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
    (2, '', 1.0, 1, 0, '-0', '{"b": 1, "a": [1, null]}', '{"b":1,"a":2}', '{}', '{}', '',
        '0001-01-01', '1970-01-01', '00000000-0000-0000-0000-000000000000', false, '0'),
    (3, 'x', 1.00, 1.00, '-0', 'NaN', '{"a": [1, null], "b": 1}', '{"a":2,"b":1}', '{1,NULL}',
        '{NULL,"",x}', '\\x00', '9999-12-31', '1969-12-31 23:59:59.999999+00',
        'ffffffff-ffff-ffff-ffff-ffffffffffff', true, '1 mon'),
    (4, E'\\\\N', 'NaN', -0.01, 'NaN', 'infinity', 'null', 'null', '{NULL}', '{"NULL"}', '\\x5c4e',
        '1970-01-01', '2026-11-30 12:00:00.5+02', null, true, '30 days')"""


def test_values_that_look_alike(database, walberg):
    database.execute(VALUES, ROWS)
    walberg.once()
    database.execute("insert into t (id, txt) values (5, null), (6, '')",
                     "update t set txt = txt where id = 4")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert tables["public.t"]["rejected_values"] == 0


# column, id, what PyIceberg puts there: each looks like what it replaces, and is another value.
CLOSE = {
    "null for an empty text": ("txt", 2, None),
    "an empty text for null": ("txt", 1, ""),
    "numeric without its scale": ("num", 3, "1.0"),
    "zero for minus zero": ("real8", 2, 0.0),
    "infinity for NaN": ("real8", 3, float("inf")),
    "null for NaN": ("real4", 4, None),
    "another order of json keys": ("j", 2, '{"a":2,"b":1}'),
    "a JSON null for none": ("doc", 1, "null"),
    "an array without its NULL": ("list", 3, [1]),
    "an empty array for NULL": ("list", 1, []),
    "NULL for an empty array": ("texts", 2, None),
    "a text NULL for NULL": ("texts", 3, ["NULL", "", "x"]),
    "one microsecond": ("at", 3, None),
    "no bytes for NULL": ("raw", 1, b""),
}


@pytest.mark.parametrize("what", CLOSE)
def test_values_that_are_close_differ(what, database, walberg, lake):
    column, number, value = CLOSE[what]
    database.execute(VALUES, ROWS)
    walberg.once()

    def change(table):
        rows = table.scan().to_arrow().to_pylist()
        schema = table.schema().as_arrow()
        for row in rows:
            if row["id"] == number:
                assert row[column] != value or what == "zero for minus zero"
                row[column] = value
        table.overwrite(pa.Table.from_pylist(rows, schema=schema))

    edit(lake, "t", change)
    _, tables = verify(walberg, code=1)
    assert keys(tables["public.t"]) == [("not the same", f'{{"id": {number}}}')]


def test_rejected_values_are_no_differences(database, walberg):
    database.execute("create table t (id int primary key, price numeric(8,2), day date)",
                     "insert into t values (1, 'NaN', 'infinity'), (2, 1, '2026-01-01')")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert tables["public.t"]["rejected_values"] == 2
    assert "2 rejected values" in walberg.call("verify", *walberg.positional()).stdout


def test_defaults_of_columns_that_files_lack(database, walberg, lake):
    """Iceberg's initial-default is a value as good as any."""
    database.execute(*TABLE)
    walberg.once()
    database.execute("alter table t add column day date default '2017-11-16'")
    walberg.once(on_add_default="ignore")
    _, tables = verify(walberg, code=1, on_add_default="ignore")
    assert tables["public.t"]["different"] == 1000
    table = lake.table("t")
    table.field("day")["initial-default"] = "2017-11-16"
    folder = f"{lake.storage.uri}/{table.folder}/metadata"
    number = lake.hint(table) + 1
    lake.storage.write(f"{folder}/v{number}.metadata.json", json.dumps(table.metadata).encode())
    lake.storage.write(f"{folder}/version-hint.text", str(number).encode())
    verify(walberg, code=0, on_add_default="ignore")


REJECTS = ("insert into t values ({0}, 'NaN', 'infinity', 'infinity', '[2:3]={{1,2}}'),"
           " ({0} + 1, 'NaN', '-infinity', '294276-12-31 23:59:59.999999+00', '{{{{1}}}}')")


def test_records_of_all_names_that_a_table_had_count(database, walberg):
    """Of the one it was taken in under, of one between by the stream and by a copy, of today's."""
    database.execute("create table t (id int primary key, day date)", "create schema s",
                     "insert into t values (1, 'infinity')")
    walberg.once()
    database.execute("alter table t rename to u")
    walberg.once()
    database.execute("insert into u values (2, '-infinity')")
    walberg.once()
    database.execute("alter table u set schema s", "alter table s.u rename to v",
                     "insert into s.v values (3, 'infinity')")
    walberg.start()
    walberg.wait_streaming()
    assert walberg.call("resync", *walberg.positional(), "s.v").returncode == 0
    assert walberg.stop() == 0
    database.execute("alter table s.v rename to w", "insert into s.w values (4, 'infinity')")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert tables["s.w"]["rejected_values"] == 4


def test_rejected_values_have_records(database, walberg, lake):
    """Whatever became of the names; of the copy, of the stream, and twice the same value."""
    database.execute("create table t (id int primary key, price numeric(8,2), day date,"
                     " at timestamptz, n int[])", REJECTS.format(1))
    walberg.once()
    database.execute(REJECTS.format(3))
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert (tables["public.t"]["rejected_values"], tables["public.t"]["without_record"]) == (16, 0)
    database.execute("alter table t rename day to d", "alter table t rename id to k",
                     "alter table t rename to u", "delete from u where k = 2")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert (tables["public.u"]["rejected_values"], tables["public.u"]["without_record"]) == (12, 0)

    edit(lake, "rejects", lambda table: table.delete("key == '{\"id\":1}'"), space="_walberg")
    _, tables = verify(walberg, code=1)
    # twice infinity, and the array; for NaN there is the record of the row that is gone
    assert tables["public.u"]["result"] == "different"
    assert tables["public.u"]["without_record"] == 3
    said = walberg.call("verify", *walberg.positional()).stdout
    assert "12 rejected values, 3 of them without a record in _walberg.rejects" in said


# --- different -------------------------------------------------------------------------------


def test_lake_edits_are_found_by_key(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    edit(lake, "t", overwrite("v", "spoilt", id_is(17)))
    edit(lake, "t", lambda table: table.delete("id == 18"))
    schema = lake.table("t")
    assert schema.columns == ["id", "v", "n"]
    edit(lake, "t", lambda table: table.append(pa.Table.from_pylist(
        [{"id": 5000, "v": "extra", "n": None}], schema=table.schema().as_arrow())))
    _, tables = verify(walberg, code=1)
    table = tables["public.t"]
    assert keys(table) == [("missing in the lake", '{"id": 18}'),
                           ("not in the source", '{"id": 5000}'),
                           ("not the same", '{"id": 17}')]
    assert (table["different"], table["undecided"], table["at_least"]) == (3, 0, False)

    done = walberg.call("verify", "--limit", "1", *walberg.positional(), "public.t")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "public.t: different in 3 rows, 1000 rows"
    assert len(lines) == 3 and lines[2] == "  and 2 more"


def test_a_lake_edit_is_found_while_written_to(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    edit(lake, "t", overwrite("v", "spoilt", id_is(17)))
    walberg.start()
    walberg.wait_caught_up()
    stop = threading.Event()

    def write():
        dice = random.Random(SEED)
        with database.connect() as conn:
            while not stop.is_set():
                conn.execute("update t set n = n + 1 where id = %s", [dice.randrange(100, 1000)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        code, tables = verify(walberg)
    finally:
        stop.set()
        writer.join()
    assert code == 1
    assert keys(tables["public.t"]) == [("not the same", '{"id": 17}')]


@pytest.mark.parametrize("running", [False, True])
def test_what_replication_did_not_see(running, database, walberg):
    """A table out of the publication goes on alone; its lake table stays."""
    database.execute(*TABLE)
    walberg.once()
    database.execute(f"alter publication walberg_{database.name} drop table t",
                     "create table other (id int primary key)", "insert into other values (1)")
    if running:
        walberg.start(source__publication=f"walberg_{database.name}")
    database.execute("update t set v = 'later' where id = 3", "delete from t where id = 4",
                     "insert into t values (1001, 'new', null)")
    if running:
        wait_for("parked", lambda: "parked" in {t["state"] for t in walberg.status()["tables"]}, 10)
    _, tables = verify(walberg, "public.t", code=1)
    if running:
        assert tables["public.t"]["result"] == "not compared"
        assert "the publication does not publish it any more" in tables["public.t"]["reason"]
        return
    assert keys(tables["public.t"]) == [("missing in the lake", '{"id": 1001}'),
                                        ("not in the source", '{"id": 4}'),
                                        ("not the same", '{"id": 3}')]


@pytest.mark.parametrize("identity", ["full", "default"])
def test_twins_are_counted(identity, database, walberg, lake):
    database.execute("create table t (line text, n int)",
                     f"alter table t replica identity {identity}",
                     "insert into t select 'twin', 1 from generate_series(1, 5)",
                     "insert into t values ('single', 2), (null, null)")
    walberg.once()
    verify(walberg, code=0)
    edit(lake, "t", lambda table: table.append(pa.Table.from_pylist(
        [{"line": "twin", "n": 1}], schema=table.schema().as_arrow())))
    _, tables = verify(walberg, code=1)
    assert tables["public.t"]["different"] == 1
    assert tables["public.t"]["differences"][0]["key"] == {"line": "twin", "n": 1}


def test_a_doubled_row_is_different(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    edit(lake, "t", lambda table: table.append(
        table.scan(row_filter="id == 9").to_arrow().cast(table.schema().as_arrow())))
    _, tables = verify(walberg, code=1)
    assert keys(tables["public.t"]) == [("not the same", '{"id": 9}')]


def test_many_rows(database, walberg, lake):
    database.execute("create table t (id int primary key, v text)",
                     "insert into t select n, 'row ' || n from generate_series(1, 200000) n")
    walberg.once()
    database.execute("update t set v = v || '!' where id % 10 = 0")
    walberg.once()
    _, tables = verify(walberg, code=0)
    assert tables["public.t"]["lake_rows"] == 200000
    edit(lake, "t", lambda table: table.delete("id == 123456"))
    _, tables = verify(walberg, code=1)
    assert keys(tables["public.t"]) == [("missing in the lake", '{"id": 123456}')]


def test_everything_differs(database, walberg, lake):
    database.execute("create table t (id int primary key, v text)",
                     "insert into t select n, 'row ' || n from generate_series(1, 200000) n")
    walberg.once()
    edit(lake, "t", lambda table: table.delete("id > 0"))
    _, tables = verify(walberg, code=1)
    table = tables["public.t"]
    assert (table["source_rows"], table["lake_rows"]) == (200000, 0)
    assert table["at_least"] and 1000 < table["different"] < 200000
    assert len(table["differences"]) == 10


def test_a_commit_that_snapshots_do_not_show_yet(database, walberg):
    """Waiting for a standby that is not there, a transaction is in the WAL, and so in the lake,
    before anybody in the source can see it: for the moment, that is no difference."""
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_caught_up()
    server = database.server
    server.execute("postgres", "alter system set synchronous_standby_names = 'nobody'",
                   "select pg_reload_conf()")
    writer = threading.Thread(target=lambda: database.execute("insert into t values (0, 'x', 1)"))
    try:
        wait_for("standby is waited for", lambda: server.rows(
            "postgres", "show synchronous_standby_names")[0][0] == "nobody", 10)
        writer.start()
        wait_for("in the lake", lambda: walberg.query("select count(*) from t") == [(1001,)], 30)
        assert database.rows("select count(*) from t") == [(1000,)]
        _, tables = verify(walberg, code=3)
        assert (tables["public.t"]["different"], tables["public.t"]["undecided"]) == (0, 1)
    finally:
        server.execute("postgres", "alter system reset synchronous_standby_names",
                       "select pg_reload_conf()")
        writer.join()
    walberg.wait_caught_up()
    verify(walberg, code=0)


# --- tables of every kind --------------------------------------------------------------------


def test_odd_names_and_keys(database, walberg, lake):
    database.execute('create schema "Odd.schema"',
                     'create table "Odd.schema"."a=b ""q"" ü" ("Kü" text, "at" timestamptz,'
                     ' "select" numeric(5,2), primary key ("Kü", "at", "select"))',
                     """insert into "Odd.schema"."a=b ""q"" ü" values
                     ('a"b', '2026-01-02 03:04:05.000006+00', -0.5), ('', '1960-01-01', 12)""",
                     "create table part (id int, v text, primary key (id)) partition by range (id)",
                     "create table part1 partition of part for values from (0) to (10)",
                     "create table part2 partition of part for values from (10) to (20)",
                     "insert into part select n, 'x' from generate_series(1, 19) n")
    walberg.once()
    _, tables = verify(walberg, code=0)
    odd = '"Odd.schema"."a=b ""q"" ü"'
    assert tables[odd]["source_rows"] == 2
    assert tables["public.part"]["source_rows"] == 19
    _, tables = verify(walberg, odd, code=0)
    assert list(tables) == [odd]
    database.execute(f"alter publication walberg_{database.name} drop table {odd}")
    database.execute(f"""delete from {odd} where "select" = -0.5""")
    _, tables = verify(walberg, odd, code=1)
    assert tables[odd]["differences"][0]["key"] == {
        "Kü": 'a"b', "at": "2026-01-02T03:04:05.000Z", "select": -0.50}


def test_tables_that_changed_their_shape(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    database.execute("alter table t rename column v to text", "alter table t add column extra int",
                     "alter table t alter column id type bigint", "alter table t rename to renamed")
    _, tables = verify(walberg, code=0)       # nothing was written since: the lake knows of none
    assert list(tables) == ["public.renamed"]
    database.execute("update renamed set extra = id where id < 10")
    walberg.once()
    _, tables = verify(walberg, "renamed", code=0)
    assert tables["public.renamed"]["lake_rows"] == 1000


def test_tables_that_cannot_be_compared(database, walberg):
    database.execute(*TABLE, "create table gone (id int primary key)",
                     "create table broken (id int primary key)", "insert into broken values (1)")
    walberg.once()
    database.execute("drop table gone", "create table late (id int primary key)",
                     f"alter publication walberg_{database.name} add table late")
    for path in (walberg.folder / "lake/public/broken/data").iterdir():
        path.unlink()
    shutil.rmtree(walberg.folder / "state/index")
    walberg.call("run", "--once", *walberg.positional(),
                 source__tables='["public.broken", "public.t"]')
    _, tables = verify(walberg, code=1)
    assert tables["public.t"]["result"] == "equal"
    reasons = {n: t["reason"] for n, t in tables.items() if t["result"] == "not compared"}
    assert reasons["public.broken"].startswith("parked: ")
    assert "not in the source" in reasons["public.gone"]
    assert "not in the lake" in reasons["public.late"]
    text = walberg.call("verify", *walberg.positional(), "public.broken")
    assert text.returncode == 1
    assert text.stdout.startswith("public.broken: not compared: parked: ")
    verify(walberg, "public.t", code=0)


# --- ends ------------------------------------------------------------------------------------


def test_stopped_with_changes_waiting(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    database.execute("update t set v = 'later' where id = 3")
    done = walberg.call("verify", *walberg.positional())
    assert done.returncode == 3
    assert "does not have the last 1 changes" in done.stderr and "hint: " in done.stderr
    assert done.stdout == ""
    walberg.once()
    verify(walberg, code=0)


def test_not_in_time(database, walberg):
    database.execute(*TABLE)
    walberg.start(commit__interval="1h")
    wait_for("copied", lambda: walberg.status()["tables"] and
             walberg.status()["tables"][0]["state"] == "streaming", 30)
    database.execute("update t set v = 'later' where id = 3")
    done = walberg.call("verify", "--timeout", "2s", *walberg.positional())
    assert done.returncode == 3
    assert "did not reach" in done.stderr


def test_a_role_that_may_only_read(database, walberg):
    database.execute(*TABLE, "drop role if exists reader", "create role reader login",
                     "grant select on t to reader")
    walberg.start()
    walberg.wait_caught_up()
    uri = database.uri.replace("postgres@", "reader@")
    before = database.rows("select count(*) from pg_replication_slots")
    done = walberg.call("verify", uri, walberg.storage.uri)
    assert (done.returncode, done.stdout) == (0, "public.t: equal, 1000 rows\n"), done.stderr
    assert database.rows("select count(*) from pg_replication_slots") == before
    walberg.stop()
    done = walberg.call("verify", uri, walberg.storage.uri)
    assert done.returncode == 0, done.stderr
    database.execute("delete from t where id = 1", "drop owned by reader")
    database.execute("grant select on t to reader")
    done = walberg.call("verify", uri, walberg.storage.uri)
    assert done.returncode == 3 and "cannot be looked at" in done.stderr
    database.execute("drop owned by reader", "drop role reader")


def test_wrong_usage(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    for args, code, word in (
            ((*walberg.positional(), "public.nothing"), 1, "no table public.nothing"),
            ((database.uri,), 2, "wrong number"),
            (("--limit", "x", *walberg.positional()), 2, "--limit"),
            (("--timeout", "5", *walberg.positional()), 2, "--timeout"),
            ((database.uri, str(walberg.folder / "nowhere")), 1, "has no pipeline")):
        done = walberg.call("verify", *args)
        assert done.returncode == code, done.stderr
        assert word in done.stderr


def test_nothing_is_changed(database, walberg):
    database.execute(*TABLE)
    walberg.once()
    before = {path: walberg.storage.read(f"{walberg.storage.uri}/{path}")
              for path in walberg.storage.list()}
    slot = walberg.slot()[:2]
    verify(walberg, code=0)
    assert slot == walberg.slot()[:2]
    assert before == {path: walberg.storage.read(f"{walberg.storage.uri}/{path}")
                      for path in walberg.storage.list()}


def test_on_s3(database, s3, tmp_path):
    from lib.lake import Lake
    from lib.walberg import Walberg
    walberg = Walberg(database, s3.warehouse(), tmp_path)
    database.execute(*TABLE)
    walberg.once()
    database.execute("update t set v = v || 'x' where id % 3 = 0")
    walberg.once()
    verify(walberg, code=0)
    edit(Lake(walberg.storage), "t", overwrite("v", "spoilt", id_is(17)))
    _, tables = verify(walberg, code=1)
    assert keys(tables["public.t"]) == [("not the same", '{"id": 17}')]


# --- bounds ----------------------------------------------------------------------------------


def peak_of(command, **options):
    """(exit code, what it printed, its peak memory in bytes): the process's own, looked at again
    and again. Its last look comes a few milliseconds before its end."""
    peak = 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        peak = max(peak, int(found[1]) * 1024 if found else 0)
        time.sleep(0.005)
    return process.returncode, process.stdout.read(), peak


def test_more_rows_than_memory(database, walberg, lake):
    """Equal and then not: neither all rows are held nor (the full run has more) all keys."""
    rows, value = (3000000, 100) if FULL else (400000, 500)
    bound = 128 * 2**20
    database.execute("create table one (id int primary key)", "insert into one values (1)",
                     "create table t (id int primary key, v text)",
                     f"insert into t select n, lpad(n::text, {value}, 'v')"
                     f" from generate_series(1, {rows}) n")
    walberg.once()

    def peak(table, code):
        command = walberg.command("verify", "--json", *walberg.positional(), table)
        returned, said, most = peak_of(command, env=environment(walberg.storage))
        [report] = json.loads(said)["tables"]
        assert returned == code, report
        return report, most

    _, least = peak("one", 0)
    report, most = peak("t", 0)
    assert report["source_rows"] == report["lake_rows"] == rows
    assert most - least < bound, (most, least)
    edit(lake, "t", lambda table: table.delete("id == 77777"))
    report, most = peak("t", 1)
    assert keys(report) == [("missing in the lake", '{"id": 77777}')]
    assert most - least < bound < rows * value, (most, least)
