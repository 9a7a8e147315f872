"""Generated columns. Before 18 none of them is in the stream; 18 can publish the stored ones, and
has virtual ones, which never are."""
import pytest

from lib.lake import Lake
from lib.postgres import Database, Postgres
from lib.readers import READERS
from lib.storage import Storage
from lib.walberg import Walberg

TABLES = ["create table t (id int primary key, a int,"
          " s int generated always as (a * 2) stored, v int generated always as (a * 3) virtual)",
          "insert into t (id, a) select n, n from generate_series(1, 9) n",
          "create table u (id int, k int generated always as (id + 1) stored primary key)",
          "insert into u select 1"]


@pytest.fixture(scope="module")
def newest():
    server = Postgres(18)
    yield server
    server.remove()


@pytest.fixture
def pipeline(newest, tmp_path):
    program = Walberg(Database(newest, "generated"), Storage(tmp_path / "lake"), tmp_path,
                      source__publication="mine")
    program.database.execute(*TABLES)
    yield program
    program.kill()
    newest.drop_database("generated")


def lake_rows(walberg, name="t"):
    names, rows = READERS["duckdb"](Lake(walberg.storage).table(name))
    return sorted(sorted(zip(names, row, strict=True)) for row in rows)


def source_rows(walberg, columns, name="t"):
    rows = walberg.database.rows(f"select {columns} from {name}")
    return sorted(sorted(zip(columns.split(", "), row, strict=True)) for row in rows)


PUBLISHED = {
    "option": "for table t, u with (publish_generated_columns = stored)",
    "all tables": "for all tables with (publish_generated_columns = stored)",
    "column list": "for table t (id, a, s), u (id, k)",
}


@pytest.mark.parametrize("how", PUBLISHED)
def test_stored_columns_that_are_published_arrive(how, pipeline):
    database = pipeline.database
    database.execute(f"create publication mine {PUBLISHED[how]}")
    pipeline.once()
    assert lake_rows(pipeline) == source_rows(pipeline, "id, a, s")
    database.execute("insert into t (id, a) values (20, 20)", "update t set a = 50 where id = 2",
                     "delete from t where id = 3", "insert into u values (2), (3)",
                     "delete from u where id = 1", "update u set id = 7 where id = 2")
    said = pipeline.once().stderr
    assert "copied again" not in said
    assert lake_rows(pipeline) == source_rows(pipeline, "id, a, s")
    assert lake_rows(pipeline, "u") == source_rows(pipeline, "id, k", "u")
    assert pipeline.call("verify", *pipeline.positional()).returncode == 0


def test_published_later_and_no_more(pipeline):
    """Rows from before have values that the stream never told: the table is copied again."""
    database = pipeline.database
    database.execute("create publication mine for table t")
    pipeline.once()
    assert lake_rows(pipeline) == source_rows(pipeline, "id, a")
    database.execute("alter publication mine set (publish_generated_columns = stored)",
                     "insert into t (id, a) values (20, 20)")
    pipeline.once()
    assert lake_rows(pipeline) == source_rows(pipeline, "id, a, s")
    database.execute("alter publication mine set (publish_generated_columns = none)",
                     "insert into t (id, a) values (21, 21)", "update t set a = 0 where id = 1")
    pipeline.once()
    assert lake_rows(pipeline) == source_rows(pipeline, "id, a")


def test_not_published(database, walberg):
    """Any version: the rest of the table arrives, and check says what does not."""
    database.execute("create table t (id int primary key, a int,"
                     " s int generated always as (a * 2) stored)", "insert into t values (1, 1)")
    walberg.once()
    database.execute("update t set a = 2", "insert into t values (3, 3)")
    walberg.once()
    assert lake_rows(walberg) == source_rows(walberg, "id, a")
    assert "column s will not arrive" in walberg.call("check", *walberg.positional()).stdout


def test_a_key_that_does_not_arrive_is_said(database, walberg, lake):
    """Such a table cannot be followed; it is not left out silently."""
    database.execute("create table t (id int primary key)", "create table u"
                     " (id int, k int generated always as (id + 1) stored primary key)")
    done = walberg.call("run", "--once", *walberg.positional())
    assert done.returncode == 1 and "parked table=public.u" in done.stderr
    assert "key column k does not arrive" in done.stderr
    assert lake.has("t") and not lake.has("u")
