"""The table of rejects, _walberg.rejects: whose it is, and what queries see of it."""
from lib.readers import READERS


def recorded(lake):
    """(table, key) of all rejects, by a reader that is not ours."""
    names, rows = READERS["java"](lake.table("rejects", "_walberg"))
    return sorted((row[names.index("table")], row[names.index("key")]) for row in rows)


def test_a_source_table_cannot_take_its_place(database, walberg, lake):
    """Neither one that comes later nor one that is there first; the others go on."""
    database.execute("create table t (id int primary key, n numeric(6, 2))",
                     "insert into t values (1, 'NaN')")
    walberg.once()
    assert recorded(lake) == [("t", '{"id":1}')]
    database.execute('create schema "_walberg"',
                     'create table "_walberg".rejects (id int primary key)',
                     'create table "_walberg"."db.json" (id int primary key)',
                     'insert into "_walberg".rejects values (1)',
                     "insert into t values (2, 'NaN'), (3, 3)")
    checked = walberg.call("check", *walberg.positional())
    assert checked.returncode == 1
    assert "FAIL table _walberg.rejects: the lake's namespace _walberg is walberg's own" \
        in checked.stdout

    assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
    assert recorded(lake) == [("t", '{"id":1}'), ("t", '{"id":2}')]
    errors = {t["name"]: t["error"] for t in walberg.status()["tables"]}
    assert errors.pop("public.t") is None
    assert len(errors) == 2 and all("walberg's own" in e for e in errors.values()), errors

    elsewhere = {"sink__iceberg__namespace": "pg_{schema}"}
    walberg.once(source__tables="['*.*', '!_walberg.*']")
    assert walberg.call("check", *walberg.positional(), **elsewhere).returncode == 0
