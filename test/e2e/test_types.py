"""Every type, by the initial copy and by the stream: the same values, and those of the source.

Copy and stream read different formats of the same value through different code. The table of each
type holds its edge values twice: rows that were there at the start, and rows inserted, updated and
moved to other keys while the program was streaming. All types go through one run, each in a table
of its own, so that a type that fails names itself.
"""
import pytest

from lib import values
from lib.oracle import Truth, compare
from lib.postgres import Database
from lib.readers import READERS, duckdb_iceberg
from lib.types_run import TypesRun, table_name


@pytest.fixture(scope="module", name="run")
def types_run(postgres, tmp_path_factory):
    database = Database(postgres, "types")
    yield TypesRun(database, tmp_path_factory.mktemp("types"))
    postgres.drop_database("types")


@pytest.mark.parametrize("case", values.CASES, ids=lambda case: case.sql)
def test_type_arrives(case, run):
    if case not in run.cases:
        pytest.skip(f"this server has no {case.extension}")
    name = table_name(case)
    compare(run.database, run.lake, [name])
    # The same value by four ways: what one way bends, it shows here without any oracle.
    _, rows = duckdb_iceberg(run.lake.table(name))
    by_key = {row[0]: row[1] for row in rows}
    for i in range(len(run.all_values(case))):
        ways = [by_key[base + i] for base in (0, 1000, 2000, 3000)]
        assert all(way == ways[0] for way in ways), f"value {i}: {ways}"


def test_rejects_are_recorded_with_their_text(run):
    """One record for each way a value came that its column cannot hold."""
    names, rows = READERS["java"](run.lake.table("rejects", "_walberg"))
    assert {"schema", "table", "key", "column", "value", "reason"} <= set(names)
    recorded = {}
    for row in rows:
        record = dict(zip(names, row, strict=True))
        recorded.setdefault(record["table"], []).append(record)
    for case in run.cases:
        name = table_name(case)
        with run.database.connect() as conn:
            truth = Truth(conn, name)
        assert truth.rejects == 4 * len(case.rejects), name
        texts = {record["value"] for record in recorded.get(name, [])}
        wanted = {row[0] for value in case.rejects for row in run.database.rows(
            f"select format('%%s', %s::{case.sql})", [value])}
        assert texts == wanted, name
        keys = {record["key"] for record in recorded.get(name, [])}
        assert len(keys) >= 4 * len(case.rejects), name


def test_columns_of_one_table_do_not_disturb_each_other(database, walberg, lake):
    """All types side by side, all NULL, all set, and changed one column at a time."""
    with database.connect() as conn:
        cases = values.available(conn)
        columns = ", ".join(f"c{i} {case.sql}" for i, case in enumerate(cases))
        conn.execute(f"create table wide (id int primary key, {columns})")
        row = [case.edges[-1] for case in cases]
        marks = ", ".join(["%s"] * (len(cases) + 1))
        for number in range(len(cases)):
            conn.execute(f"insert into wide values ({marks})", [number, *row])
        conn.execute("insert into wide (id) values (-1)")
        walberg.once()
        for number, case in enumerate(cases):
            conn.execute(f"update wide set c{number} = %s where id = %s", [case.edges[0], number])
        conn.execute("update wide set id = -2 where id = -1")
    walberg.once()
    compare(database, lake, ["wide"])
