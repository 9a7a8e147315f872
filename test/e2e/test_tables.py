"""Tables of every kind: keys, no keys, twins, truncates, partitions, odd names, late comers."""
import re
import shutil

import psycopg
import pytest

from lib.env import wait_for
from lib.oracle import compare
from lib.readers import READERS

KEYS = {
    "text": ("code text primary key", "repeat('k', n) || n"),
    "uuid": ("uid uuid primary key", "md5(n::text)::uuid"),
    "timestamptz": ("at timestamptz primary key", "timestamptz '2026-01-01' + n * interval '1 us'"),
    "numeric": ("amount numeric(20,4) primary key", "n::numeric / 8"),
    "bytea": ("raw bytea primary key", "decode(lpad(to_hex(n), 4, '0'), 'hex')"),
    "char": ("code char(6) primary key", "'c' || n"),
    "bool and int": ("flag boolean, id int, primary key (flag, id)", "n % 2 = 0, n"),
    "text and date": ("code text, day date, primary key (day, code)",
                      "'x' || n % 3, date '2026-01-01' + n"),
    "double": ("reading double precision primary key", "n / 3.0"),
    "enum": ("m mood primary key", None),
}


@pytest.mark.parametrize("kind", KEYS)
def test_key_of_any_type(kind, database, walberg, lake):
    columns, key = KEYS[kind]
    if key is None:
        database.execute("create type mood as enum ('a', 'b', 'c')",
                         f"create table t ({columns}, v int)",
                         "insert into t values ('a', 1), ('b', 2), ('c', 3)")
    else:
        database.execute(f"create table t ({columns}, v int)",
                         f"insert into t select {key}, n from generate_series(1, 60) n")
    walberg.once()
    compare(database, lake, ["t"])
    database.execute("update t set v = v + 100 where v % 3 = 0", "delete from t where v % 5 = 1")
    walberg.once()
    compare(database, lake, ["t"])


def test_key_changes_swaps_and_shifts(database, walberg, lake):
    database.execute("create table t (id int primary key, v text)",
                     "insert into t select n, 'v' || n from generate_series(1, 50) n")
    walberg.once()
    with database.connect(autocommit=False) as conn:
        conn.execute("update t set id = -id - 1")
        conn.execute("update t set id = -id")                 # every key is now another row's
        for old, new in ((2, 0), (51, 2), (0, 51)):           # two exchange theirs
            conn.execute("update t set id = %s where id = %s", [new, old])
        conn.commit()
    database.execute("update t set id = -id where id > 40")
    walberg.once()
    compare(database, lake, ["t"])


def test_replica_identity_index(database, walberg, lake):
    database.execute("create table t (a int, b text not null, v int)",
                     "create unique index t_b on t (b)",
                     "alter table t replica identity using index t_b",
                     "insert into t select n, 'b' || n, 0 from generate_series(1, 30) n")
    walberg.once()
    database.execute("update t set v = 1 where a % 2 = 0", "delete from t where a < 5",
                     "update t set b = 'new' || a where a > 25")
    walberg.once()
    compare(database, lake, ["t"])


def test_replica_identity_full_with_a_key(database, walberg, lake):
    database.execute("create table t (id int primary key, v text)",
                     "alter table t replica identity full",
                     "insert into t select n, repeat('x', 3000) from generate_series(1, 20) n")
    walberg.once()
    database.execute("update t set id = id + 100 where id < 5", "delete from t where id = 7",
                     "update t set v = null where id = 8")
    walberg.once()
    compare(database, lake, ["t"])


def test_twins_without_a_key(database, walberg, lake):
    """REPLICA IDENTITY FULL: each delete takes exactly one of the equal rows."""
    database.execute("create table t (a int, b text)", "alter table t replica identity full",
                     "insert into t select n % 3, null from generate_series(1, 30) n")
    walberg.once()
    database.execute("delete from t where ctid in (select ctid from t where a = 0 limit 4)",
                     "update t set b = 'x' where ctid in (select ctid from t where a = 1 limit 2)",
                     "insert into t values (0, null), (1, 'x')")
    walberg.once()
    compare(database, lake, ["t"])
    database.execute("delete from t")
    walberg.once()
    assert compare(database, lake, ["t"]) == 0


def test_table_without_identity_takes_inserts(database, walberg, lake):
    database.execute("create table t (a int, b text)", "insert into t values (1, 'a'), (1, 'a')")
    walberg.once()
    database.execute("insert into t values (1, 'a'), (2, null)")
    walberg.once()
    assert compare(database, lake, ["t"]) == 4


def test_truncate_keeps_its_place(database, walberg, lake):
    database.execute("create table t (id int primary key, v int)", "create table u (id int)",
                     "insert into t select n, n from generate_series(1, 100) n")
    walberg.once()
    with database.connect(autocommit=False) as conn:
        conn.execute("insert into t values (1000, 0)")
        conn.execute("truncate t, u")
        conn.execute("insert into t values (1, 1), (1000, 1)")
        conn.commit()
    database.execute("update t set v = 2 where id = 1")
    walberg.once()
    assert compare(database, lake, ["t", "u"]) == 2
    database.execute("truncate t")
    walberg.once()
    assert compare(database, lake, ["t", "u"]) == 0


def test_partitioned_table_arrives_as_its_root(database, walberg, lake):
    database.execute(
        "create table t (id int, at date, v text, primary key (id, at)) partition by range (at)",
        "create table t_1 partition of t for values from ('2026-01-01') to ('2026-02-01')",
        # Another order of columns than the root's, and a dropped one in between.
        "create table t_2 (v text, gone int, at date not null, id int not null)",
        "alter table t_2 drop column gone",
        "alter table t attach partition t_2 for values from ('2026-02-01') to ('2026-03-01')",
        "insert into t select n, date '2026-01-01' + n, 'v' || n from generate_series(0, 50) n")
    walberg.once()
    database.execute(
        "update t set at = at + 31 where id < 5",                   # from one leaf to the other
        "create table t_3 partition of t for values from ('2026-03-01') to ('2026-04-01')",
        "insert into t values (99, '2026-03-05', 'late leaf')", "delete from t where id = 40")
    walberg.once()
    compare(database, lake, ["t"])
    assert [name for name in lake.tables() if name[1].startswith("t_")] == []


ODD_NAMES = [("public", "MixedCase"), ("public", "with space"), ("public", "per%cent"),
             ("public", 'quo"te'), ("public", "dot.ted"), ("Sch\u00e9ma", "\u8868"),
             ("public", "sl/ash"), ("public", "que?ry#frag"), ("public", "select")]


def test_odd_names_arrive_as_they_are(database, walberg, lake):
    from lib.oracle import qualified
    database.execute('create schema "Sch\u00e9ma"')
    for i, name in enumerate(ODD_NAMES):
        database.execute(f"create table {qualified(name)}"
                         f' ("Id" int primary key, "a b" text, "x%s""y" int, "\u00e9.z" int)',
                         f"insert into {qualified(name)} values ({i}, 'v', 1, 2)")
    walberg.once()
    for name in ODD_NAMES:
        database.execute(f"""update {qualified(name)} set "a b" = 'w'""")
    walberg.once()
    compare(database, lake, ODD_NAMES)


def test_table_made_later_is_copied_while_others_stream(database, walberg, lake):
    database.execute("create table t (id int primary key, v int)", "insert into t values (1, 1)")
    walberg.start()
    walberg.wait_caught_up()
    database.execute("create table late (id int primary key, v text)",
                     "insert into late select n, 'before' from generate_series(1, 100) n",
                     "insert into t values (2, 2)")
    walberg.stop()
    walberg.once()                                # at the latest a new start takes it in
    database.execute("update late set v = 'after' where id = 5", "delete from late where id = 6")
    walberg.once()
    compare(database, lake, ["t", "late"])


def test_tables_are_chosen_by_pattern(database, walberg, lake):
    database.execute("create schema audit", "create table audit.log (id int primary key)",
                     "create table kept (id int primary key)", "create table secret (id int)")
    walberg.once(source__tables='["public.*", "!public.secret"]')
    wait_for("kept", lambda: lake.has("kept"), 5)
    assert not lake.has("log", "audit")
    assert not lake.has("secret")


def test_unchanged_large_values_survive(database, walberg, lake):
    """An update that leaves a TOASTed value alone does not send it."""
    database.execute("create table t (id int primary key, n int, big text, tags text[])",
                     "alter table t alter column big set storage external",
                     "alter table t alter column tags set storage external",
                     "insert into t select n, 0, repeat(chr(64 + n), 9000),"
                     " array_fill(repeat('t', 100), array[90]) from generate_series(1, 20) n")
    walberg.once()
    database.execute("update t set n = 1 where id <= 5",           # its value is in the lake
                     "insert into t values (21, 0, repeat('z', 9000), null)",
                     "update t set n = 2 where id in (3, 21)",     # ... and in the same epoch
                     "update t set n = 3 where id in (3, 21)",
                     "update t set id = id + 100 where id > 15",   # under another key
                     "update t set big = 'short' where id = 1", "update t set n = 4 where id = 1")
    walberg.once()
    compare(database, lake, ["t"])


def test_the_log_says_what_a_commit_brought(database, walberg, lake):
    """An update writes one row and deletes one; a key that comes and goes in one commit is neither.
    The sum of all is what the table has."""
    database.execute("create table t (id int primary key, v int)",
                     "insert into t select g, 0 from generate_series(1, 100) g",
                     "create table other (id int primary key)")
    walberg.start().wait_streaming()

    def commit(*statements):
        before = len(walberg.log())
        with database.connect(autocommit=False) as conn:
            for statement in statements:
                conn.execute(statement)
            conn.commit()
        walberg.wait_caught_up()
        lines = re.findall(r" info committed table=public\.t position=(\S+) rows=(\d+)"
                           r" deletes=(\d+) files=(\d+) took=\d+ms\n", walberg.log()[before:])
        assert len(lines) == 1, walberg.log()[before:]
        assert lines[0][0] == lake.table("t").summary["cdc.position"]
        return tuple(map(int, lines[0][1:]))

    assert commit("insert into t select g, 0 from generate_series(101, 130) g") == (30, 0, 1)
    assert commit("insert into t values (200, 0), (201, 0)", "delete from t where id <= 7",
                  "update t set v = 1 where id between 11 and 15") == (7, 12, 1)
    assert commit("insert into t values (300, 0)", "delete from t where id in (300, 20)") \
        == (0, 1, 0)
    assert database.rows("select count(*) from t") == [(100 + 30 + 2 - 7 - 1,)]
    assert commit("truncate t", "insert into t values (1, 1), (2, 2)") == (2, 124, 1)
    compare(database, lake, ["t", "other"])
    assert walberg.stop() == 0


def test_the_log_says_what_a_commit_in_pieces_brought(database, walberg, lake):
    """Larger than the memory of an epoch: a row of one piece is deleted in a later one."""
    database.execute("create table t (id int primary key, v text)")
    walberg.start(memory="64MB", commit__interval="3s").wait_streaming()
    with database.connect(autocommit=False) as conn:
        conn.execute("insert into t select g, repeat(md5(g::text), 20)"
                     " from generate_series(1, 60000) g")
        conn.execute("delete from t where id % 4 = 0")
        conn.commit()
    walberg.wait_caught_up()
    assert walberg.stop() == 0
    rows, deletes, files = map(int, re.search(
        r"committed table=public\.t position=\S+ rows=(\d+) deletes=(\d+) files=(\d+)",
        walberg.log()).groups())
    assert files == int(lake.table("t").summary["added-data-files"]) > 1
    assert rows == int(lake.table("t").summary["added-records"]) and rows - deletes == 45000
    compare(database, lake, ["t"])


def test_inheritance_parent_and_child_are_two_tables(database, walberg, lake):
    database.execute(
        "create table parent (id int primary key, v text)",
        "create table child (extra int, primary key (id)) inherits (parent)",
        "create table second (primary key (id)) inherits (parent)",
        "insert into parent select n, 'p' from generate_series(1, 20) n",
        "insert into child select n, 'c', n from generate_series(10, 30) n",
        "insert into second values (1, 's')")
    walberg.once()
    assert compare(database, lake, ["parent", "child", "second"]) == 20 + 21 + 1
    database.execute(
        "update parent set v = 'all' where id between 8 and 12",              # in all of them
        "update only parent set v = 'only' where id = 15", "delete from parent where id = 20",
        "insert into child values (40, 'new', 1)", "insert into parent values (40, 'new')",
        "truncate only second", "alter table parent add column w int",
        "insert into child values (41, 'new', 1, 2)", "update parent set w = 3 where id < 5")
    walberg.once()
    assert compare(database, lake, ["parent", "child", "second"]) == 20 + 22 + 0
    walberg.call("verify", *walberg.positional(), check=True)
    database.execute("insert into second values (2, 's', 2)", "truncate parent",
                     "insert into child values (1, 'after', 1, 1)")
    walberg.once()
    assert compare(database, lake, ["parent", "child", "second"]) == 1
    walberg.call("verify", *walberg.positional(), check=True)


def test_what_cannot_arrive_is_said_and_holds_up_nobody(database, walberg, lake, tmp_path):
    """By run itself, once each, also of one that comes later; and verify is content."""
    rows = tmp_path / "rows.csv"
    database.execute(
        "create extension file_fdw", "create server files foreign data wrapper file_fdw",
        f"create foreign table elsewhere (id int) server files options (filename '{rows}')",
        "create unlogged table fleeting (id int primary key)",
        "create table bare ()", "insert into bare default values",
        "create view seen as select 1",
        "create table t (id int primary key, twice int generated always as (id * 2) stored)",
        "create table loose (id int)", "insert into t values (1)")
    with database.connect() as conn:
        conn.execute("create temporary table passing (id int primary key)")
        conn.execute("insert into passing values (1)")
        walberg.start().wait_streaming()
        conn.execute("insert into passing values (2)")
        database.execute("insert into bare default values", "insert into fleeting values (1)",
                         "insert into t values (2)", "insert into loose values (1)",
                         "create unlogged table later (id int)", "create table new (id int)",
                         "insert into new values (1)")
        wait_for("a new table", lambda: lake.has("new"))
        walberg.wait_streaming()
        assert walberg.stop() == 0
    said = walberg.log()
    for name, reason in (("elsewhere", "a foreign table"), ("fleeting", "unlogged"),
                         ("bare", "no column of it arrives"), ("later", "unlogged")):
        assert said.count(f'warn table will not arrive table=public.{name} reason="{reason}') == 1
    assert 'warn column will not arrive table=public.t column=twice reason="' in said
    assert 'warn table has limits table=public.loose reason="no replica identity' in said
    assert "passing" not in said and "seen" not in said
    assert sorted(lake.tables()) == [("public", "loose"), ("public", "new"), ("public", "t")]
    compare(database, lake, ["t", "loose", "new"])
    walberg.call("verify", *walberg.positional(), check=True)
    database.execute("alter table bare add column id int", "insert into bare values (3)")
    walberg.once()                                # now it has a column
    assert compare(database, lake, ["bare", "t"]) == 3 + 2


def test_replica_identity_nothing_beside_a_primary_key(database, walberg, lake):
    """Inserts only, as Postgres itself has it; and what was refused comes when the identity is the
    key again."""
    database.execute("create table t (id int primary key, v text)",
                     "alter table t replica identity nothing",
                     "insert into t select n, 'old' from generate_series(1, 20) n")
    walberg.once()
    compare(database, lake, ["t"])
    for refused in ("update t set v = 'new' where id = 3", "delete from t where id = 4"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            database.execute(refused)
    database.execute("insert into t values (21, 'new')")
    walberg.once()
    compare(database, lake, ["t"])
    database.execute("alter table t replica identity default",
                     "update t set v = 'new' where id = 3", "delete from t where id = 4",
                     "insert into t values (22, 'new')")
    walberg.once()
    assert compare(database, lake, ["t"]) == 21


def test_key_of_the_settings_with_nulls_in_it(database, walberg, lake):
    """Columns that may be NULL: NULL is a value like any other to tell rows apart by."""
    keyed = {"tables.public.t.key": "[a, b]"}
    database.execute("create table t (a int, b text, v int)", "alter table t replica identity full",
                     "insert into t values (null, null, 0), (1, null, 0), (null, 'x', 0),"
                     " (1, 'x', 0), (2, '', 0), (2, null, 0), (null, '', 0)")
    walberg.once(**keyed)
    assert compare(database, lake, ["t"]) == 7
    database.execute("update t set v = 1 where a is null and b is null",
                     "update t set v = 1 where a = 1 and b is null",
                     "delete from t where a is null and b = 'x'",
                     "update t set a = 3 where a = 2 and b is null",       # to and from NULL
                     "update t set a = null, b = 'y' where a = 2 and b = ''",
                     "insert into t values (2, null, 2)")
    walberg.once(**keyed)
    assert compare(database, lake, ["t"]) == 7
    database.execute("delete from t where b is null", "insert into t values (null, null, 5)")
    walberg.once(**keyed)
    assert compare(database, lake, ["t"]) == 4
    walberg.call("verify", *walberg.positional(), check=True, **keyed)


def test_row_security_that_hides_rows_parks_the_table(database, walberg, lake):
    """Of a role that may not bypass it, and of an owner whom it is forced on; till that changes."""
    server = database.server
    role = f"guarded_{database.name}"[:60]
    server.execute("postgres", f"create role {role} login replication")
    try:
        make = ["create table {n} (id int primary key, v text)", "grant select on {n} to " + role,
                "insert into {n} select n, 'old' from generate_series(1, 10) n"]
        guard = ["alter table {n} enable row level security",
                 "create policy odd on {n} using (id % 2 = 1)"]
        for name, more in (("open", []), ("guarded", guard),
                           ("owned", [*guard, f"alter table owned owner to {role}"]),
                           ("forced", [*guard, f"alter table forced owner to {role}",
                                       "alter table forced force row level security"])):
            database.execute(*(line.format(n=name) for line in make + more))
        database.execute(f"create publication walberg_{database.name} for table open, guarded,"
                         " owned, forced")
        walberg.positional = lambda: [server.uri(database.name, role), walberg.storage.uri]
        done = walberg.call("run", "--once", *walberg.positional())
        assert done.returncode == 1 and "2 of 4 tables are parked" in done.stderr
        tables = {t["name"]: t for t in walberg.status()["tables"]}
        for name in ("guarded", "forced"):
            assert tables[f"public.{name}"]["state"] == "parked"
            assert "row security hides rows from our role" in tables[f"public.{name}"]["error"]
            assert not lake.has(name)
        compare(database, lake, ["open", "owned"])
        walberg.start()
        database.execute(*(f"update {n} set v = 'new' where id < 6" for n in tables),
                         "alter table forced no force row level security",
                         f"alter role {role} bypassrls")
        wait_for("both", lambda: {t["state"] for t in walberg.status()["tables"]} == {"streaming"})
        database.execute(*(f"delete from {n} where id > 7" for n in tables))
        walberg.wait_caught_up()
        assert walberg.stop() == 0
        assert compare(database, lake, ["open", "guarded", "owned", "forced"]) == 28
        walberg.call("verify", *walberg.positional(), check=True)
    finally:
        walberg.kill()
        with server.connect(database.name) as conn:
            conn.execute(f"drop owned by {role}")
            conn.execute(f"drop role {role}")


def test_another_name_in_the_lake(database, walberg, lake):
    """It stays the table's through a restart, a lost state folder, a rename in the source, a copy
    again, and until it is removed by either name."""
    settings = {"tables.public.t.name": "Things, all", "tables.*.u.name": "t"}
    lake_names = {"t": "Things, all", "u": "t"}
    database.execute("create table t (id int primary key, n numeric(6,2))",
                     "create table u (id int primary key, v text)",
                     "insert into t select n, n from generate_series(1, 20) n",
                     "insert into u select n, 'u' from generate_series(1, 10) n")
    walberg.once(**settings)
    compare(database, lake, lake_names, called=lake_names)
    database.execute("update t set n = 'NaN' where id = 1", "delete from u where id = 1")
    shutil.rmtree(walberg.folder / "state")
    walberg.once(**settings)
    compare(database, lake, lake_names, called=lake_names)
    _, rejects = READERS["duckdb"](lake.table("rejects", "_walberg"))
    assert [row[2:4] for row in rejects] == [("public", "t")], rejects

    walberg.start(**settings).wait_streaming()
    database.execute("alter table t rename to v", "insert into v values (21, 1)",
                     "alter table u rename to t", "insert into t values (11, 'u')")
    walberg.wait_caught_up()
    lake_names = {"v": "Things, all", "t": "t"}
    compare(database, lake, lake_names, called=lake_names)
    assert walberg.query('select count(*) from "Things, all"') == [(21,)]
    wait_for("the names", lambda: {t["name"] for t in walberg.status()["tables"]} == {
        "public.v", "public.t"}, 30)
    for table in (["v"], ["t"], []):
        walberg.call("verify", *walberg.positional(), *table, check=True, **settings)
    before = {name: lake.table(name).snapshot["snapshot-id"] for name in lake_names.values()}
    walberg.call("resync", *walberg.positional(), "v", check=True, **settings)
    walberg.wait_caught_up()
    compare(database, lake, lake_names, called=lake_names)
    assert lake.table("Things, all").snapshot["snapshot-id"] != before["Things, all"]
    assert lake.table("t").snapshot["snapshot-id"] == before["t"]
    assert walberg.stop() == 0
    status = {t["name"]: t["lake"] for t in walberg.status()["tables"]}
    assert status == {"public.v": "public.Things, all", "public.t": "public.t"}
    walberg.once(**settings)
    walberg.call("verify", *walberg.positional(), check=True, **settings)

    walberg.call("cleanup", "--yes", *walberg.positional(), "public.v", check=True, **settings)
    assert not lake.has("Things, all") and lake.has("t")
    walberg.once(**settings)                      # taken in afresh, under the name that it has now
    compare(database, lake, ["v", "t"])
    walberg.call("cleanup", "--all", "--yes", *walberg.positional(), check=True, **settings)
    assert lake.tables() == {}
