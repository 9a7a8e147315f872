"""tables.PATTERN.columns: another type in the lake, exactly or as a reject."""
import json

import pytest

from lib.oracle import compare

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
])
def test_casts_that_the_table_does_not_take(columns, says, database, walberg, lake):
    """That table alone is left out, and check says it beforehand."""
    database.execute("create table t (id int primary key, b bigint)",
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
