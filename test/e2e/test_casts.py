"""tables.PATTERN.columns: another type in the lake, exactly or as a reject."""
import datetime
import json

import psycopg
import pytest
from pyarrow import parquet

from lib.oracle import compare
from lib.readers import READERS

TABLE = ("create table t (id int primary key, i int, b bigint, s smallint, r real, n numeric,"
         " p numeric(20,6), j jsonb, a int[], m money, at timestamptz)")
VALUES = ("insert into t values ({0}, 7, 9007199254740993, -3, 0.1, 12.5, 1.25, '{{\"k\": 1}}',"
          " '{{1,NULL}}', 12.34, '2026-01-01 00:00+00')")


def cast(**columns):
    body = ", ".join(f"{name}: {{cast: \"{kind}\"}}" for name, kind in columns.items())
    return {"tables__public.t.columns": f"{{{body}}}"}


def types(lake):
    return {f["name"]: f["type"] for f in lake.table("t").schema["fields"]}


def rows(walberg, sql):
    done = walberg.call("sql", "--format", "csv", walberg.storage.uri, sql, check=True)
    return done.stdout.split("\n")[1:-1]


CASTS = {"i": "long", "b": "decimal(38,0)", "s": "double", "r": "double", "n": "numeric(18, 4)",
         "p": "string", "j": "text", "a": "string", "m": "string", "at": "string"}


def test_every_cast_both_ways(database, walberg, lake):
    """The same row through copy and stream, and then as Postgres has it."""
    database.execute(TABLE, VALUES.format(1))
    walberg.once(**cast(**CASTS))
    database.execute(VALUES.format(2))
    walberg.once(**cast(**CASTS))
    kinds = types(lake)
    assert kinds["i"] == "long" and kinds["b"] == "decimal(38,0)" and kinds["s"] == "double"
    assert kinds["r"] == "double" and kinds["n"] == "decimal(18,4)"
    assert {kinds[c] for c in "pjam"} == {"string"} and kinds["at"] == "string"
    expected = "7,9007199254740993,-3,0.1,12.5000,1.250000,{1,NULL},$12.34,2026-01-01 00:00:00+00"
    got = rows(walberg, "select i, b, s, r::real, n, p, a, m, at from t order by id")
    assert [line.replace('"', "") for line in got] == [expected, expected]


def test_what_does_not_fit_is_a_reject(database, walberg):
    """Never rounded."""
    database.execute("create table t (id int primary key, n numeric)",
                     "insert into t values (1, 1.5), (2, 1.00001), (3, 'NaN'), (4, 1e20)")
    walberg.once(**cast(n="decimal(10,2)"))
    database.execute("insert into t values (5, 2.5), (6, 2.555)")
    walberg.once(**cast(n="decimal(10,2)"))
    assert rows(walberg, "select id, n from t order by id") == [
        "1,1.50", "2,", "3,", "4,", "5,2.50", "6,"]
    assert rows(walberg, "select key, value from _walberg.rejects order by 1")[-1].endswith("2.555")


def test_a_cast_that_comes_later(database, walberg, lake):
    """Widened in place, or the table is copied again."""
    database.execute("create table t (id int primary key, i int, n numeric)",
                     "insert into t values (1, 1, 1.5)")
    walberg.once()
    walberg.once(**cast(i="long"))
    assert types(lake)["i"] == "long"
    database.execute("insert into t values (2, 2, 2.5)")
    walberg.once(**cast(i="long", n="decimal(8,2)"))
    assert types(lake)["n"] == "decimal(8,2)"
    assert rows(walberg, "select n from t order by id") == ["1.50", "2.50"]
    walberg.once()
    compare(database, lake, ["t"])


TIMES = ["00:00:00", "00:00:00.000001", "12:34:56.5", "23:59:59.999999", None]
MICROSECONDS = "select id, extract(epoch from {0})::numeric * 1000000 from t order by id"


def test_time(database, walberg, lake, tmp_path):
    """Copy and stream, a domain and an added column; what is behind the end of the day is not."""
    walberg.settings["sink.iceberg.format_version"] = 3
    database.execute("create domain clock as time(3)",
                     "create table t (id int primary key, v time, c clock, s time)")

    def insert(start):
        for i, value in enumerate([*TIMES, "24:00:00"]):
            with database.connect() as conn:
                conn.execute("insert into t values (%s, %s, %s, %s)", [start + i] + 3 * [value])

    insert(0)
    walberg.once(**cast(v="time", c="time"))
    insert(100)
    chosen = cast(v="time", c="time", n="time")
    database.execute("alter table t add n time default '07:08:09'",
                     "update t set v = '01:02:03' where id = 0")
    walberg.once(**chosen)
    kinds = types(lake)
    assert (kinds["v"], kinds["c"], kinds["n"], kinds["s"]) == ("time", "time", "time", "string")
    table = lake.table("t")
    with database.connect() as conn:
        for reader in ("java", "duckdb", "pyiceberg"):
            names, rows_read = READERS[reader](table)
            for column in "vcn":
                wanted = [(i, None if us is None or us == 86400000000 else int(us))
                          for i, us in conn.execute(MICROSECONDS.format(column)).fetchall()]
                places = names.index("id"), names.index(column)
                got = sorted((row[places[0]], row[places[1]]) for row in rows_read)
                assert got == wanted, (reader, column)
    for path in (tmp_path / "lake").rglob("*.parquet"):
        if "_walberg" not in str(path):
            kind = json.loads(parquet.ParquetFile(path).schema.column(1).logical_type.to_json())
            assert kind["Type"] == "Time" and kind["isAdjustedToUTC"] is False, kind
            assert kind["timeUnit"] == "microseconds"
    assert rows(walberg, "select key, \"column\", value from _walberg.rejects where key like"
                " '%5}' order by 1, 2") == [
        f'"{{""id"":{key}}}",{column},24:00:00' for key in (105, 5) for column in ("c", "v")]
    assert walberg.call("verify", *walberg.positional(), **chosen).returncode == 0


def test_time_in_the_query_server(database, walberg):
    """As Postgres has it: the type, its text, its binary form, and in comparisons."""
    database.execute("create table t (id int primary key, v time)",
                     "insert into t values (1, '12:34:56.5'), (2, '23:59:59.999999'), (3, '07:00')")
    walberg.start(**cast(v="time")).wait_streaming()
    with psycopg.connect(host="127.0.0.1", port=walberg.query_port, user="ann",
                         dbname=database.name, autocommit=True) as conn:
        assert conn.execute("select v from t order by id").fetchall() == [
            (datetime.time(12, 34, 56, 500000),), (datetime.time(23, 59, 59, 999999),),
            (datetime.time(7),)]
        assert conn.execute("select v::text from t order by id").fetchall() == [
            ("12:34:56.5",), ("23:59:59.999999",), ("07:00:00",)]
        with conn.cursor(binary=True) as cursor:
            found = cursor.execute("select v from t where v > %s", [datetime.time(13)])
            assert found.fetchall() == [(datetime.time(23, 59, 59, 999999),)]
        assert conn.execute("select format_type(atttypid, atttypmod) from pg_attribute where"
                            " attrelid = 't'::regclass and attname = 'v'").fetchone() == (
            "time without time zone",)
    assert walberg.stop() == 0


SHAPES = {  # type of the column: values, most of them of another shape than it says
    "int[]": ["{}", "{1,NULL,-3}", "{{1,2},{3,NULL}}", "[2:3]={7,8}", "[0:0][-1:0]={{5,6}}"],
    "int[][]": ["{1,2}", "{{1},{2}}", "{{{1,2}}}"],
    "numeric[]": ["{1.50,NaN,-0.001}", "{{1e40}}"],
    "float8[]": ["{1e300,-1.5e-07,Infinity}", "[5:6]={0.1,2}"],
    "bool[]": ["{t,f,NULL}", "{{t},{f}}"],
    "text[]": ['{"q\\"",NULL,"NULL","","\\\\",é}', "{{a},{b}}", '{"tab\t and\nline"}'],
    "jsonb[]": ['{"{\\"a\\": [1, null]}",5,NULL}', '[3:3]={"\\"x\\""}'],
    "date[]": ["{2020-02-29,infinity}", "{{1999-12-31}}"],
    "uuid[]": ["[0:0]={11111111-2222-3333-4444-555555555555}"],
}


def test_arrays_of_any_shape(database, walberg, lake):
    """As Postgres' own to_json() has them, by copy, stream and every reader; nothing is refused."""
    columns = {f"v{i}": kind for i, kind in enumerate(SHAPES)} | {"d": "numbers"}
    values = {**SHAPES, "numbers": SHAPES["int[]"]}
    body = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    chosen = cast(**dict.fromkeys(columns, "json"))
    database.execute("create domain numbers as int[]",
                     f"create table t (id int primary key, {body})")

    def insert(start):
        with database.connect() as conn:
            for i in range(6):
                row = [(values[kind] + 6 * [None])[i] for kind in columns.values()]
                conn.execute(f"insert into t values ({start + i}{', %s' * len(row)})", row)

    insert(0)
    walberg.once(**chosen)
    insert(100)
    database.execute("update t set v0 = '{{{9}}}' where id = 1")
    walberg.once(**chosen)
    assert {types(lake)[name] for name in columns} == {"string"}
    with database.connect() as conn:
        chosen_columns = ", ".join(f"to_json({name})::text" for name in columns)
        truth = conn.execute(f"select id, {chosen_columns} from t order by id").fetchall()
    assert '[[5,6]]' in {row[1] for row in truth}
    for reader in ("java", "duckdb", "pyiceberg"):
        names, found = READERS[reader](lake.table("t"))
        order = [names.index(name) for name in ("id", *columns)]
        assert sorted(tuple(row[i] for i in order) for row in found) == truth, reader
    for row in truth:
        for value in row[1:]:
            json.loads(value or "null")
    assert not lake.has("rejects", "_walberg")
    assert walberg.call("verify", *walberg.positional(), **chosen).returncode == 0


def test_json_is_not_text(database, walberg, lake):
    """Both are strings in the lake, so a cast that comes, changes or goes copies again."""
    database.execute("create table t (id int primary key, a int[], b int[])",
                     "insert into t values (1, '{1,2}', '{3}')")
    text, both = '"{1,2}",[3]', '"[1,2]",[3]'
    for first, second, wanted in [("string", "json", text), ("json", "json", both),
                                  ("json", "string", '"[1,2]",{3}'), ("json", "json", both)]:
        walberg.once(**cast(a=first, b=second))
        assert rows(walberg, "select a, b from t") == [wanted]
    copies = walberg.log().count("info copied table=")
    walberg.once(**cast(a="json", b="json"))
    assert walberg.log().count("info copied table=") == copies == 4
    walberg.once()
    assert types(lake)["a"]["type"] == "list"
    compare(database, lake, ["t"])


@pytest.mark.parametrize(("columns", "says"), [
    ({"i": "date"}, "is no type to cast to"),
    ({"i": "decimal(50,2)"}, "1 <= p <= 38"),
])
def test_bad_settings(columns, says, database, walberg):
    database.execute("create table t (id int primary key, i int)")
    done = walberg.call("run", "--once", *walberg.positional(), **cast(**columns))
    assert done.returncode == 2 and says in done.stderr and "tables.public.t.columns" in done.stderr


@pytest.mark.parametrize(("columns", "says"), [
    ({"b": "double"}, "cannot be cast to double"),
    ({"nope": "string"}, "no column nope"),
    ({"b": "time"}, "cannot be cast to time"),
    ({"b": "json"}, "cannot be cast to json"),
    ({"z": "time"}, "it may be string"),
    ({"k": "json"}, "arrays with other lower bounds are alike"),
])
def test_casts_that_the_table_does_not_take(columns, says, database, walberg, lake):
    """That table alone is left out, and check says it beforehand."""
    database.execute("create table t (id int, b bigint, z timetz, k int[], primary key (id, k))",
                     "create table other (id int primary key)", "insert into other values (1)")
    check = walberg.call("check", *walberg.positional(), **cast(**columns))
    assert check.returncode == 1 and says in check.stdout
    walberg.call("run", "--once", *walberg.positional(), **cast(**columns))
    assert says in walberg.log() and not lake.has("t")
    compare(database, lake, ["other"])


def proposals(walberg):
    """What check says of bare numerics: {column: (message, hint)}."""
    done = walberg.call("check", "--json", *walberg.positional())
    assert done.returncode == 0, done.stdout
    items = [i for i in json.loads(done.stdout) if " arrives as text: its " in i["message"]]
    return {i["message"].split()[1]: (i["message"], i["hint"]) for i in items}


def test_check_proposes_casts_that_hold_the_values(database, walberg, lake, tmp_path):
    """The proposal, taken as it stands into walberg.yaml, leaves nothing to reject."""
    database.execute(
        'create table "o\'d ""t" (id int primary key, price numeric, "o\'d ""c" numeric,'
        " tiny numeric, huge numeric, empty numeric, nan numeric, fixed numeric(5,1))",
        "insert into \"o'd \"\"t\" values (1, 12345.6700, -1e15, 0.00012, 1e40, null, 'NaN', 1),"
        " (2, -99999.123, 1.5, 0, 1, null, 7.25, 2)")
    found = proposals(walberg)
    assert set(found) == {"price", "o'd", "tiny", "huge", "nan"}
    assert "need 5 digits before the point and 3 behind it" in found["price"][0]
    assert "need 16 digits before the point and 1 behind it" in found["o'd"][0]
    assert "need 0 digits before the point and 5 behind it" in found["tiny"][0]
    assert "more than the 38" in found["huge"][0] and found["huge"][1] is None
    assert "NaN" in found["nan"][0] and found["nan"][1].endswith('{cast: "decimal(18,2)"}}}}')
    config = tmp_path / "proposed.yaml"
    wanted = [found[c][1].removeprefix("as a decimal: ") for c in ("price", "o'd", "tiny")]
    columns = [w[w.index("{columns: {") + len("{columns: {"):-3] for w in wanted]
    head = wanted[0][:wanted[0].index("{columns: {")]
    config.write_text(f"{head}{{columns: {{{', '.join(columns)}}}}}}}\n")
    walberg.call("run", "--config", str(config), "--once", *walberg.positional(), check=True)
    kinds = {f["name"]: f["type"] for f in lake.table("o'd \"t").schema["fields"]}
    assert kinds["price"] == "decimal(18,3)" and kinds['o\'d "c'] == "decimal(38,1)"
    assert kinds["tiny"] == "decimal(18,5)" and kinds["huge"] == "string"
    columns = 'price, "o\'d ""c", tiny'
    assert rows(walberg, f'select {columns} from "o\'d ""t" order by id') == [
        "12345.670,-1000000000000000.0,0.00012", "-99999.123,1.5,0.00000"]
    assert not lake.has("rejects", "_walberg")
