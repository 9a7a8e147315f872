"""workload - random transactions over tables of many kinds, the same again for the same seed.

Inserts, updates of some columns, key changes and swaps, deletes, truncates, insert-delete-insert of
one key; several tables in a transaction; savepoints rolled back and whole transactions rolled back;
values from every type of lib/values; large values that later updates do not touch.

The generator keeps its own list of live keys, so that it never depends on what the server answers
and WALBERG_SEED=n replays it statement for statement.
"""
import copy
import random as randomness
import threading
import time
import uuid

from lib import values


class Table:
    """One table of the workload: how to make it, its keys, and its other columns."""

    def __init__(self, name, key, cases, tail="", after=()):
        self.name = name
        self.key = key                            # [(column, sql type, function of Random)]
        self.columns = [(f"c{i}", case) for i, case in enumerate(cases)]
        keys = [f"{column} {sql} not null" for column, sql, _ in key]
        rest = [f"{column} {case.sql}" for column, case in self.columns]
        primary = [f"primary key ({', '.join(column for column, _, _ in key)})"] if key else []
        self.statements = [f"create table {name} ({', '.join(keys + rest + primary)}){tail}",
                           *after]
        self.live = []                            # keys, as tuples of text
        self.spare = [f"x{i}" for i in range(4)]  # column names that are free

    def new_key(self, random):
        return tuple(make(random) for _, _, make in self.key)

    def names(self):
        """Columns of the rows that Workload.row() makes, in its order."""
        large = ["big"] if self.name == "w_toast" else []
        return [column for column, _, _ in self.key] + [c for c, _ in self.columns] + large

    def where(self):
        return " and ".join(f"{column} = %s" for column, _, _ in self.key)


def number(random):
    return str(random.randint(-10**9, 10**9))


def code(random):
    return random.choice("abcXYZ\u00e9'\"\\ ") + values.words(random, 12)


def identifier(random):
    return str(uuid.UUID(int=random.getrandbits(128)))


class Workload:
    """With alters, tables change their shape on the way, too."""

    def __init__(self, conn, seed, alters=False):
        self.alters = alters
        self.random = randomness.Random(seed)
        self.seed = seed
        self.conn = conn                          # autocommit; transactions are begun here
        if alters:                                # a prepared statement keeps the old types
            conn.prepare_threshold = None
        cases = values.available(conn)
        by_sql = {case.sql: case for case in cases}
        self.cases = by_sql
        few = [by_sql[sql] for sql in ("integer", "text", "timestamptz", "numeric(12,2)")]
        self.tables = [
            Table("w_wide", [("id", "bigint", number)], cases),
            Table("w_text", [("code", "text", code), ("part", "int", number)], few),
            Table("w_uuid", [("uid", "uuid", identifier)], few + [by_sql["integer[]"]]),
            Table("w_toast", [("id", "bigint", number)], few, after=[
                "alter table w_toast add column big text",
                "alter table w_toast alter column big set storage external"]),
            Table("w_part", [("id", "bigint", number)], few, tail=" partition by range (id)",
                  after=["create table w_part_low partition of w_part"
                         " for values from (minvalue) to (0)",
                         "create table w_part_high partition of w_part"
                         " for values from (0) to (maxvalue)"]),
            Table("w_full", [], few[:2], after=["alter table w_full replica identity full"]),
            Table("w_insert_only", [], few),
        ]
        for table in self.tables:
            for statement in table.statements:
                conn.execute(statement)

    @property
    def names(self):
        return [table.name for table in self.tables]

    # --- operations ------------------------------------------------------------------------

    def row(self, table):
        row = [case.value(self.random) for _, case in table.columns]
        if table.name == "w_toast":
            row.append(self.big())
        if table.name == "w_full":                # few values, so that there are twins
            row = [str(self.random.randrange(3)), self.random.choice(("a", "b", None))]
        return row

    def big(self):
        start = self.random.randrange(1000)
        return values.LONG[start:start + self.random.randint(2700, 2900)]

    def insert(self, table, count=None):
        for _ in range(count or self.random.randint(1, 20)):
            key = self.fresh_key(table)
            row = list(key) + self.row(table)
            self.put(table, row)

    def put(self, table, row):
        self.conn.execute(f"insert into {table.name} ({', '.join(table.names())})"
                          f" values ({', '.join(['%s'] * len(row))})", row)

    def fresh_key(self, table):
        if not table.key:
            return ()
        key = table.new_key(self.random)
        while key in table.live:
            key = table.new_key(self.random)
        table.live.append(key)
        return key

    def update(self, table):
        """Some columns of one row; a large value is mostly left alone."""
        if not table.key:
            self.update_twin(table)
            return
        key = self.random.choice(table.live)
        count = self.random.randint(1, min(3, len(table.columns)))
        chosen = self.random.sample(table.columns, count)
        sets = [(column, case.value(self.random)) for column, case in chosen]
        if table.name == "w_toast" and self.random.random() < 0.2:
            sets.append(("big", self.big()))
        self.conn.execute(
            f"update {table.name} set {', '.join(c + ' = %s' for c, _ in sets)}"
            f" where {table.where()}", [value for _, value in sets] + list(key))

    def update_twin(self, table):
        """One row of several equal ones: which one does not matter, how many does."""
        if table.name != "w_full":
            return
        self.conn.execute("update w_full set c1 = %s"
                          " where ctid = (select ctid from w_full limit 1)",
                          [self.random.choice(("a", "b", "c", None))])

    def change_key(self, table):
        if not table.key:
            return
        old = self.random.choice(table.live)
        new = self.fresh_key(table)
        table.live.remove(old)
        self.conn.execute(
            f"update {table.name} set {', '.join(c + ' = %s' for c, _, _ in table.key)}"
            f" where {table.where()}", list(new) + list(old))

    def swap_keys(self, table):
        """Two rows exchange their keys by way of a third, in one transaction."""
        if not table.key or len(table.live) < 2:
            return
        one, two = self.random.sample(table.live, 2)
        spare = self.fresh_key(table)
        table.live.remove(spare)
        sets = ", ".join(c + " = %s" for c, _, _ in table.key)
        for old, new in ((one, spare), (two, one), (spare, two)):
            self.conn.execute(f"update {table.name} set {sets} where {table.where()}",
                              list(new) + list(old))

    def delete(self, table):
        if not table.key:
            if table.name == "w_full":
                self.conn.execute("delete from w_full where ctid in"
                                  " (select ctid from w_full limit 2)")
            return
        for key in self.random.sample(table.live, min(self.random.randint(1, 5), len(table.live))):
            table.live.remove(key)
            self.conn.execute(f"delete from {table.name} where {table.where()}", list(key))

    def flicker(self, table):
        """One key comes and goes many times in a transaction."""
        if not table.key:
            return
        key = self.fresh_key(table)
        for _ in range(self.random.randint(1, 6)):
            self.put(table, list(key) + self.row(table))
            self.conn.execute(f"delete from {table.name} where {table.where()}", list(key))
        table.live.remove(key)

    def truncate(self, table):
        self.conn.execute(f"truncate {table.name}")
        table.live.clear()
        if self.random.random() < 0.7:
            self.insert(table)

    OPERATIONS = [(insert, 30), (update, 40), (delete, 12), (change_key, 6), (swap_keys, 3),
                  (flicker, 3), (truncate, 1)]

    def operate(self, table):
        operations, weights = zip(*self.OPERATIONS, strict=True)
        chosen = self.random.choices(operations, weights)[0]
        if table.key and not table.live:
            chosen = Workload.insert
        chosen(self, table)

    # --- shapes ----------------------------------------------------------------------------

    def add_column(self, table):
        """Some with a default, some under a name that was dropped before."""
        if not table.spare:
            return
        name = table.spare.pop(self.random.randrange(len(table.spare)))
        case = self.cases[self.random.choice(("integer", "text", "numeric(12,2)", "integer[]"))]
        default = ""
        if case.sql in ("integer", "text") and self.random.random() < 0.3:
            default = " default '7'"
        self.conn.execute(f"alter table {table.name} add column {name} {case.sql}{default}")
        table.columns.append((name, case))

    def drop_column(self, table):
        name, _ = self.random.choice(table.columns)
        if len(table.columns) > 1:
            self.conn.execute(f"alter table {table.name} drop column {name}")
            table.columns = [(n, c) for n, c in table.columns if n != name]
            table.spare.append(name)

    def rename_column(self, table):
        if not table.spare:
            return
        at = self.random.randrange(len(table.columns))
        name, case = table.columns[at]
        new = table.spare.pop()
        self.conn.execute(f"alter table {table.name} rename column {name} to {new}")
        table.columns[at] = (new, case)
        table.spare.append(name)

    def change_type(self, table):
        """int to bigint is a promotion; anything to text is not, and rewrites the rows."""
        at = self.random.randrange(len(table.columns))
        name, case = table.columns[at]
        new = "bigint" if case.sql == "integer" else "text"
        self.conn.execute(f"alter table {table.name} alter column {name} type {new}"
                          f" using {name}::{new}")
        table.columns[at] = (name, self.cases[new])

    def alter(self, table):
        if table.name == "w_full":
            return
        change = self.random.choice((Workload.add_column, Workload.add_column,
                                     Workload.drop_column, Workload.rename_column,
                                     Workload.change_type))
        change(self, table)

    # --- transactions ----------------------------------------------------------------------

    def fill(self, rows=50):
        """Rows that are there before anybody looks: what the initial copy must bring."""
        for table in self.tables:
            self.conn.execute("begin")
            self.insert(table, rows)
            self.conn.execute("commit")

    def transaction(self):
        before = self.remember()
        self.conn.execute("begin")
        for _ in range(self.random.choice((1, 1, 2, 3, 8))):
            table = self.random.choice(self.tables)
            if self.alters and self.random.random() < 0.01:
                self.alter(table)
            elif self.random.random() < 0.15:
                self.subtransaction(table)
            else:
                self.operate(table)
        if self.random.random() < 0.1:
            self.conn.execute("rollback")
            self.forget(before)
        else:
            self.conn.execute("commit")

    def subtransaction(self, table):
        before = self.remember()
        self.conn.execute("savepoint s")
        self.operate(table)
        if self.random.random() < 0.5:
            self.conn.execute("rollback to savepoint s")
            self.forget(before)
        else:
            self.conn.execute("release savepoint s")

    def remember(self):
        return [(copy.copy(table.live), copy.copy(table.columns), copy.copy(table.spare))
                for table in self.tables]

    def forget(self, before):
        for table, (live, columns, spare) in zip(self.tables, before, strict=True):
            table.live, table.columns, table.spare = live, columns, spare


class Load(threading.Thread):
    """Transactions until told to stop; what went wrong is raised by stop()."""

    def __init__(self, workload, rate):
        super().__init__(daemon=True)
        self.workload = workload
        self.pause = 1 / rate
        self.halt = threading.Event()
        self.count = 0
        self.error = None

    def run(self):
        try:
            while not self.halt.is_set():
                self.workload.transaction()
                self.count += 1
                time.sleep(self.pause)
        except Exception as error:
            self.error = error

    def stop(self):
        self.halt.set()
        self.join(30)
        if self.error:
            raise self.error
