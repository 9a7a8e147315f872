"""walberg status: what it makes of the state folder, the lock and the source.

The file is written by `run`; here it is laid down by hand, in the form that the manual gives, so
that each state can be looked at."""
import fcntl
import json
import re
import time

import pytest

from lib.env import wait_for

DOCUMENT = {
    "pipeline": "shop", "state": "streaming", "error": None,
    "source": {"system_identifier": "7300000000000000001", "slot": "walberg_shop",
               "server_position": "0/16B3748", "acknowledged": "0/16B3700", "lag_bytes": 72,
               "lag_seconds": 0.4, "retained_wal_bytes": 16777216,
               "retained_wal_bytes_per_second": None},
    "tables": [{"name": "public.orders", "state": "streaming", "position": "0/16B3700",
                "rows": 1000, "copied_rows": 1000, "copied_fraction": 1.0, "rejects": 0,
                "last_commit": "2026-11-30T10:00:00Z", "error": None},
               {"name": "public.größe", "state": "copying", "position": None,
                "rows": 0, "copied_rows": 5, "copied_fraction": 0.5, "rejects": 2,
                "last_commit": None, "error": None}],
    "pid": 12345, "updated_us": 1796032800000000,
}


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()

    def write(document):
        (folder / "status.json").write_text(json.dumps(document))

    write(DOCUMENT)
    (folder / "lock").touch()
    write.folder = folder
    return write


@pytest.fixture
def running(state):
    """Somebody holds the lock, as `run` would."""
    with open(state.folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def status(walberg, *args, **settings):
    return walberg.call("status", *args, pipeline="shop", **settings)


def test_live_json_is_the_document(walberg, running):
    done = status(walberg, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == DOCUMENT
    assert list(json.loads(done.stdout)) == list(DOCUMENT)


def test_live_text(walberg, state, running):
    state({**DOCUMENT, "updated_us": int(time.time() * 1e6)})
    done = status(walberg)
    assert done.returncode == 0
    assert done.stdout == (
        "shop: streaming, 72 bytes behind (0.4 s), slot walberg_shop at 0/16B3700, WAL held 16 MB\n"
        "\n"
        "table          state      position   rows  copied  rejects  last commit\n"
        "public.orders  streaming  0/16B3700  1000    100%        0  2026-11-30T10:00:00Z\n"
        "public.größe   copying                  0     50%        2\n"
    )


def test_wal_that_grows_is_said(walberg, state, running):
    for growth, said in ((3 << 20, ", growing 3072 kB/s"), (50 << 20, ", growing 50 MB/s"),
                         (0, ""), (56, ""), (-(3 << 20), "")):
        state({**DOCUMENT, "source": {**DOCUMENT["source"],
                                      "retained_wal_bytes_per_second": growth}})
        assert f", WAL held 16 MB{said}\n" in status(walberg).stdout


def test_live_and_old_is_said(walberg, state, running):
    """The process is there and hangs."""
    state({**DOCUMENT, "updated_us": int((time.time() - 75) * 1e6)})
    assert re.search(r"^this is from 7\d s ago: the process lives", status(walberg).stdout, re.M)


def test_asking_does_not_take_the_lock_away(walberg, state):
    status(walberg)
    with open(state.folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_parked_table_is_exit_1(walberg, state, running):
    tables = [{**DOCUMENT["tables"][0], "state": "parked", "error": "column x cannot change"}]
    state({**DOCUMENT, "tables": tables})
    done = status(walberg)
    assert done.returncode == 1
    assert done.stdout.endswith("\npublic.orders: column x cannot change\n")
    assert status(walberg, "--json").returncode == 1


def test_nobody_runs_and_the_source_is_not_known(walberg, state):
    shown = json.loads(status(walberg, "--json").stdout)
    assert shown["state"] == "stopped"
    assert "pid" not in shown
    assert shown["source"]["lag_bytes"] is None and shown["source"]["acknowledged"] is None
    assert shown["tables"] == DOCUMENT["tables"]


def test_a_pipeline_that_gave_up_keeps_its_error(walberg, state):
    state({**DOCUMENT, "state": "failed", "error": "slot walberg_shop is lost"})
    shown = json.loads(status(walberg, "--json").stdout)
    assert (shown["state"], shown["error"]) == ("failed", "slot walberg_shop is lost")
    assert "\nerror: slot walberg_shop is lost\n" in status(walberg).stdout


def test_nobody_runs_and_the_source_tells_about_the_slot(database, walberg, state):
    database.execute("select pg_create_logical_replication_slot('walberg_shop', 'pgoutput')",
                     "create table t as select generate_series(1, 1000)")
    done = status(walberg, "--json", *walberg.positional())
    source = json.loads(done.stdout)["source"]
    truth = database.rows("select confirmed_flush_lsn::text,"
                          " (select system_identifier::text from pg_control_system())"
                          " from pg_replication_slots where slot_name = 'walberg_shop'")[0]
    assert (source["acknowledged"], source["system_identifier"]) == truth
    assert source["lag_bytes"] > 0
    assert source["retained_wal_bytes"] >= source["lag_bytes"]
    assert source["lag_seconds"] is None


def test_a_source_that_is_not_there(walberg, state):
    done = status(walberg, "--json", "postgres://me:s3cr3t@127.0.0.1:1/shop", "lake")
    assert done.returncode == 0
    assert "127.0.0.1" in json.loads(done.stdout)["source"]["error"]
    assert "s3cr3t" not in done.stdout + done.stderr


def test_a_pipeline_that_never_ran(database, walberg):
    shown = walberg.status()
    assert (shown["pipeline"], shown["state"]) == (database.name, "stopped")
    assert (shown["error"], shown["tables"]) == (None, [])
    assert shown["source"]["slot"] == f"walberg_{database.name}"
    assert shown["source"]["server_position"] and shown["source"]["acknowledged"] is None
    done = walberg.call("status", *walberg.positional())
    assert done.stdout == f"{database.name}: stopped, slot walberg_{database.name}\n"


def test_a_pipeline_without_a_name(walberg):
    done = walberg.call("status")
    assert done.returncode == 2
    assert done.stderr.startswith("walberg: the pipeline has no name\nhint: ")


def test_a_file_that_is_not_a_status(walberg, state):
    for text in ("{", "[]", '{"tables": 1}', '{"tables": [1]}'):
        (state.folder / "status.json").write_text(text)
        done = status(walberg)
        if text != '{"tables": [1]}':
            assert done.returncode == 1 and "status.json" in done.stderr, text
        assert done.returncode in (0, 1)


def test_no_lag_is_claimed_before_anything_was_committed(database, walberg):
    """A change waits for its epoch: how old the lake is, this process does not know yet."""
    database.execute("create table t (id int primary key)")
    walberg.once()
    walberg.start(commit__interval="1h").wait_streaming()
    database.execute("insert into t values (1)")
    source = wait_for("a change", lambda: (s := walberg.status()["source"])["lag_bytes"] and s, 20)
    assert source["lag_seconds"] is None
    assert "behind, slot" in walberg.call("status", *walberg.positional()).stdout
    assert walberg.stop() == 0


WAL_HELD = """select pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
    from pg_replication_slots where slot_type = 'logical'"""


def held(walberg):
    return walberg.status()["source"]["retained_wal_bytes"]


def test_wal_that_an_open_transaction_holds(database, walberg):
    """The stream goes on and is not behind; the server keeps everything since that began. Running
    or stopped, status says what the server says of the slot."""
    walberg.extra_environment = {"WALBERG_LIMITS": "held.look_ms=200,held.window_ms=1000"}
    database.execute("create table t (id int primary key)")
    walberg.start().wait_streaming()
    with database.connect(autocommit=False) as conn:
        conn.execute("insert into t values (0)")
        for n in range(1, 9):
            database.execute("select pg_logical_emit_message(false, 'm', repeat('x', 1 << 20))",
                             "checkpoint", f"insert into t values ({n})")
            time.sleep(0.3)
        walberg.wait_caught_up()
        wait_for("growth", lambda: walberg.status()["source"]["retained_wal_bytes_per_second"] or 0
                 > 1 << 18, 20)
        truth = database.rows(WAL_HELD)[0][0]
        assert truth > 8 << 20
        source = wait_for("all of it", lambda: (s := walberg.status()["source"])
                          ["retained_wal_bytes"] >= truth and s, 20)
        assert source["lag_bytes"] < 1 << 16, source
        assert held(walberg) - database.rows(WAL_HELD)[0][0] < 1 << 16
        assert walberg.stop() == 0
        stopped = walberg.status()["source"]
        assert 0 <= stopped["retained_wal_bytes"] - truth < 1 << 16, stopped
        assert stopped["retained_wal_bytes_per_second"] is None
        walberg.start().wait_caught_up()
        assert 0 <= held(walberg) - truth < 1 << 16, "a new process knows at once"
        conn.rollback()

    def let_go():
        database.execute("checkpoint",  # tells the slot that nothing is open
                         "insert into t select max(id) + 1 from t")
        walberg.wait_caught_up()
        return held(walberg) < truth // 2
    wait_for("the slot to move on", let_go, 30)
    assert held(walberg) - database.rows(WAL_HELD)[0][0] < 1 << 16
    assert walberg.stop() == 0
