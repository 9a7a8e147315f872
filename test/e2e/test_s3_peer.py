"""An S3 server that answers wrongly, late, half, twice or not at all, by the request (lib/s3_peer):
single troubles are ridden out, many at once cost time and never a row, and what a person has to
mend is named and holds up one table alone where it concerns one."""
import signal
import subprocess
import threading
import time

import pytest

from lib import s3_peer
from lib.env import FULL, SEED, wait_for
from lib.lake import Lake
from lib.oracle import compare
from lib.scene import Scene
from lib.storage import Storage
from lib.walberg import Walberg

SHARE = 0.08                                      # of the requests, in test_noise
ROUNDS = 20 if FULL else 2


@pytest.fixture
def peer(s3):
    between = s3_peer.Peer(s3.server)
    yield between
    between.end()


def scene_of(peer, s3, postgres, folder, **settings):
    direct = s3.warehouse()
    scene = Scene(postgres, folder, SEED, direct, **settings)
    scene.walberg.storage = Storage(direct.uri, peer)
    return scene


def ran(scene, peer, wanted):
    done = scene.run()
    assert done.returncode in wanted, \
        f"WALBERG_SEED={SEED} {peer.story[-5:]}: exit {done.returncode}: {done.stderr[-3000:]}"
    return done.returncode


@pytest.mark.parametrize("kind", s3_peer.TROUBLE, ids=lambda kind: kind.__name__)
def test_a_single_trouble_is_ridden_out(kind, peer, s3, postgres, tmp_path):
    """At a random request of the copy, and of each round of changes: every run is a success."""
    scene = scene_of(peer, s3, postgres, tmp_path / kind.__name__)
    expected = 60
    for _ in range(1 + (30 if FULL else 1)):
        before = peer.count
        peer.nth(scene.dice.randint(1, expected), kind)
        ran(scene, peer, {0})
        peer.quiet()
        expected = max(10, peer.count - before)
        scene.equal()
        scene.everything()
    assert peer.story
    ran(scene, peer, {0})
    scene.whole()
    postgres.drop_database(scene.database.name)


@pytest.mark.parametrize("version", [2, 3])
def test_noise(version, peer, s3, postgres, tmp_path):
    """Troubles at random, several in a row: the commands end well or say that it may pass later."""
    scene = scene_of(peer, s3, postgres, tmp_path / f"noise{version}",
                     sink__iceberg__format_version=version)
    codes = []
    for number in range(ROUNDS):
        peer.noisy(SEED + number, SHARE)
        codes.append(ran(scene, peer, {0, 3}))
        scene.everything()
        if number % 2 == 1:
            remove_state(scene)
        codes.append(ran(scene, peer, {0, 3}))
        verified = scene.walberg.call("verify", *scene.walberg.positional(), "public.accounts")
        assert verified.returncode in (0, 3), f"WALBERG_SEED={SEED} {verified.stderr[-2000:]}"
        peer.quiet()
        ran(scene, peer, {0})
        scene.equal()
    scene.whole()
    assert len(peer.story) > 10 and 0 in codes
    postgres.drop_database(scene.database.name)


def remove_state(scene):
    """Its cache and its index: all is read from the lake again."""
    for path in sorted((scene.walberg.folder / "state").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def test_the_source_hears_of_us_while_the_store_stalls(program, peer, database):
    """Postgres would end the session after wal_sender_timeout."""
    database.execute(f"alter database {database.name} set wal_sender_timeout = '2s'")
    program.start()
    program.wait_caught_up()
    reader = database.rows(READER)
    peer.choose = lambda e: seven_seconds_late if e.method == "PUT" else None
    database.execute("insert into a values (2, 'y')", "insert into b values (2, 'y')")
    wait_for("a stall", lambda: peer.story)
    peer.choose = lambda e: seven_seconds_late if "metadata" in e.path else None
    wait_for("another one", lambda: len(peer.story) > 1)
    peer.quiet()
    program.wait_caught_up()
    assert database.rows(READER) == reader and reader[0][0]
    compare(database, program.lake, [("public", "a"), ("public", "b")])


READER = "select active_pid from pg_replication_slots where database = current_database()"


def seven_seconds_late(exchange):
    time.sleep(7)
    exchange.pass_on()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_leaves_at_once(sig, program, peer, database):
    """The first one's commit waits for a store that does not answer. Nothing is lost."""
    program.start(commit__interval="1h").wait_streaming()
    program.query("select * from a")
    before = program.lake.table("a").position
    let_go = threading.Event()

    def silent(exchange):
        let_go.wait(60)
        exchange.cut()

    peer.choose = lambda _: silent
    try:
        database.execute("insert into a values (2, 'y')")
        wait_for("it to be received", lambda: program.status()["source"]["lag_bytes"], 20)
        time.sleep(0.3)
        program.process.send_signal(sig)
        program.wait_for_log("info stopping signal=" + sig.name)
        with pytest.raises(subprocess.TimeoutExpired):
            program.process.wait(2)
        assert peer.story
        began = time.monotonic()
        program.process.send_signal(sig)
        assert program.process.wait(5) == 128 + sig and time.monotonic() - began < 1
        assert "warn leaving at once" in program.log()
        wait_for("its query server to leave", lambda: program.try_connect() is None, 10)
    finally:
        peer.quiet()
        let_go.set()
    assert program.lake.table("a").position == before
    program.once()
    compare(database, program.lake, [("public", "a"), ("public", "b")])


# --- what a person has to mend ---------------------------------------------------------------


@pytest.fixture
def program(peer, s3, database, tmp_path):
    """Two tables in a lake behind the peer."""
    database.execute("create table a (id int primary key, v text)",
                     "create table b (id int primary key, v text)",
                     "insert into a values (1, 'x')", "insert into b values (1, 'x')")
    direct = s3.warehouse()
    walberg = Walberg(database, Storage(direct.uri, peer), tmp_path)
    walberg.once()
    walberg.lake = Lake(direct)
    yield walberg
    peer.quiet()
    walberg.kill()


def state_of(walberg, name):
    return next(t for t in walberg.status()["tables"] if t["name"] == name)


def test_one_folder_that_may_not_be_written(program, peer, database):
    """The other table goes on; this one goes on when it may, without a restart."""
    program.start()
    peer.choose = lambda e: s3_peer.denied if e.method == "PUT" and "/public/a/" in e.path else None
    for n in (2, 3):
        database.execute(f"insert into a values ({n}, 'y')", f"insert into b values ({n}, 'y')")
        wait_for("the other table", lambda n=n: program.query("select count(*) from b") == [(n,)],
                 60)
    parked = wait_for("the refusal in status", lambda: state_of(program, "public.a")["error"], 60)
    assert "AccessDenied" in parked
    peer.quiet()
    done = program.call("resync", *program.positional(), "public.a")
    assert done.returncode == 0, done.stderr
    program.wait_caught_up()
    compare(database, program.lake, [("public", "a"), ("public", "b")])


@pytest.mark.parametrize("kind, word", [(s3_peer.denied, "s3:PutObject"),
                                        (s3_peer.expired, "temporary credentials"),
                                        (s3_peer.skewed, "clock")])
def test_a_refusal_of_everything(kind, word, program, peer, database):
    """It ends, and says what to mend; afterwards nothing is missing."""
    program.start()
    program.wait_caught_up()
    peer.choose = lambda _: kind
    database.execute("insert into a values (2, 'y')", "insert into b values (2, 'y')")
    wait_for("its end", lambda: not program.alive())
    assert program.process.returncode == 1
    assert word in program.log().splitlines()[-1]
    peer.quiet()
    program.once()
    compare(database, program.lake, [("public", "a"), ("public", "b")])
