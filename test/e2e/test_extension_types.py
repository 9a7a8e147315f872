"""The types of PostGIS and pgvector, by the initial copy and by the stream, as test_types does it.

pgvector comes on a server of its own; PostGIS is large, and part of the full run only. What
Postgres itself ships as extensions (ltree, cube, isn and so on) is in test_types.
"""
import pytest

from lib import values
from lib.env import FULL
from lib.lake import Lake
from lib.oracle import compare
from lib.postgres import Database, Postgres
from lib.readers import duckdb_iceberg
from lib.storage import Storage
from lib.types_run import TypesRun, table_name
from lib.walberg import Walberg

EXTENSIONS = {  # name: server, statements, cases
    "pgvector": ("pgvector", values.PGVECTOR_PREPARE, values.PGVECTOR),
    "postgis": (15, values.POSTGIS_PREPARE, values.POSTGIS),
}
KINDS = ["pgvector", pytest.param("postgis", marks=pytest.mark.skipif(
    not FULL, reason="171 MB: part of make check-full"))]


@pytest.fixture(scope="module", name="database_of", params=KINDS)
def database_with_extension(request):
    """A function that makes a database which has the extension, and the extension's cases."""
    server, prepare, cases = EXTENSIONS[request.param]
    server = Postgres(server)

    def make(name):
        database = Database(server, name)
        database.execute(*prepare)
        return database, cases

    yield make
    server.remove()


def test_each_type_arrives(database_of, tmp_path):
    database, cases = database_of("types")
    run = TypesRun(database, tmp_path, cases=cases)
    compare(database, run.lake, [table_name(case) for case in cases])
    for case in cases:
        # The same value by four ways: what one way bends, it shows here without any oracle.
        _, rows = duckdb_iceberg(run.lake.table(table_name(case)))
        by_key = {row[0]: row[1] for row in rows}
        for i in range(len(run.all_values(case))):
            ways = [by_key[base + i] for base in (0, 1000, 2000, 3000)]
            assert all(way == ways[0] for way in ways), f"{case.sql}, value {i}: {ways}"
    assert not any(name == "rejects" for _, name in run.lake.tables()), "nothing is a reject"


def test_side_by_side_and_without_a_key(database_of, tmp_path):
    """All types of the extension in one table, whose old rows are found by all their values."""
    database, cases = database_of("wide")
    columns = ", ".join(f"c{i} {case.sql}" for i, case in enumerate(cases))
    # "full" says so; box2d, which has no "=", is not asked for one: Postgres sends old rows whole.
    database.execute(f"create table wide (id int, {columns})",
                     "alter table wide replica identity full")
    marks = ", ".join(["%s"] * (len(cases) + 1))
    walberg = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
    with database.connect() as conn:
        for number in range(4):
            row = [case.edges[number % len(case.edges)] for case in cases]
            conn.execute(f"insert into wide values ({marks})", [number, *row])
        walberg.once()
        conn.execute("update wide set c0 = null where id = 1")
        conn.execute("delete from wide where id = 2")
        conn.execute("update wide set id = 9 where id = 3")
    walberg.once()
    compare(database, Lake(walberg.storage), ["wide"])
    walberg.call("verify", *walberg.positional(), check=True)
