"""A short pass on every version of Postgres but the one that all other tests run on: every type,
and random rows and schema changes with a kill between them. make check-full has the whole of it."""
import json

import pytest

from lib.env import POSTGRES, SEED, wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.postgres import Database, Postgres
from lib.storage import Storage
from lib.types_run import TypesRun, table_name
from lib.walberg import Walberg
from lib.workload import Workload

OTHERS = [major for major in range(13, 19) if major != POSTGRES]
TRANSACTIONS = 150


@pytest.fixture(scope="module", name="server", params=OTHERS)
def server_of(request):
    server = Postgres(request.param)
    yield server
    server.remove()


def test_types(server, tmp_path):
    run = TypesRun(Database(server, "types"), tmp_path)
    compare(run.database, run.lake, [table_name(case) for case in run.cases],
            readers=["duckdb", "pyiceberg"], check=False)
    server.drop_database("types")


def verified(walberg):
    """False while a table is not compared: one that was altered without a change after it is copied
    again as soon as the catalogs were looked at, which may be after its rows were found equal."""
    done = walberg.call("verify", "--json", *walberg.positional())
    assert done.stdout, done.stderr
    tables = json.loads(done.stdout)["tables"]
    assert not [table for table in tables if table["result"] == "different"], done.stdout
    return done.returncode == 0


def test_rows_and_shapes(server, tmp_path):
    database = Database(server, "shapes")
    walberg = Walberg(database, Storage(tmp_path / "lake"), tmp_path, commit__interval="200ms")
    lake = Lake(walberg.storage)
    with database.connect() as conn:
        workload = Workload(conn, SEED, alters=0.01)
        workload.fill(50)
        walberg.start()
        for turn in range(2 * TRANSACTIONS):
            if turn == TRANSACTIONS:
                walberg.kill()
                walberg.start()
            workload.transaction()
    # a copy, of a table that was altered say, has to wait for transactions that are open
    for (gid,) in database.rows("select gid from pg_prepared_xacts"):
        database.execute(f"rollback prepared '{gid}'")
    walberg.wait_caught_up()
    wait_for("all tables to be as in the catalog",
             lambda: is_equal(database, lake, workload.names), 60, pause=2)
    compare(database, lake, workload.names)
    wait_for("every table to be verified", lambda: verified(walberg))
    assert walberg.stop() == 0
    server.drop_database("shapes")
