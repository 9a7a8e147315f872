"""What ALTER TABLE does to the source, the lake says the same: while walberg runs, while it is
down, and before or after the rows that show it."""
import pytest
from pyiceberg.table import StaticTable

from lib.env import wait_for
from lib.oracle import compare, is_equal

ROWS = "insert into t select n, n, 'b' || n from generate_series(1, 10) n"
TABLE = "create table t (id int primary key, a int, b text)"


def field_ids(lake, name="t"):
    return {field["name"]: field["id"] for field in lake.table(name).schema["fields"]}


class Running:
    """walberg streams all the time."""
    def __init__(self, walberg):
        self.walberg = walberg

    def begin(self):
        self.walberg.start()
        self.walberg.wait_caught_up()
        wait_for("the copy", lambda: all(t["state"] == "streaming"
                                         for t in self.walberg.status()["tables"]))

    def settle(self):
        self.walberg.wait_caught_up()


class Stopped:
    """walberg is down whenever something happens."""
    def __init__(self, walberg):
        self.walberg = walberg

    def begin(self):
        self.walberg.once()

    settle = begin


@pytest.fixture(params=[Running, Stopped], ids=["running", "stopped"])
def pipeline(request, walberg):
    return request.param(walberg)


def equal(database, lake, tables=("t",), seconds=40):
    """Some changes are only seen by looking: the lake is equal soon, not at once."""
    wait_for("lake and source to be equal", lambda: is_equal(database, lake, tables), seconds,
             pause=1)
    compare(database, lake, list(tables))


CHANGES = {
    "add": ["alter table t add column c numeric(8,2)"],
    "add with a default": ["alter table t add column c int default 7"],
    "add with a volatile default": ["alter table t add column c float8 default random()"],
    "add, then a default": ["alter table t add column c int",
                            "alter table t alter column c set default 5"],
    "add and forget the default": ["alter table t add column c int default 7",
                                   "alter table t alter column c drop default"],
    "add, compute, forget": ["alter table t add column c float8 default random()",
                             "alter table t alter column c drop default"],
    "drop": ["alter table t drop column a"],
    "drop and add again": ["alter table t drop column a", "alter table t add column a int"],
    "drop and add with another type": ["alter table t drop column a",
                                       "alter table t add column a text"],
    "rename": ["alter table t rename column a to aa"],
    "rename the key": ["alter table t rename column id to key"],
    "swap names": ["alter table t rename column a to x", "alter table t alter b type text",
                   "alter table t rename column b to a", "alter table t rename column x to b"],
    "widen int": ["alter table t alter column a type bigint"],
    "widen the key": ["alter table t alter column id type bigint"],
    "int to text": ["alter table t alter column a type text"],
    "text to int": ["alter table t alter column b type int using length(b)"],
    "same type, other values": ["alter table t alter column b type text using upper(b)"],
    "narrow": ["alter table t alter column a type smallint"],
    "varchar": ["alter table t alter column b type varchar(100)"],
    "not null": ["alter table t alter column a set not null"],
    "another key": ["alter table t drop constraint t_pkey", "alter table t add primary key (a)"],
    "a wider key": ["alter table t drop constraint t_pkey",
                    "alter table t add primary key (a, id)"],
    "identity full": ["alter table t replica identity full"],
    "rename the table": ["alter table t rename to u"],
    "three in one": ["alter table t add column c int, drop column b, alter column a type bigint"],
    "vacuum full": ["vacuum full t"],
    "enum": ["create type mood as enum ('sad', 'glad')",
             "alter table t add column m mood", "alter type mood add value 'mad'",
             "update t set m = 'sad' where id > 5",
             "alter type mood rename value 'sad' to 'blue'"],
    "generated no more": ["alter table t alter column b drop expression"],
    "composite": ["create type pair as (x int, y text)", "alter table t add column p pair"],
}


def table_for(change):
    if change != "generated no more":
        return TABLE, ROWS
    return (TABLE.replace("b text", "b text generated always as ('b' || a::text) stored"),
            "insert into t (id, a) select n, n from generate_series(1, 10) n")


@pytest.mark.parametrize("change", CHANGES)
def test_change_with_rows_after_it(change, pipeline, database, lake):
    database.execute(*table_for(change))
    pipeline.begin()
    database.execute("insert into t (id, a) values (11, 11)", *CHANGES[change])
    table = "u" if "to u" in CHANGES[change][-1] else "t"
    key = "key" if "key" in change and "rename" in change else "id"
    database.execute(f"insert into {table} ({key}) select 12"
                     if change not in ("not null", "another key", "a wider key")
                     else f"insert into {table} values (12, 12, 'x')",
                     f"delete from {table} where {key} = 1",
                     f"update {table} set {key} = 20 where {key} = 2")
    pipeline.settle()
    if table == "u":
        database.execute("create view t as select * from u")
    equal(database, lake)


def change_without_rows(change, pipeline, database, lake):
    """No row tells of it: the catalog does."""
    database.execute(*table_for(change))
    pipeline.begin()
    database.execute(*CHANGES[change])
    pipeline.settle()
    equal(database, lake)


@pytest.mark.parametrize("change", [c for c in CHANGES if c != "rename the table"])
def test_change_of_a_table_without_traffic(change, walberg, database, lake):
    change_without_rows(change, Stopped(walberg), database, lake)


# Each takes as long as it takes to look, and to hear that nothing came meanwhile.
@pytest.mark.parametrize("change", ["add with a default", "drop and add again", "rename",
                                    "same type, other values", "another key"])
def test_change_without_traffic_is_seen_while_running(change, walberg, database, lake):
    change_without_rows(change, Running(walberg), database, lake)


def test_rows_between_changes_of_one_transaction(pipeline, database, lake):
    database.execute(TABLE, ROWS)
    pipeline.begin()
    with database.connect(autocommit=False) as conn:
        for sql in ("insert into t values (11, 11, 'x')", "alter table t add column c int",
                    "update t set c = id where id < 4", "alter table t rename column c to d",
                    "insert into t values (12, 12, 'y', 12)", "alter table t drop column a",
                    "delete from t where id = 5", "alter table t rename column b to a",
                    "insert into t values (13, 'z', 13)", "update t set id = id + 100"):
            conn.execute(sql)
        conn.commit()
    pipeline.settle()
    equal(database, lake)


def test_change_after_the_last_row(database, walberg, lake):
    """The catalog tells of it; what comes after the last row is a transaction of nothing."""
    database.execute(TABLE, ROWS)
    walberg.once()
    database.execute("begin; update t set b = 'x'; alter table t rename column b to c; commit",
                     "begin; savepoint s; update t set c = 'y'; rollback to s; commit")
    walberg.once()
    equal(database, lake, seconds=0)


def test_many_changes_while_down(database, walberg, lake):
    """Each with rows: on its way the stream meets every shape, the catalog only has the last."""
    database.execute(TABLE, ROWS)
    walberg.once()
    database.execute("alter table t add column c int", "insert into t values (11, 1, 'x', 1)",
                     "alter table t rename column c to d", "insert into t values (12, 1, 'x', 2)",
                     "alter table t drop column d", "insert into t values (13, 1, 'x')",
                     "alter table t add column d text", "insert into t values (14, 1, 'x', 'd')",
                     "alter table t rename column a to c", "update t set c = 0 where id < 3",
                     "alter table t alter column c type bigint",
                     "update t set c = 9e18 where id = 4",
                     "truncate t", "insert into t values (1, 1, 'again', 'e')")
    walberg.once()
    equal(database, lake)


# Attnums 3 and 4 are made while nobody looks: whose value is third in a row is in no message.
WHILE_DOWN = {
    "renamed, its name given away": ["alter table t rename a to c", "alter table t add a int"],
    "renamed twice, the other dropped": ["alter table t rename a to c", "alter table t add a int",
                                         "alter table t drop c"],
    "dropped and made again": ["alter table t drop a", "alter table t add a int"],
    "dropped, another has its place": ["alter table t drop b", "alter table t rename a to b",
                                       "alter table t add a int"],
    "an old one gets the name and goes": ["alter table t drop a", "alter table t rename b to a",
                                          "insert into t (id, a) values (13, 300)",
                                          "alter table t drop a", "alter table t add a int"],
}


@pytest.mark.parametrize("change", WHILE_DOWN)
def test_values_land_where_they_were(change, database, walberg, lake):
    database.execute("create table t (id int primary key, b int)", "insert into t values (1, 1)")
    walberg.once()
    database.execute("alter table t add a int", "insert into t (id, b, a) values (11, 11, 100)",
                     *WHILE_DOWN[change], "insert into t (id, a) values (12, 200)")
    walberg.once()
    equal(database, lake)


def test_what_was_dropped_before_costs_no_copy(database, walberg, lake):
    database.execute(TABLE, ROWS)
    walberg.once()
    database.execute("alter table t drop b", "insert into t values (11, 1)")
    walberg.once()
    database.execute("alter table t add c int", "insert into t values (12, 1, 2)")
    walberg.once()
    equal(database, lake)
    assert "copied again" not in walberg.log()


@pytest.mark.parametrize("change", ["add column c int", "add column c int, drop column d"])
def test_rows_of_the_old_shape_are_spelled_as_ever(change, database, walberg, lake):
    """What the lake tells of its columns does not say how Postgres spells their values."""
    row = "(%s, '$1.50', '{1,NULL}', '{(1,1),(0,0);(3,3),(2,2)}', '{\"k\": 1}', '{{1,2},{3,4}}')"
    database.execute("create table t (id int primary key, m money, a int[], b box[], j jsonb,"
                     " d int[][])", "insert into t values " + row.replace("%s", "1"))
    walberg.once()
    database.execute("insert into t values " + row.replace("%s", "2"),
                     f"alter table t {change}",
                     "insert into t (id, m, c) values (3, 3, 3)")
    walberg.once()
    equal(database, lake)
    assert not lake.has("rejects", "_walberg")


def test_field_ids_are_never_used_again(database, walberg, lake):
    database.execute(TABLE, ROWS)
    walberg.once()
    first = field_ids(lake)
    database.execute("alter table t drop column b", "update t set a = 0 where id = 1")
    walberg.once()
    database.execute("alter table t add column b text", "update t set b = 'new' where id = 1")
    walberg.once()
    ids = field_ids(lake)
    assert ids["id"] == first["id"] and ids["a"] == first["a"]
    assert ids["b"] not in first.values()
    equal(database, lake)


def test_renamed_and_back_while_away(walberg, database, lake):
    """The catalog is as it was; the last row that comes is of another shape."""
    database.execute("create table t (id int primary key, v text)", "insert into t values (1, 'a')")
    walberg.once()
    database.execute("alter table t rename v to w", "insert into t values (2, 'b')",
                     "alter table t rename w to v", "insert into t values (3, 'c')",
                     "alter table t rename v to x", "insert into t values (4, 'd')",
                     "alter table t rename x to v")
    walberg.once()
    compare(database, lake, ["t"])


def test_a_rename_keeps_the_field_and_no_file(database, walberg, lake):
    """In place: nothing is written anew."""
    database.execute(TABLE, ROWS)
    walberg.once()
    before = lake.table("t")
    database.execute("alter table t rename column a to z", "insert into t values (11, 1, 'x')")
    walberg.once()
    after = lake.table("t")
    assert field_ids(lake)["z"] == {f["name"]: f["id"] for f in before.schema["fields"]}["a"]
    assert after.summary["added-data-files"] == "1"
    assert "deleted-data-files" not in after.summary


def test_time_travel_reads_the_old_shape(database, walberg, lake):
    database.execute(TABLE, ROWS)
    walberg.once()
    old = lake.table("t").snapshot["snapshot-id"]
    database.execute("alter table t drop column b", "alter table t rename column a to z",
                     "insert into t values (11, 1)")
    walberg.once()
    table = StaticTable.from_metadata(lake.table("t").uri)
    then = table.scan(snapshot_id=old).to_arrow()
    assert then.column_names == ["id", "a", "b"] and then.num_rows == 10
    assert table.scan().to_arrow().column_names == ["id", "z"]


def test_defaults_may_be_left_out(database, walberg, lake):
    database.execute(TABLE, ROWS)
    walberg.once()
    database.execute("alter table t add column c int default 7",
                     "insert into t values (11, 1, 'x')")
    walberg.once(on_add_default="ignore")
    rows = walberg.call("sql", "--format", "csv", walberg.storage.uri,
                        "select count(*), count(c) from t").stdout.split()
    assert rows[-1] == "11,1"


FOUND_BY = {"the whole row": ["alter table t replica identity full"],
            "the key": ["alter table t add primary key (id)",
                        "alter table t drop constraint t_pkey, add primary key (id, c)"]}


@pytest.mark.parametrize("key", FOUND_BY)
def test_a_default_that_finds_rows_is_not_left_out(key, database, walberg, lake):
    """Old tuples have it, so a row that reads NULL would stay for ever."""
    first, *then = FOUND_BY[key]
    database.execute("create table t (id int)", first,
                     "insert into t select generate_series(1, 5)")
    walberg.once(on_add_default="ignore")
    database.execute("alter table t add column c int default 5", *then,
                     "delete from t where id = 1", "update t set id = 20 where id = 2")
    walberg.once(on_add_default="ignore")
    equal(database, lake)


def test_a_table_that_is_copied_again_stays_readable(database, walberg, lake):
    """Until one commit replaces its rows."""
    database.execute(TABLE, ROWS)
    Running(walberg).begin()
    before = lake.table("t").snapshot["snapshot-id"]
    database.execute("alter table t alter column a type text using 'a' || a",
                     "insert into t values (11, 'x', 'y')")
    equal(database, lake)
    assert walberg.query("select count(*) from t where a like 'a%'") == [(10,)]
    assert any(s["snapshot-id"] == before for s in lake.table("t").metadata["snapshots"])
    assert "to be copied again" in walberg.log()


def test_composite_gets_an_attribute(pipeline, database, lake):
    database.execute("create type pair as (x int, y text)",
                     "create table t (id int primary key, p pair)",
                     "insert into t values (1, row(1, 'a'))")
    pipeline.begin()
    database.execute("alter type pair add attribute z int",
                     "insert into t values (2, row(2, 'b', 3))",
                     "update t set p.z = 4 where id = 1")
    pipeline.settle()
    equal(database, lake)


# The values that hold a label, and what they are written as; "full" has no key.
LABELS = {"key": ("mood", "'ok'"), "array": ("mood[]", "'{ok,bad}'"),
          "domain": ("temper", "'ok'"), "composite": ("state", "'(1,ok)'"),
          "range": ("span", "'[ok,bad]'"), "full": ("mood", "'ok'")}


def table_with_labels(holder, database):
    kind, value = LABELS[holder]
    database.execute("create type mood as enum ('ok', 'bad')", "create domain temper as mood",
                     "create type state as (n int, m mood)",
                     "create type span as range (subtype = mood)",
                     f"create table t (id int, m {kind}, v text)",
                     {"key": "alter table t add primary key (id, m)",
                      "full": "alter table t replica identity full"}
                     .get(holder, "alter table t add primary key (id)"),
                     f"insert into t select n, {value}, 'a' from generate_series(1, 6) n")


@pytest.mark.parametrize("traffic", [True, False], ids=["rows", "no rows"])
@pytest.mark.parametrize("holder", LABELS)
def test_enum_label_is_renamed(holder, traffic, pipeline, database, lake):
    """Every old row reads otherwise, and is found by another key."""
    table_with_labels(holder, database)
    pipeline.begin()
    database.execute("alter type mood rename value 'ok' to 'fine'")
    if traffic:
        database.execute("update t set v = 'b' where id = 1", "delete from t where id = 2")
    pipeline.settle()
    equal(database, lake)
    database.execute("update t set v = 'c' where id < 4", "delete from t where id = 5")
    pipeline.settle()
    equal(database, lake)


def test_enum_label_is_renamed_and_back(pipeline, database, lake):
    """The row in between was sent with the label of that moment."""
    table_with_labels("key", database)
    pipeline.begin()
    database.execute("alter type mood rename value 'ok' to 'fine'",
                     "insert into t values (7, 'fine', 'a')",
                     "alter type mood rename value 'fine' to 'ok'")
    pipeline.settle()
    equal(database, lake)


def test_enum_that_only_grows_costs_no_copy(walberg, database, lake):
    table_with_labels("key", database)
    walberg.once()
    database.execute("alter type mood add value 'fair' before 'bad'",
                     "insert into t values (7, 'fair', 'a')")
    walberg.once()
    equal(database, lake)
    assert "copied again" not in walberg.log()


ATTRIBUTES = {"renamed": ["rename attribute x to z"],
              "renamed and back": ["rename attribute x to z", "rename attribute z to x"],
              "swapped": ["rename attribute x to z", "rename attribute y to x",
                          "rename attribute z to y"],
              "dropped and added again": ["drop attribute y", "add attribute y int"],
              "dropped": ["drop attribute x"]}


@pytest.mark.parametrize("change", ATTRIBUTES)
def test_attributes_of_a_composite_change(change, pipeline, database, lake):
    database.execute("create type pair as (x int, y int)",
                     "create table t (id int primary key, p pair)",
                     "insert into t select n, format('(%s,%s)', n, 10 * n)::pair"
                     " from generate_series(1, 5) n")
    pipeline.begin()
    database.execute(*(f"alter type pair {step}" for step in ATTRIBUTES[change]),
                     "update t set id = 6 where id = 1")
    pipeline.settle()
    equal(database, lake)


def test_partitioned_table_changes_shape(pipeline, database, lake):
    database.execute("create table t (id int, a int, b text, primary key (id, a))"
                     " partition by range (a)",
                     "create table t1 partition of t for values from (0) to (10)",
                     "create table t2 partition of t for values from (10) to (100)", ROWS)
    pipeline.begin()
    database.execute("alter table t add column c int", "insert into t values (20, 20, 'x', 1)",
                     "alter table t rename column b to bb", "update t set bb = 'y' where id < 3",
                     "alter table t drop column c", "delete from t where id = 4")
    pipeline.settle()
    equal(database, lake)


@pytest.mark.parametrize("default", ["7", "random()::int"], ids=["constant", "volatile"])
def test_partitioned_table_gets_a_default(default, pipeline, database, lake):
    """Only the partitions tell that old rows have it."""
    database.execute("create table t (id int, a int, b text, primary key (id, a))"
                     " partition by range (a)",
                     "create table t1 partition of t for values from (0) to (5)",
                     "create table t2 partition of t for values from (5) to (100)"
                     " partition by range (a)",
                     "create table t21 partition of t2 for values from (5) to (100)", ROWS)
    pipeline.begin()
    database.execute(f"alter table t add column c int default {default}",
                     "insert into t values (20, 20, 'x', 1)")
    pipeline.settle()
    equal(database, lake)
