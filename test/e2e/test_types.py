"""Every type, by the initial copy and by the stream: the same values, and those of the source.

Copy and stream read different formats of the same value through different code. The table of each
type holds its edge values twice: rows that were there at the start, and rows inserted, updated and
moved to other keys while the program was streaming. All types go through one run, each in a table
of its own, so that a type that fails names itself.
"""

import pytest

from lib import values
from lib.lake import Lake
from lib.oracle import Truth, compare
from lib.postgres import Database, Postgres
from lib.readers import READERS, duckdb_iceberg
from lib.storage import Storage
from lib.types_run import TypesRun, table_name
from lib.walberg import Walberg


@pytest.fixture(scope="module", name="run")
def types_run(postgres, tmp_path_factory):
    database = Database(postgres, "types")
    yield TypesRun(database, tmp_path_factory.mktemp("types"))
    postgres.drop_database("types")


@pytest.mark.parametrize("case", values.CASES, ids=lambda case: case.sql)
def test_type_arrives(case, run):
    if case not in run.cases:
        pytest.skip(f"this server has no {case.extension or case.sql}")
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


def test_a_null_list_of_structs_in_a_struct(database, walberg, lake):
    """Without PyIceberg 0.12, whose projection makes such a list empty (pyarrow reads NULL)."""
    with database.connect() as conn:
        values.available(conn)
        conn.execute("create table t (id int primary key, v deep)")
        conn.execute("insert into t values (1, '(,,,,,)'), (2, null)")
        walberg.once()
        conn.execute("insert into t values (3, '(,,,,,)')")
    walberg.once()
    compare(database, lake, ["t"], readers=["duckdb", "java"])


HOSTILE = {"timezone": "Asia/Kathmandu", "datestyle": "German, DMY",
           "intervalstyle": "sql_standard", "bytea_output": "escape", "extra_float_digits": "-15",
           "xmlbinary": "hex",
           "standard_conforming_strings": "off", "client_encoding": "LATIN1",
           "quote_all_identifiers": "on", "row_security": "off", "search_path": "nowhere",
           "default_transaction_isolation": "serializable", "statement_timeout": "5min"}


FORMATTED = ["real", "double precision", "money", "bytea", "date", "time", "timetz", "timestamp",
             "timestamptz", "interval", "timestamptz[]", "interval[]", "double precision[]",
             "tstzrange", "xml", "text", "point"]


@pytest.mark.parametrize("scope", ["role {role}", "database {name}",
                                   "role {role} in database {name}", "system"])
def test_settings_of_the_source_change_nothing(scope, database, tmp_path):
    """Formats set for a role, for a database, for both, and for the whole server."""
    server = database.server
    role = f"hostile_{database.name}"[:60]
    scope = scope.format(role=role, name=database.name)
    with server.connect() as conn:
        conn.execute(f"create role {role} superuser login")
        for name, value in HOSTILE.items():
            if "role" in scope or name != "search_path":      # our own sessions need theirs
                conn.execute(f"alter {scope} set {name} = '{value}'")
        conn.execute("select pg_reload_conf()")
    try:
        run = TypesRun(database, tmp_path, FORMATTED, server.uri(database.name, role))
        compare(database, run.lake, [table_name(case) for case in run.cases],
                readers=["duckdb", "pyiceberg"], check=False)
    finally:
        with server.connect() as conn:
            conn.execute(f"alter {scope} reset all")
            conn.execute("select pg_reload_conf()")
            conn.execute(f"drop publication if exists walberg_{database.name}")
        server.drop_database(database.name)
        server.execute("postgres", f"drop role {role}")


def test_bytes_of_a_sql_ascii_database(tmp_path):
    """What is UTF-8 arrives; what is not is a reject, by the copy and by the stream."""
    server = Postgres()
    try:
        with server.connect() as conn:
            conn.execute("create database raw encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'"
                         " template template0")
        odd = "\"o' || convert_from('\\xff', 'SQL_ASCII') || '\""
        server.execute("raw", f"do $$ begin execute 'create table {odd} (id int primary key)';"
                              f" execute 'create table odd_column (id int primary key, {odd} int)';"
                              " end $$")
        bad = "convert_from('\\x61ff62', 'SQL_ASCII')"
        server.execute("raw", "create table t (id int primary key, v text, a text[], k name)",
                       f"insert into t values (1, 'fine', '{{x}}', 'n'), (2, {bad}, null, 'n')")
        database = Database(server, "raw", new=False)
        walberg = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        errors = {t["name"]: t["error"] for t in walberg.status()["tables"]}
        assert errors.pop("public.t") is None
        assert "the name of a column is not valid UTF-8" in errors["public.odd_column"]
        good = "convert_from('\\xc3a9', 'SQL_ASCII')"
        server.execute("raw", "drop table odd_column",
                       f"insert into t values (3, {good}, array['y'], 'n'),"
                       f" (4, 'x', array[{bad}], 'n')", f"update t set v = {bad} where id = 1")
        walberg.once()
        _, rows = READERS["duckdb"](Lake(walberg.storage).table("t"))
        assert sorted(rows) == [(1, None, ["x"], "n"), (2, None, None, "n"),
                                (3, "\u00e9", ["y"], "n"), (4, "x", None, "n")]
        names, rejects = READERS["java"](Lake(walberg.storage).table("rejects", "_walberg"))
        records = [dict(zip(names, row, strict=True)) for row in rejects]
        assert sorted((r["key"], r["column"], r["value"]) for r in records) == [
            ('{"id":1}', "v", "a\\xffb"), ('{"id":2}', "v", "a\\xffb"),
            ('{"id":4}', "a", "{a\\xffb}")]
        walberg.call("verify", *walberg.positional(), check=True)
    finally:
        server.remove()
