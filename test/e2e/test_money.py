"""money, which is a number of whatever lc_monetary takes for the smallest unit.

The servers here have locales that the system lacks, made by localedef, so that nothing depends on
which ones are installed. What an amount is, is said by Postgres under that locale: money::numeric.
"""
import json
import os
import pathlib
import subprocess
import tempfile

import psycopg
import pytest

from lib.oracle import compare
from lib.postgres import Postgres
from lib.types_run import TypesRun, table_name

LOCALE = """comment_char %%
escape_char /
LC_MONETARY
int_curr_symbol "EUR "
currency_symbol "EUR"
mon_decimal_point ","
mon_thousands_sep "."
mon_grouping 3;3
positive_sign ""
negative_sign "-"
int_frac_digits %d
frac_digits %d
p_cs_precedes 0
p_sep_by_space 1
n_cs_precedes 0
n_sep_by_space 1
p_sign_posn 1
n_sign_posn 1
END LC_MONETARY
LC_CTYPE
copy "POSIX"
END LC_CTYPE
"""
DIGITS = {"xx_XX": 2, "yy_YY": 0, "zz_ZZ": 3}       # as of euros, yen, dinars


@pytest.fixture(scope="module")
def postgres():
    """A server that has a few locales more than the system."""
    with tempfile.TemporaryDirectory(prefix="walberg-locale-") as folder:
        os.chmod(folder, 0o755)
        for name, digits in DIGITS.items():
            source = pathlib.Path(folder, f"{name}.source")
            source.write_text(LOCALE % (digits, digits))
            # -c: although it warns of the categories that are not there
            subprocess.run(["localedef", "-c", "-i", source, "-f", "ANSI_X3.4-1968",
                            pathlib.Path(folder, name)], capture_output=True, check=False)
            assert pathlib.Path(folder, name, "LC_MONETARY").exists()
        server = Postgres(environment={"LOCPATH": f"{folder}:/usr/lib/locale"})
        yield server
        server.remove()


def use(database, locale):
    """For all sessions of the database."""
    database.server.execute("postgres",
                            f"alter database {database.name} set lc_monetary = '{locale}'")


def test_money_of_another_locale(database, tmp_path):
    """Its text has another decimal point, groups, and its sign and symbol elsewhere."""
    use(database, "xx_XX")
    database.execute("alter role postgres set lc_monetary = 'C'",         # ours, to write values
                     "create role other superuser login")
    try:
        uri = database.server.uri(database.name, "other")
        with psycopg.connect(uri) as conn:
            assert conn.execute("select '-1234567.5'::numeric::money::text").fetchone() == (
                "-1.234.567,50 EUR",)
        run = TypesRun(database, tmp_path, ["money", "money[]", "numeric(12,2)", "text"], uri)
        compare(database, run.lake, [table_name(case) for case in run.cases])
    finally:
        database.execute("alter role postgres reset lc_monetary")


TABLE = ("create domain price as money", "create type item as (label text, cost money, more price)",
         "create table t (id int primary key, m money, a money[], d price, i item, l item[],"
         " b price[])")
# In the smallest unit, whatever it is: 1234 of it, the least and the most.
ROW = ("insert into t select {0} + n, v, array[v, null, v * -1], v, row('x', v, v)::item,"
       " array[row('y', v, null)::item, null], array[v, null] from"
       " unnest(array[1234 * unit, 0 * unit, 92233720368547758.07::numeric * 100 * unit,"
       " -unit]) with ordinality as x(u, n), lateral (select u::money v) y")


def rows_from(start, digits):
    return ROW.replace("unit", f"1e-{digits}::numeric({20 + digits},{digits})").format(start)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("locale", DIGITS)
def test_digits_of_the_locale(locale, version, database, walberg, lake):
    """Copy, stream and the default of an added column; arrays, domains and composites of it."""
    digits = DIGITS[locale]
    use(database, locale)
    walberg.settings["sink.iceberg.format_version"] = version
    with database.connect() as conn:
        assert conn.execute("select scale('7'::money::numeric)").fetchone() == (digits,)
    database.execute(*TABLE, rows_from(0, digits))
    walberg.once()
    copies = walberg.log().count("info copied table=")
    database.execute(rows_from(100, digits), "update t set m = m * 2 where id = 1",
                     "alter table t add n money default '5'", "insert into t (id) values (200)")
    walberg.once()
    compare(database, lake, ["t"])
    table = lake.table("t")
    assert table.field("m")["type"] == f"decimal(19,{digits})"
    if version == 3:
        assert table.field("n")["initial-default"] == f"{5:.{digits}f}"
        assert walberg.log().count("info copied table=") == copies
    assert walberg.call("verify", *walberg.positional()).returncode == 0


def test_a_locale_that_changes(database, walberg, lake):
    """The source itself takes its amounts for others from then on: they are copied again."""
    database.execute("create table t (id int primary key, m money)",
                     "create table n (id int primary key)", "insert into t values (1, '12.34')")
    walberg.once()
    assert lake.table("t").field("m")["type"] == "decimal(19,2)"
    use(database, "yy_YY")
    database.execute("insert into t values (2, '5')")
    with database.connect() as conn:
        assert conn.execute("select m::numeric from t").fetchall() == [(1234,), (5,)]
    before = walberg.log()
    walberg.once()
    compare(database, lake, ["t"])
    assert lake.table("t").field("m")["type"] == "decimal(19,0)"
    log = walberg.log()[len(before):]
    assert "column m changed its type to money (decimal(19,0)), and the lake has it as" in log
    assert log.count("info copied table=") == 1
    walberg.once()
    assert walberg.log().count("info copied table=") == before.count("info copied table=") + 1


def test_a_locale_that_changes_meanwhile(database, walberg, lake):
    """A running program goes by the locale of its start until it looks at the table again."""
    database.execute("create table t (id int primary key, m money)",
                     "insert into t values (1, '7')")
    walberg.start().wait_streaming()
    use(database, "zz_ZZ")
    database.execute("insert into t values (2, '5')")
    walberg.wait_caught_up()
    assert lake.table("t").field("m")["type"] == "decimal(19,2)"
    database.execute("alter table t add x int", "insert into t values (3, '6', 1)")
    walberg.wait_for_log(r"changed its type to money \(decimal.19,3")
    walberg.wait_streaming()
    walberg.wait_caught_up()
    assert walberg.stop() == 0
    compare(database, lake, ["t"])
    assert lake.table("t").field("m")["type"] == "decimal(19,3)"


def test_check_says_for_whom_it_is_another(database, walberg):
    """Only where money is, and only of those whose number of digits is another."""
    def said():
        done = walberg.call("check", "--json", *walberg.positional())
        return [(i["result"], i["message"]) for i in json.loads(done.stdout)
                if i["item"] == "money"]

    use(database, "yy_YY")
    database.execute("create table t (id int primary key, v text)", "create role dinars",
                     "create role euros", "create role yen")
    try:
        database.execute("alter role dinars set lc_monetary = 'zz_ZZ'",
                         f"alter role euros in database {database.name} set lc_monetary = 'C'",
                         "alter role yen set lc_monetary = 'yy_YY'",
                         "alter role yen in database postgres set lc_monetary = 'C'")
        assert said() == []
        database.execute("alter table t add a money[]")
        ours, *others = said()
        assert ours[0] == "ok" and "amounts have 0 digits" in ours[1]
        assert [result for result, _ in others] == ["warn", "warn"]
        assert "zz_ZZ for role dinars: amounts have 3 digits" in others[0][1]
        assert "C for role euros in this database: amounts have 2 digits" in others[1][1]
        assert "0 in the lake" in others[1][1]
    finally:
        database.execute("drop role dinars", "drop role yen",
                         f"alter role euros in database {database.name} reset all",
                         "drop role euros")
