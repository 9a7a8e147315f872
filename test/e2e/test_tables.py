"""Tables of every kind: keys, no keys, twins, truncates, partitions, odd names, late comers."""
import re

import pytest

from lib.env import wait_for
from lib.oracle import compare

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
