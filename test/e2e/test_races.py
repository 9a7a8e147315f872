"""Changes that come at an unlucky moment: between a look at the catalog and the stream, between the
plan of a copy and its COPY, while walberg is down."""
import contextlib
import signal
import time

import pytest
from test_copy import copying, create
from test_schema_changes import equal

from lib.env import wait_for
from lib.oracle import compare, is_equal

TABLE = ("create table t (id int primary key, a text, b text)",
         "insert into t values (1, 'a1', 'b1')")
SWAP = ("alter table {0} rename a to x", "alter table {0} rename b to a",
        "alter table {0} rename x to b")


def start(walberg, **settings):
    walberg.start(**settings)
    walberg.wait_streaming()


def test_a_look_is_overtaken_by_the_stream(database, walberg, lake):
    """What the catalog said is applied late, and is old by then: the newer shape stays."""
    database.execute(*TABLE)
    start(walberg, commit__interval="2s")
    for n in range(4):
        database.execute(f"alter table t add column c{n} int")
        database.execute("select pg_sleep(5.2)", f"alter table t add column d{n} int",
                         f"insert into t (id, d{n}) values ({n + 10}, {n})")
    equal(database, lake)


def test_a_parked_table_with_another_shape_is_not_moved_forward(database, walberg, lake):
    database.execute("create table t (id int primary key, n numeric(4,2))",
                     "create table other (id int primary key)", "insert into t values (1, 1)")
    walberg.once()
    database.execute("insert into t values (2, 'NaN')")
    assert walberg.call("run", "--once", *walberg.positional(), on_reject="park").returncode == 1
    database.execute("insert into t values (3, 3)", "alter table t add column c int",
                     "insert into t values (4, 4, 4)", "insert into other values (1)")
    assert walberg.call("run", "--once", *walberg.positional(), on_reject="park").returncode == 1
    database.execute("update t set n = 2 where id = 2")
    walberg.once()
    walberg.once()
    compare(database, lake, ["t", "other"])


def test_names_are_swapped_and_swapped_back_while_down(database, walberg, lake):
    database.execute(*TABLE)
    walberg.once()
    swap = [sql.format("t") for sql in SWAP]
    database.execute(*swap, "insert into t (id, a, b) values (2, 'AYE', 'BEE')", *swap,
                     "insert into t (id, a, b) values (3, 'a3', 'b3')")
    walberg.once()
    compare(database, lake, ["t"])


@contextlib.contextmanager
def failing_questions(database):
    """format_type() meets a function that is gone, as it does when DDL commits at the same moment:
    "cache lookup failed for function"."""
    change = "update pg_type set typmodout = {} where oid = 'varchar'::regtype"
    database.execute(change.format("999999"))
    yield
    database.execute(change.format("'varchartypmodout'::regproc"))


def test_a_question_that_fails_is_asked_again_while_it_streams(database, walberg, lake):
    database.execute("create table t (id int primary key, v varchar(10))")
    start(walberg)
    with failing_questions(database):
        database.execute("create table later (id int primary key)", "insert into later values (1)")
        walberg.wait_for_log("cannot look for new tables")
        database.execute("insert into t values (1, 'x')")
        walberg.wait_caught_up()
        # its columns have to be asked for
        database.execute("alter table t add column w varchar(10)",
                         "insert into t values (2, 'y', 'z')")
        walberg.wait_for_log("the stream was interrupted")
    wait_for("the new table", lambda: is_equal(database, lake, ["t", "later"]), 60)


def test_a_question_that_fails_at_the_start_is_asked_again(database, walberg, lake):
    database.execute("create table t (id int primary key, v varchar(10))",
                     "insert into t values (1, 'x')")
    with failing_questions(database):
        walberg.start()
        walberg.wait_for_log("cannot read the tables of the source.*cache lookup failed")
    walberg.wait_streaming()
    compare(database, lake, ["t"])


def test_identity_full_loses_its_key(database, walberg, lake):
    """Rows that were told apart by it may be twins from now on."""
    database.execute(*TABLE, "alter table t replica identity full")
    start(walberg)
    database.execute("insert into t values (2, 'x', 'y')")
    walberg.wait_caught_up()
    database.execute("alter table t drop constraint t_pkey",
                     "insert into t values (7, 'x', null), (7, 'y', null)",
                     "insert into t values (7, 'x', null)", "delete from t where a = 'y'")
    equal(database, lake)


def test_another_table_takes_the_name_while_a_copy_waits(database, walberg, lake):
    create(database, "a")
    database.execute("create table b (id int primary key)", "insert into b values (1), (2)")
    walberg.start(copy__workers=1)
    copying(database)
    database.execute("alter table b rename to b_old", "create table b (id int primary key)",
                     "insert into b values (3)", "create view v as select * from b_old")
    wait_for("b to be copied", lambda: "copied table=public.b" in walberg.log(), 60)
    walberg.wait_streaming()
    rows = walberg.query("select id from b order by id")
    assert rows == [(1,), (2,)]


def test_columns_swap_names_while_a_copy_waits(database, walberg, lake):
    create(database, "a0")
    database.execute(*TABLE)
    walberg.start(copy__workers=1)
    copying(database)
    database.execute(*[sql.format("t") for sql in SWAP])
    wait_for("t to be copied", lambda: "copied table=public.t" in walberg.log(), 60)
    walberg.wait_streaming()
    equal(database, lake)


def test_a_renamed_table_and_one_that_took_its_name(database, walberg, lake):
    """The lake's table goes with the one that it was filled from."""
    database.execute(*TABLE)
    walberg.once()
    database.execute("alter table t rename to t_old", "create table t (id int primary key)",
                     "insert into t_old values (2, 'a', 'b')", "insert into t values (1)")
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1
    states = {t["name"]: t for t in walberg.status()["tables"]}
    assert states["public.t_old"]["state"] == "streaming"
    assert states["public.t"]["state"] == "parked"
    assert "public.t_old" in states["public.t"]["error"]
    assert walberg.call("sql", "--format", "csv", walberg.storage.uri,
                        "select count(*) from t").stdout.split()[-1] == "2"


REPLACED = "begin; drop table t; alter table t_new rename to t; commit"


def test_a_table_is_replaced_while_its_copy_waits(database, walberg, lake):
    """By another one that waits: neither gets the rows of the other, nor its own twice."""
    create(database, "a0")
    database.execute("create table t (id int primary key)", "insert into t values (1)",
                     "create table t_new (id int primary key)", "insert into t_new values (2), (3)")
    walberg.start(copy__workers=1)
    copying(database)
    database.execute(REPLACED)
    wait_for("both to be settled", lambda: "parked table=public.t " in walberg.log()
             and "copied table=public.t " in walberg.log(), 60)
    database.execute("insert into t values (4)")
    walberg.wait_caught_up()
    compare(database, lake, ["t"], called={"t": "t_new"})
    assert walberg.stop() == 0
    database.execute("insert into t values (5)")
    walberg.call("run", "--once", *walberg.positional())
    compare(database, lake, ["t"], called={"t": "t_new"})
    assert not lake.table("t").metadata.get("snapshots")


def test_a_table_is_replaced_and_copied_again(database, walberg, lake):
    """The one that has the name now, not the one that was dropped."""
    database.execute("create table t (id int primary key)", "insert into t values (1)",
                     "create table t_new (id int primary key)", "insert into t_new values (2), (3)")
    start(walberg)
    database.execute(REPLACED)
    wait_for("both to be known", lambda: sorted(
        (t["name"], t["lake"], t["state"]) for t in walberg.status()["tables"]) == [
            ("public.t", "public.t", "dropped"), ("public.t", "public.t_new", "streaming")], 30)
    copied = walberg.log().count("copied table=")
    assert walberg.call("resync", *walberg.positional(), "t").returncode == 0
    assert walberg.log().count("copied table=") == copied + 1
    database.execute("insert into t values (4)")
    walberg.wait_caught_up()
    compare(database, lake, ["t"], called={"t": "t_new"})
    assert lake.table("t").position < lake.table("t_new").position


def test_a_table_that_is_a_type_is_altered(database, walberg, lake):
    """Its catalog rows are written anew, and no value of it changes: nothing is copied for that."""
    database.execute("create table kind (x int, y text)",
                     "create table t (id int primary key, k kind)",
                     "insert into t values (1, row(1, 'a'))")
    walberg.once()
    copies = walberg.log().count("copied table=")
    database.execute("alter table kind alter x set statistics 10",
                     "alter table kind alter y set default 'b'",
                     "grant select (x) on kind to public", "insert into t values (2, row(2, 'b'))")
    walberg.once()
    assert walberg.log().count("copied table=") == copies
    compare(database, lake, ["t", "kind"])


@pytest.mark.parametrize("running", [True, False], ids=["running", "at_start"])
def test_a_new_table_takes_the_second_name_of_another(running, database, walberg, lake):
    """Both are known from then on, each by what it is called in the lake."""
    database.execute("create table t (id int primary key)", "insert into t values (1)")
    walberg.once()
    database.execute("alter table t rename to m")
    walberg.once()
    if running:
        start(walberg)
    database.execute("alter table m rename to x", "create table m (id int primary key)",
                     "insert into m values (7)")
    if running:
        wait_for("m to be copied", lambda: "copied table=public.m" in walberg.log(), 60)
        assert walberg.stop() == 0
    walberg.once()
    database.execute("insert into x values (2)", "insert into m values (8)")
    start(walberg)
    walberg.wait_caught_up()
    assert sorted(walberg.query("select id from m")) == [(7,), (8,)]
    assert sorted(walberg.query("select id from t")) == [(1,), (2,)]
    assert not lake.has("x")


def test_columns_that_change_between_the_slot_and_the_copy(database, walberg, lake):
    """The slot's own snapshot is older than what is read of the table before it is copied."""
    database.execute(*(f"create table f{n} (id int primary key)" for n in range(60)),
                     "create table t (id int primary key, a text)")
    walberg.start()
    wait_for("the slot", lambda: "slot made" in walberg.log(), pause=0.002)
    walberg.process.send_signal(signal.SIGSTOP)
    database.execute("insert into t values (1, 'x')",
                     "alter table t drop column a, add column b text",
                     "insert into t values (2, 'y')")
    walberg.process.send_signal(signal.SIGCONT)
    wait_for("the lake to be equal", lambda: lake.has("t") and is_equal(database, lake, ["t"]), 60,
             pause=1)
    compare(database, lake, ["t"])


def test_a_look_that_is_overtaken_while_it_looks(database, walberg, lake):
    """A look that waits for a lock (to print a row filter) has seen one column, the stream two."""
    name = f"walberg_{database.name}"
    database.execute("create table t (id int primary key)", "create table x (id int primary key)",
                     f"create publication {name} for table t, x where (id > 0)"
                     " with (publish_via_partition_root)")
    walberg.settings["source.publication"] = name
    walberg.start()
    walberg.wait_streaming()
    database.execute("insert into t values (1)")
    walberg.wait_caught_up()
    with database.connect() as conn:
        conn.execute("begin")
        conn.execute("lock table x in access exclusive mode")
        database.execute("alter table t add column c int")
        wait_for("a look that waits", lambda: database.rows(
            "select 1 from pg_locks where not granted and relation = 'x'::regclass"), 30, 0.02)
        database.execute("alter table t add column d int", "insert into t (id, d) values (50, 5)")
        time.sleep(1)
        conn.execute("rollback")
    for number in range(20):
        database.execute(f"insert into x values ({number + 1})")
        time.sleep(0.3)
    wait_for("the lake to be equal", lambda: is_equal(database, lake, ["t"]), 30, pause=1)
    database.execute("insert into t (id, d) values (51, 6)")
    walberg.wait_caught_up()
    compare(database, lake, ["t"])
