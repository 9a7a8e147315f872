"""A server that shuts down waits for its readers to confirm all that it has sent: what holds the
slot back must not hold up the server."""
import time
from pathlib import Path

import pytest
from test_parked import full_file_system

from lib.env import wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres
from lib.storage import Storage
from lib.walberg import Walberg


@pytest.fixture
def scene(tmp_path):
    server = Postgres()
    made = Walberg(Database(server, "shop"), Storage(tmp_path / "lake"), tmp_path)
    made.database.execute("create table t (id int primary key, n numeric(6,2))",
                          "create table other (id int primary key, v text)",
                          "insert into t values (1, 1)")
    yield made
    made.kill()
    server.remove()


def restart(scene):
    began = time.monotonic()
    scene.database.server.stop()
    took = time.monotonic() - began
    scene.database.server.start()
    return took


def test_a_parked_table_does_not_hold_up_a_shutdown(scene):
    scene.start(on_reject="park")
    scene.wait_streaming()
    scene.database.execute("insert into t values (2, 'NaN')", "insert into other values (1)")
    wait_for("parked", lambda: "parked" in [t["state"] for t in scene.status()["tables"]], 30)
    lake = Lake(scene.storage)
    wait_for("the other", lambda: is_equal(scene.database, lake, ["other"]), 30)
    assert restart(scene) < 20
    scene.database.execute("insert into other values (2)")
    wait_for("the other", lambda: is_equal(scene.database, lake, ["other"]), 60)
    assert scene.stop() == 0


def test_a_lake_that_is_full_does_not_hold_up_a_shutdown(scene):
    """Nothing is read while it is, and so not what the server asks either."""
    lake = Lake(scene.storage)
    scene.once()
    folder = Path(scene.storage.uri.removeprefix("file://"), lake.table("other").folder)
    with full_file_system(folder) as filler:
        scene.start(memory="64MB")
        scene.wait_streaming()
        for first in (1, 100001, 200001):
            scene.database.execute("insert into other select n, repeat(md5(n::text), 30) from"
                                   f" generate_series({first}, {first + 79999}) n")
        scene.wait_for_log("No space left", 30)
        assert restart(scene) < 30
        filler.unlink()
    wait_for("all", lambda: is_equal(scene.database, lake, ["other"]), 120)
    assert scene.stop() == 0
    compare(scene.database, lake, ["t", "other"], readers=["duckdb"])
