"""One table from end to end: copied, changed, committed, read by three strangers and by psql."""
import json
import pathlib
import shutil
import socket
import subprocess

import psycopg
import pytest

from lib.env import listening, wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.walberg import Walberg

TABLE = """create table orders (
    id bigint generated always as identity primary key, customer int not null,
    note text, total numeric(12,2), at timestamptz not null default now())"""


def fill(database, rows):
    database.execute(f"""insert into orders (customer, note, total)
                         select n %% 10, 'order ' || n, n * 1.25
                           from generate_series(1, {rows}) n""".replace("%%", "%"))


def psql(walberg, sql):
    done = subprocess.run(["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p",
                           str(walberg.query_port), "-U", "anybody", "-d", walberg.database.name,
                           "-c", sql], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_once_copies_streams_and_exits(database, storage, tmp_path):
    walberg = Walberg(database, storage, tmp_path)
    lake = Lake(storage)
    database.execute(TABLE)
    fill(database, 1000)
    walberg.once()
    assert compare(database, lake, ["orders"]) == 1000

    fill(database, 10)
    database.execute("update orders set note = 'changed' where id % 7 = 0",
                     "update orders set note = null, total = -0.01 where id = 1000",
                     "delete from orders where id between 100 and 120",
                     "update orders set customer = -1 where id = 1010")
    walberg.once()
    assert compare(database, lake, ["orders"]) == 989

    summary = lake.table("orders").summary
    assert summary["engine-name"] == "walberg"
    assert summary["cdc.pipeline"] == database.name
    assert summary["cdc.position"] == lake.table("orders").position


def test_history_is_kept_as_long_as_the_settings_say(database, walberg, lake):
    database.execute("create table t (id int primary key)")
    walberg.once(history__hourly="0s")

    def kept_after(ids, **settings):
        for number in ids:
            database.execute(f"insert into t values ({number})")
            walberg.once(history__hourly="0s", **settings)
        assert compare(database, lake, ["t"]) == ids[-1]
        return len(lake.table("t").metadata["snapshots"])

    assert kept_after(range(1, 12)) == 12
    assert kept_after([12], history__all="0s") == 10            # so many stay in any case
    assert kept_after([13, 14]) == 12


def test_once_with_nothing_new_writes_no_snapshot(database, walberg, lake):
    database.execute(TABLE)
    fill(database, 5)
    walberg.once()
    before = lake.table("orders").snapshot["snapshot-id"]
    walberg.once()
    assert lake.table("orders").snapshot["snapshot-id"] == before


def test_stream_is_seen_by_readers_and_psql(database, walberg, lake):
    database.execute(TABLE)
    fill(database, 200)
    walberg.start()
    walberg.wait_caught_up()
    fill(database, 100)
    database.execute("update orders set note = 'x' where customer = 3",
                     "delete from orders where customer = 4")
    walberg.wait_caught_up()
    assert compare(database, lake, ["orders"]) == 270

    wait_for("query server", lambda: listening(walberg.query_port), 10)
    questions = ["select count(*) from orders",
                 "select count(*) from orders where note = 'x'",
                 "select customer, count(*), sum(total) from orders group by customer"
                 " order by customer",
                 "select id, customer, note, total from public.orders where id = 42"]
    for question in questions:
        truth = subprocess.run(["psql", "-X", "-A", "-t", database.uri, "-c", question],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        assert psql(walberg, question) == truth, question
    assert walberg.stop() == 0


def test_status_tells_where_everything_is(database, walberg, lake):
    database.execute(TABLE)
    fill(database, 20)
    walberg.start()
    walberg.wait_caught_up()
    wait_for("state streaming", lambda: walberg.status()["state"] == "streaming", 20)
    status = walberg.status()
    assert status["pipeline"] == database.name
    assert status["error"] is None
    assert status["source"]["slot"] == f"walberg_{database.name}"
    assert status["source"]["lag_bytes"] >= 0
    table = next(t for t in status["tables"] if t["name"] == "public.orders")
    assert (table["state"], table["rows"], table["rejects"]) == ("streaming", 20, 0)
    assert table["copied_fraction"] == 1.0
    walberg.stop()
    assert walberg.status()["state"] == "stopped"
    assert json.dumps(walberg.status())


def query_child(walberg):
    return int(subprocess.run(["pgrep", "-P", str(walberg.process.pid)], capture_output=True,
                              text=True, check=True).stdout)


def test_the_query_server_has_bounds_of_its_own(database, walberg):
    """Statements end where they need more than they may; the kernel prefers it to the stream."""
    database.execute("create table t (id int primary key, v text)",
                     "insert into t select n, repeat(md5(n::text), 50)"
                     " from generate_series(1, 1000) n")
    walberg.start(query__memory="64MB", query__spill="1MB")
    walberg.wait_caught_up()
    wait_for("rows", lambda: walberg.query("select count(*) from t") == [(1000,)])
    sort = "select count(distinct a.v || b.v) from t a, t b where b.id <= 100"
    with pytest.raises(psycopg.errors.OutOfMemory):
        walberg.query(sort)
    assert walberg.query("select count(*) from t") == [(1000,)]
    for pid, score in ((query_child(walberg), "500"), (walberg.process.pid, "0")):
        assert pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == score
    database.execute("delete from t where id = 1")
    wait_for("the delete", lambda: walberg.query("select count(*) from t") == [(999,)])


def test_a_query_server_that_cannot_start_is_said_and_waited_for(database, walberg, lake):
    database.execute(TABLE)
    taken = socket.create_server(("127.0.0.1", 0))
    walberg.start(port=taken.getsockname()[1])
    wait_for("the second failure", lambda: "ended 2 times" in (walberg.status()["error"] or ""))
    fill(database, 10)
    wait_for("rows", lambda: lake.has("orders") and is_equal(database, lake, ["orders"]))
    assert 2 <= walberg.log().count("query server ended") <= 4
    taken.close()
    wait_for("rows", lambda: walberg.query("select count(*) from orders") == [(10,)])


def test_what_was_uploaded_is_not_fetched_again(database, s3, tmp_path):
    """The stream leaves its files where the query server looks for them, once each."""
    walberg = Walberg(database, s3.warehouse(), tmp_path)
    database.execute(TABLE)
    fill(database, 100)
    walberg.start()
    walberg.wait_streaming()
    fill(database, 100)
    wait_for("rows", lambda: walberg.query("select count(*) from orders") == [(200,)])
    cached = [p for p in (tmp_path / "state" / "cache").rglob("*") if p.is_file()]
    assert sorted(p.suffix for p in cached) == [".parquet"] * 2 + [".stamp"] * 2, cached
    assert walberg.stop() == 0
    for path in cached:                                  # and what is lost is fetched
        path.unlink()
    done = walberg.call("sql", walberg.storage.uri, "select count(*) from orders", check=True)
    assert "200" in done.stdout


DAMAGES = {
    "a bit": lambda content: content[:40] + bytes([content[40] ^ 4]) + content[41:],
    "the end": lambda content: content[:len(content) // 2],
    "all": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_of_the_cache_are_fetched_again(damage, database, s3, tmp_path):
    """By the stream, which reads rows and positions of deletes, and by the query server."""
    walberg = Walberg(database, s3.warehouse(), tmp_path)
    database.execute("create table t (id int primary key, v int, long text)",
                     "alter table t alter long set storage external",
                     "insert into t select n, 0, repeat(md5(n::text), 100)"
                     " from generate_series(1, 100) n")
    walberg.once()
    database.execute("delete from t where id % 10 = 0")
    walberg.once()
    for path in (tmp_path / "state" / "cache").rglob("*.parquet"):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    shutil.rmtree(tmp_path / "state" / "index", ignore_errors=True)  # made again from the files
    database.execute("update t set v = 1")
    walberg.once()
    compare(database, Lake(walberg.storage), ["t"])
    for path in (tmp_path / "state" / "cache").rglob("*.parquet"):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    done = walberg.call("sql", walberg.storage.uri, "select count(*), sum(v) from t", check=True)
    assert "90" in done.stdout, done.stdout


def cached_bytes(tmp_path):
    return sum(p.stat().st_size for p in (tmp_path / "state" / "cache").rglob("*.parquet"))


def test_the_cache_stays_small_and_whoever_reads_finds_his_files(database, s3, walberg, tmp_path):
    """The stream the rows that an update leaves as they are, the query server what it shows, and an
    open transaction what it began with."""
    walberg.storage = s3.warehouse()
    walberg.settings["cache"] = "1MB"
    sums = "select count(*), sum(v), sum(length(long)) from t"
    database.execute("create table t (id int primary key, v int, long text)",
                     "alter table t alter long set storage external")

    def fill_again(turn):
        database.execute(
            "truncate t",
            "insert into t select n, 0, (select string_agg(md5(concat(n, ' ', i)), '')"
            f" from generate_series({turn}, 250 + 2 * {turn}) i) from generate_series(1, 100) n")
        walberg.wait_caught_up()
        database.execute("update t set v = id", "delete from t where id % 10 = 0")
        walberg.wait_caught_up()

    def query_is_right():
        truth = database.rows(sums)
        wait_for("rows", lambda: walberg.query(sums) == truth, 30)
        return truth[0]

    walberg.start()
    walberg.wait_streaming()
    fill_again(0)
    before = query_is_right()
    with walberg.try_connect() as conn:
        conn.execute("begin")
        assert conn.execute("select count(*) from t").fetchone() == (90,)
        for turn in range(1, 6):
            fill_again(turn)
            assert query_is_right() != before
        assert conn.execute(sums).fetchone() == before
    walberg.call("verify", *walberg.positional(), check=True)
    fill_again(6)
    assert cached_bytes(tmp_path) < 2_500_000
    assert walberg.stop() == 0
    written = walberg.storage.list()
    assert sum(n for name, n in written.items() if name.endswith(".parquet")) > 5_000_000

    for turn in (1, 2):  # nothing is kept that nobody reads
        database.execute(f"update t set v = {turn}")
        walberg.once(cache="0kB")
        assert cached_bytes(tmp_path) == 0
    assert compare(database, Lake(walberg.storage), ["t"]) == 90
    walberg.call("verify", *walberg.positional(), check=True, cache="0kB")
    done = walberg.call("sql", walberg.storage.uri, "select count(*), sum(v) from t", check=True,
                        cache="0kB")
    assert "90" in done.stdout and "180" in done.stdout
