"""Partitions that are dropped, detached, attached, truncated alone: Postgres sends nothing of it,
and the lake is as the source all the same."""
import pytest

from lib.env import wait_for
from lib.oracle import compare, is_equal

TABLE = ("create table t (id int, v text, primary key (id)) partition by range (id)",
         "create table t_1 partition of t for values from (0) to (100)",
         "create table t_2 partition of t for values from (100) to (200) partition by range (id)",
         "create table t_21 partition of t_2 for values from (100) to (150)",
         "create table t_22 partition of t_2 for values from (150) to (200)",
         "create table other (id int primary key)",
         "insert into t select n, 'v' || n from generate_series(0, 199) n")
NEW = "create table n (like t including all)"
FILL = "insert into n select n, 'new' from generate_series(200, 250) n"
ATTACH = "alter table t attach partition n for values from (200) to (300)"

COPIED = {
    "drop": ["drop table t_1"],
    "detach": ["alter table t detach partition t_1"],
    "detach a subtree": ["alter table t detach partition t_2"],
    "attach with rows": [NEW, FILL, ATTACH],
    "attach with rows, in one transaction": [f"do $$ begin {NEW}; {FILL}; {ATTACH}; end $$"],
    "truncate one": ["truncate t_21"],
    "truncate one that is written again": ["truncate t_21", "insert into t values (101, 'again')"],
    "truncate one that is analyzed": ["truncate t_1", "insert into t select n, 're' from"
                                      " generate_series(0, 40) n", "analyze t_1"],
    "vacuum full, which looks the same": ["vacuum full t_1"],
    "detach, change, attach": [
        "do $$ begin alter table t detach partition t_1; delete from t_1 where id < 50;"
        " alter table t attach partition t_1 for values from (0) to (100); end $$"],
    "truncate all": ["truncate t", "insert into t values (1, 'again'), (101, 'again')"],
    "exchange": ["alter table t detach partition t_1", NEW,
                 "insert into n select n, 'exchanged' from generate_series(0, 50) n",
                 "alter table t attach partition n for values from (0) to (100)"],
}
FOLLOWED = {
    "create and fill": ["create table t_3 partition of t for values from (200) to (300)",
                        "insert into t select n, 'new' from generate_series(200, 250) n"],
    "attach one that is empty": [NEW, ATTACH],
    "attach one in a transaction": [f"do $$ begin {NEW}; {ATTACH}; end $$"],
}


def copies(walberg):
    return walberg.log().count("to be copied again")


def moved(database, lake):
    """Rows of both kinds come through: the stream went on."""
    database.execute("insert into other select coalesce(max(id), 0) + 1 from other",
                     "update t set v = v || '!' where id % 3 = 0")
    wait_for("lake and source to be equal", lambda: is_equal(database, lake, ["t", "other"]), 60)
    compare(database, lake, ["t", "other"])


@pytest.mark.parametrize("change", {**COPIED, **FOLLOWED})
def test_while_it_runs(change, database, walberg, lake):
    database.execute(*TABLE)
    walberg.start()
    walberg.wait_streaming()
    database.execute(*{**COPIED, **FOLLOWED}[change])
    moved(database, lake)
    if change in FOLLOWED or is_seen_by_looking_only(change):
        wait_for("the catalog to be looked at", lambda: looked(walberg, database))
        moved(database, lake)
    assert copies(walberg) == (change in COPIED), walberg.log()


def is_seen_by_looking_only(change):
    """The lake is equal before, because the stream has the rest or there is nothing else."""
    return change in ("truncate all", "vacuum full, which looks the same")


def looked(walberg, database):
    """A later change of the catalog has been seen."""
    if not database.rows("select to_regclass('later')")[0][0]:
        database.execute("create table later (id int primary key)")
    return any(t["name"] == "public.later" for t in walberg.status()["tables"])


@pytest.mark.parametrize("change", {**COPIED, **FOLLOWED})
def test_while_it_is_down(change, database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    database.execute(*{**COPIED, **FOLLOWED}[change], "vacuum analyze")
    walberg.once()
    compare(database, lake, ["t"])
    assert copies(walberg) == (change in COPIED), walberg.log()
    walberg.once()
    moved_once(database, walberg, lake)
    assert copies(walberg) == (change in COPIED), walberg.log()


def moved_once(database, walberg, lake):
    database.execute("update t set v = v || '!' where id % 3 = 0")
    walberg.once()
    compare(database, lake, ["t"])


def test_ignored_when_told_so(database, walberg, lake):
    """A lake that keeps what the source throws away."""
    database.execute(*TABLE)
    walberg.once(on_partition_change="ignore")
    database.execute("drop table t_1", "insert into t values (199, 'x') on conflict do nothing")
    walberg.once(on_partition_change="ignore")
    assert "the lake's rows stay as they were" in walberg.log() and copies(walberg) == 0
    from lib.readers import READERS
    assert len(READERS["duckdb"](lake.table("t"))[1]) == 200
