"""A transaction much larger than the memory it is given, and what it may not cost."""
import pytest

from lib.env import wait_for
from lib.oracle import compare

MB = 1024 * 1024
ROWS = 400000                                     # about 200 MB as text, 3 times the budget


def big_insert(database):
    database.execute("create table t (id int primary key, a text, b text, n numeric(12,2))")
    return (f"insert into t select n, md5(n::text) || repeat('a', 200), repeat(md5(n::text), 7),"
            f" n / 4.0 from generate_series(1, {ROWS}) n")


@pytest.fixture(params=["[]", "[b, 'n desc']"], ids=["unsorted", "sorted"])
def sort(request, walberg):
    walberg.settings["tables.public.t.sort"] = request.param


@pytest.mark.usefixtures("sort")
def test_large_transaction_spills_and_appears_at_once(database, walberg, lake):
    statement = big_insert(database)
    walberg.start(memory="64MB")
    walberg.wait_caught_up()
    before = walberg.resident_bytes()
    with database.connect(autocommit=False) as conn:
        conn.execute(statement)
        conn.execute("update t set n = -1 where id % 10 = 0")
        conn.execute("delete from t where id % 100 = 1")
        conn.commit()
    seen = set()

    def complete():
        seen.add(int(lake.table("t").summary.get("total-records", 0)) if lake.has("t") else 0)
        return len(seen) > 1
    wait_for("the transaction", complete, 180)
    walberg.wait_caught_up(180)
    assert len(seen) == 2, f"half a transaction was visible: {seen}"
    # 256 MB is the promise with the default budget; 64 MB of it are asked for here.
    assert walberg.resident_bytes() - before < 256 * MB
    compare(database, lake, ["t"], readers=["duckdb", "pyiceberg"])


@pytest.mark.usefixtures("sort")
def test_values_that_were_not_sent_are_bounded_too(database, walberg, lake):
    """An update that leaves TOAST alone is a few bytes in the stream, and 40 kB a row to write."""
    database.execute("create table t (id int primary key, n int, b text, v int, big text)",
                     "alter table t alter big set storage external",
                     "insert into t select n, n, md5(n::text), n, repeat(md5(n::text), 1250)"
                     " from generate_series(1, 12000) n")
    walberg.once()
    walberg.start()
    walberg.wait_caught_up()
    before = walberg.resident_bytes()
    database.execute("update t set v = v + 1")
    walberg.wait_caught_up(180)
    assert walberg.resident_bytes() - before < 256 * MB
    compare(database, lake, ["t"], readers=["duckdb", "pyiceberg"])


def test_copy_in_bounded_memory(database, walberg, lake):
    database.execute(big_insert(database))
    walberg.start()
    walberg.wait_caught_up(180)
    wait_for("copy", lambda: lake.has("t") and lake.table("t").position, 180)
    assert walberg.resident_bytes() < 512 * MB
    compare(database, lake, ["t"], readers=["duckdb"])


def test_rolled_back_transaction_leaves_nothing(database, walberg, lake):
    statement = big_insert(database)
    walberg.once()
    with database.connect(autocommit=False) as conn:
        conn.execute(statement)
        conn.rollback()
    database.execute("insert into t values (1, 'a', 'b', 1)")
    walberg.once()
    assert compare(database, lake, ["t"]) == 1
