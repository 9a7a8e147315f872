"""What stands in the lake beside the rows, as other programs may rely on it: words of snapshots,
columns and tables, and the records of rejected values. Read as JSON, or by readers that are not
ours."""
import dataclasses
import datetime
import decimal
import json
import re
import subprocess

import psycopg
import pytest

from lib.env import PROGRAM, wait_for
from lib.oracle import compare
from lib.postgres import lsn
from lib.readers import READERS

EPOCH_2000 = 946684800 * 1000000        # of Postgres, in microseconds since 1970

def version():
    said = subprocess.run([PROGRAM, "version", "--json"], capture_output=True, check=True)
    return json.loads(said.stdout)["walberg"]


@dataclasses.dataclass
class Commit:
    record: int         # WAL position of the commit record
    end: int            # and of what follows the transaction
    microseconds: int   # commit time, since 1970


def commits(database, slot):
    """All that the slot has, said by pgoutput itself: byte 'C', flags, both positions, microseconds
    since 2000 (protocol-logicalrep-message-formats)."""
    rows = database.rows(
        "select data from pg_logical_slot_peek_binary_changes(%s, null, null, 'proto_version', '1',"
        " 'publication_names', %s) where get_byte(data, 0) = ascii('C')", [slot, slot])
    return [Commit(*(int.from_bytes(data[at:at + 8], "big") + more
                     for at, more in ((2, 0), (10, 0), (18, EPOCH_2000)))) for (data,) in rows]


def test_snapshots_say_what_they_are(database, walberg, lake):
    """Of the copy, of each commit of the stream, of one that only deletes, of a truncate."""
    database.execute("create table t (id int primary key)",
                     "insert into t select generate_series(1, 10)")
    walberg.once()
    [first] = lake.table("t").metadata["snapshots"]
    made = []
    for change in ("insert into t values (11)", "delete from t where id = 3", "truncate t",
                   "insert into t values (1)"):
        database.execute(change)
        made += commits(database, f"walberg_{database.name}")[-1:]
        walberg.once()
    table = lake.table("t")
    snapshots = table.metadata["snapshots"]
    for snapshot in snapshots:
        summary = snapshot["summary"]
        assert summary["cdc.pipeline"] == database.name
        assert summary["engine-name"] == "walberg" and summary["engine-version"] == version()
        assert summary["operation"] in ("append", "overwrite", "delete", "replace")
    assert "cdc.commit-time" not in first["summary"]          # it is of no one commit
    assert first["summary"]["cdc.position"] == database.rows(
        "select %s::pg_lsn::text", [first["summary"]["cdc.position"]])[0][0]
    said = [s["summary"] for s in snapshots if s["snapshot-id"] != first["snapshot-id"]]
    assert len(said) == len(made) == 4
    for summary, commit in zip(said, made, strict=True):
        assert lsn(summary["cdc.position"]) == commit.end
        when = datetime.datetime.fromisoformat(summary["cdc.commit-time"].replace("Z", "+00:00"))
        assert int(when.timestamp() * 1000) == commit.microseconds // 1000
    assert table.metadata["properties"]["cdc.position"] == said[-1]["cdc.position"]
    assert table.metadata["properties"]["cdc.pipeline"] == database.name
    compare(database, lake, ["t"])


def test_columns_say_their_type_and_number(database, walberg, lake):
    """As format_type prints it, through ALTER TABLE; walberg.attnums has pg_attribute.attnum."""
    database.execute(
        "create type mood as enum ('a')", 'create schema "S p"', 'create domain "S p".d as numeric',
        'create table t (id bigint primary key, gone int, n numeric(6,2), bare numeric, c char(3),'
        ' vc varchar(20)[], at timestamp(3) with time zone, i interval day to second, m mood,'
        ' d "S p".d, b bit varying(4), j jsonb, "Odd ""name" "char")',
        "alter table t drop column gone", "insert into t (id) values (1)")

    def check():
        table = lake.table("t")
        truth = {name: (kind, number) for name, kind, number in database.rows(
            "select attname, format_type(atttypid, atttypmod), attnum"
            " from set_config('search_path', 'pg_catalog', false), pg_attribute"
            " where attrelid = 'public.t'::regclass and attnum > 0 and not attisdropped")}
        [newest] = database.rows("select max(attnum) from pg_attribute where attrelid ="
                                 " 't'::regclass")
        numbers = dict(map(int, pair.split(":")) for pair in
                       table.metadata["properties"]["walberg.attnums"].split(","))
        said = {f["name"]: (f["doc"], numbers.pop(f["id"])) for f in table.schema["fields"]}
        assert said == truth and numbers == {0: newest[0]}   # dropped ones, too, are not new
        return said

    walberg.once()
    assert check()["m"] == ("public.mood", 9)
    database.execute("alter table t rename n to price", "alter table t add column late date",
                     "alter table t alter column vc type varchar(30)[]",
                     "alter table t drop column j", "alter table t add column j json",
                     "insert into t (id, price, late) values (2, 2, '2026-01-02')")
    walberg.once()
    assert check()["price"] == ("numeric(6,2)", 3)
    compare(database, lake, ["t"])


def test_records_of_rejected_values(database, walberg, lake):
    """The copy's are of its snapshot and of no one commit, so they have no commit time."""
    database.execute("create table t (id int, k text, n numeric(6,2), day date,"
                     " primary key (id, k))",
                     "insert into t values (1, 'o''\"', 'NaN', 'infinity')")
    walberg.once()
    copied = lsn(lake.table("t").summary["cdc.position"])
    slot = f"walberg_{database.name}"
    database.execute("begin; insert into t values (2, E'\\\\\u00e9\\n', 7, '-infinity');"
                     " insert into t values (3, '', 'NaN', null); commit",
                     "update t set day = 'infinity' where id = 3")
    first, second = commits(database, slot)[-2:]
    walberg.once()
    names, rows = READERS["java"](lake.table("rejects", "_walberg"))
    assert names == ["position", "commit_time", "schema", "table", "key", "column", "type", "value",
                     "reason"]
    assert all(re.fullmatch("[0-9A-F]+/[0-9A-F]+", row[0]) and row[2:4] == ("public", "t")
               and row[8] for row in rows)
    key = [{"id": 1, "k": "o'\""}, {"id": 2, "k": "\\\u00e9\n"}, {"id": 3, "k": ""}]
    said = [(lsn(row[0]), row[1], json.loads(row[4]), *row[5:8]) for row in rows]
    assert sorted(said, key=str) == sorted([
        (copied, None, key[0], "n", "numeric(6,2)", "NaN"),
        (copied, None, key[0], "day", "date", "infinity"),
        (first.record, first.microseconds, key[1], "day", "date", "-infinity"),
        (first.record, first.microseconds, key[2], "n", "numeric(6,2)", "NaN"),
        (second.record, second.microseconds, key[2], "day", "date", "infinity"),
        (second.record, second.microseconds, key[2], "n", "numeric(6,2)", "NaN"),
    ], key=str)


def test_bare_numerics_are_numbers_to_queries_while_that_is_exact(database, walberg, lake):
    """decimal(38, s) while all values that were ever written fit one, text from then on: in the
    lake they are text at all times. RowDescription says which."""
    numeric, text = 1700, 25                      # oids in pg_type.dat
    database.execute("create table t (id int primary key, n numeric, wide numeric, odd numeric)",
                     "insert into t values (1, 12.50, 1, 1), (2, -7, null, 2), (3, 0.001, 3, null)")
    walberg.start().wait_streaming()

    def shown():
        walberg.wait_caught_up()
        wait_for("query server", lambda: walberg.try_connect() is not None)
        with walberg.try_connect() as conn:
            cursor = conn.execute("select n, wide, odd from t order by id")
            return ([(c.type_code, c.precision, c.scale) for c in cursor.description],
                    cursor.fetchall())

    kinds, rows = shown()
    assert kinds == [(numeric, 38, 3), (numeric, 38, 0), (numeric, 38, 0)]
    assert rows == [tuple(None if v is None else decimal.Decimal(v) for v in row) for row in
                    database.rows("select n, wide, odd from t order by id")]
    assert walberg.query("select sum(n) from t where n > -8 and wide is not null") == [
        (decimal.Decimal("12.501"),)]
    database.execute("update t set n = 1e-10 where id = 1",
                     "insert into t values (4, null, 1e37, 'NaN')")
    kinds, rows = shown()
    assert kinds == [(numeric, 38, 10), (numeric, 38, 0), (text, None, None)]
    assert rows == [(a, b, None if c is None else str(c)) for a, b, c in
                    database.rows("select n, wide, odd from t order by id")]
    database.execute("delete from t where id = 4", "update t set wide = 0.1 where id = 2")
    kinds, rows = shown()                         # 38 digits and one more do not fit, ever written
    assert kinds == [(numeric, 38, 10), (text, None, None), (text, None, None)]
    assert rows == [(a, None if b is None else str(b), None if c is None else str(c)) for a, b, c in
                    database.rows("select n, wide, odd from t order by id")]
    with pytest.raises(psycopg.errors.Error):     # a text is no number, as in Postgres
        walberg.query("select sum(wide) from t")
    assert walberg.query("select sum(wide::decimal(38, 1)) from t") == [(decimal.Decimal("4.1"),)]
    assert walberg.stop() == 0
    compare(database, lake, ["t"])
    properties = lake.table("t").metadata["properties"]
    assert {k: v for k, v in properties.items() if k.startswith("walberg.numeric.")} == {
        "walberg.numeric.n": "2,10", "walberg.numeric.wide": "38,1", "walberg.numeric.odd": "text"}
