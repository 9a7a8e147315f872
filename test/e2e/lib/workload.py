"""workload - random transactions over the tables of lib/shapes, the same again for the same seed.

Inserts, updates, key changes and swaps, deletes, truncates, one key that comes and goes; savepoints
by the dozen; transactions rolled back, prepared, and prepared and rolled back; values from every
type, some of them again as they were copied; large values that later updates do not touch; and,
with alters, tables that change their shape.

A transaction is a list of statements that can be printed, taken apart (lib/replay) and run by
anybody: none depends on what the server answered to another. One that fails takes its transaction
with it, and that is all.
"""
import copy
import dataclasses
import random as randomness
import threading
import time

import psycopg

from lib import values
from lib.oracle import quoted
from lib.shapes import ICU, PREPARE, SCHEMAS, Column, Shapes, literal, value_of


@dataclasses.dataclass
class Statement:
    """As it is. tables: names of those it is about; columns: without one of them it has no use."""
    sql: str
    tables: tuple = ()
    columns: tuple = ()

    def without(self, table, column):
        return None if table in self.tables and column in self.columns else self


@dataclasses.dataclass
class Create:
    table: object

    @property
    def tables(self):
        return (self.table.name,)

    @property
    def sql(self):
        return ";\n".join(self.table.create())

    def without(self, table, column):
        return Create(self.table.without(column)) if self.table.name == table else self


@dataclasses.dataclass
class Insert:
    """A row, unless its key is there."""
    tables: tuple
    target: str
    row: dict

    @property
    def sql(self):
        columns = ", ".join(map(quoted, self.row))
        return (f"insert into {self.target} ({columns}) values ({', '.join(self.row.values())})"
                " on conflict do nothing")

    def without(self, table, column):
        if table not in self.tables or column not in self.row:
            return self
        return Insert(self.tables, self.target,
                      {name: value for name, value in self.row.items() if name != column})


@dataclasses.dataclass
class Update:
    tables: tuple
    target: str
    sets: dict
    where: str

    @property
    def sql(self):
        sets = ", ".join(f"{quoted(name)} = {value}" for name, value in self.sets.items())
        return f"update {self.target} t set {sets} where {self.where}"

    def without(self, table, column):
        if table not in self.tables or column not in self.sets:
            return self
        sets = {name: value for name, value in self.sets.items() if name != column}
        return Update(self.tables, self.target, sets, self.where) if sets else None


@dataclasses.dataclass
class Transaction:
    """end: commit, rollback; "prepare NAME"; "alone" for what cannot be in a transaction."""
    statements: list
    end: str = "commit"

    def run(self, conn):
        """None, or the error because of which nothing of it happened."""
        try:
            if self.end != "alone":
                conn.execute("begin")
            for statement in self.statements:
                conn.execute(statement.sql)
            if self.end.startswith("prepare "):
                conn.execute("prepare transaction '%s'" % self.end.removeprefix("prepare "))
            elif self.end != "alone":
                conn.execute(self.end)
            return None
        except psycopg.Error as error:
            if conn.closed:
                raise
            conn.execute("rollback")
            return error

    def text(self):
        lines = [statement.sql + ";" for statement in self.statements]
        if self.end == "alone" or (self.end == "commit" and len(lines) == 1):
            return "\n".join(lines)
        end = self.end
        if end.startswith("prepare "):
            end = "prepare transaction '%s'" % end.removeprefix("prepare ")
        return "\n".join(["begin;", *lines, end + ";"])


def server_types(conn):
    """(cases that this server has, whether it has ICU), with all types made. The notices of what
    it has not are nobody's business."""
    cases = values.available(conn)
    for statement in PREPARE:
        conn.execute(statement)
    try:
        conn.execute(ICU)
        icu = True
    except psycopg.Error:
        icu = False
    for schema in sorted(set(SCHEMAS) - {"public"}):
        conn.execute(f"create schema {quoted(schema)}")
    return cases, icu


class Workload:
    """Of `count` tables and one with every type. alters: how often one changes its shape.

    next() says what to do; transaction() does it. Types and schemas are made at once, tables by
    fill(), or by who runs creates()."""

    def __init__(self, conn, seed, alters=0.0, count=8):
        self.conn = conn
        self.seed = seed
        self.alters = alters
        self.random = randomness.Random(seed)
        conn.prepare_threshold = None             # a prepared statement keeps the old types
        conn.execute("set lock_timeout = '2s'")
        cases, icu = server_types(conn)
        shapes = Shapes(self.random, cases, icu, conn.info.server_version // 10000)
        self.cases = shapes.by_sql
        self.tables = [shapes.table() for _ in range(count)] + [shapes.wide()]
        self.rows = {table.name: [] for table in self.tables}   # some that the copy brings
        self.queue = []                           # what has to come next
        self.before = self.remember()
        self.prepared = 0
        self.failed = self.done = 0
        self.types_changed = 0

    @property
    def names(self):
        return [table.name for table in self.tables]

    @property
    def settings(self):
        return {key: value for table in self.tables for key, value in table.settings.items()}

    # --- rows ------------------------------------------------------------------------------

    def value(self, table, column):
        if table.few:
            return value_of(column.case, self.random) if self.random.random() < 0.02 else (
                literal(column.case.edges[0]) if column.case.edges else "null")
        if column.name == "big" and table.big:
            start = self.random.randrange(1000)
            return literal(values.LONG[start:start + self.random.randint(2700, 2900)])
        return value_of(column.case, self.random)

    def row(self, table):
        """Without the key; now and then one that the copy has brought already."""
        others = table.others()
        known = self.rows[table.name]
        if known and self.random.random() < 0.15:
            row = self.random.choice(known)
            if set(row) == {column.name for column in others}:
                return row
        return {column.name: self.value(table, column) for column in others}

    def key(self, table):
        return self.random.choice(table.pool)

    def put(self, table, key=None):
        row = dict(zip(table.key, key or self.key(table), strict=True)) if table.key else {}
        return Insert((table.name,), table.sql, {**row, **self.row(table)})

    def where(self, table):
        """One row, or some; of tables without a key by what they are, so that it is the same."""
        if table.key and self.random.random() < 0.8:
            return table.is_key(self.key(table))
        if table.key and self.random.random() < 0.5:
            return f"md5(t::text) < '{self.random.randrange(16):x}'"
        some = self.random.choice((1, 1, 2, 5))
        return (f"(tableoid, ctid) in (select tableoid, ctid from {table.sql} t order by"
                f" md5(t::text) limit {some} offset (select (count(*) * {self.random.random():.2f})"
                f"::int from {table.sql}))")

    # --- operations ------------------------------------------------------------------------

    def insert(self, table):
        return [self.put(table) for _ in range(self.random.randint(1, 12))]

    def update(self, table):
        columns = table.others()
        if not columns:
            return self.insert(table)
        chosen = self.random.sample(columns, self.random.randint(1, min(3, len(columns))))
        if table.big and self.random.random() < 0.8:     # a large value is mostly left alone
            chosen = [column for column in chosen if column.name != "big"] or chosen
        sets = {column.name: self.value(table, column) for column in chosen}
        if self.random.random() < 0.1:
            sets = {column.name: quoted(column.name) for column in chosen}
        return [Update((table.name,), table.sql, sets, self.where(table))]

    def move(self, table, old, new):
        """Another key, unless it is taken. Equal to the old one it may be, in other bytes."""
        taken = f"not exists (select from {table.sql} where {table.is_key(new)})"
        same = " and ".join(f"{a} = {b}" for a, b in zip(old, new, strict=True))
        return Update((table.name,), table.sql, dict(zip(table.key, new, strict=True)),
                      f"{table.is_key(old)} and ({same} or {taken})")

    def change_key(self, table):
        if not table.key:
            return self.update(table)
        return [self.move(table, self.key(table), self.key(table))]

    def swap_keys(self, table):
        if not table.key or len(table.pool) < 3:
            return self.update(table)
        one, two, spare = self.random.sample(table.pool, 3)
        return [self.move(table, *pair) for pair in ((one, spare), (two, one), (spare, two))]

    def delete(self, table):
        return [Statement(f"delete from {table.sql} t where {self.where(table)}", (table.name,))
                for _ in range(self.random.choice((1, 1, 2, 5)))]

    def flicker(self, table):
        """One key comes and goes many times."""
        if not table.key:
            return self.insert(table)
        key = self.key(table)
        gone = Statement(f"delete from {table.sql} where {table.is_key(key)}", (table.name,))
        turns = [step for _ in range(self.random.randint(1, 8))
                 for step in (self.put(table, key), gone)]
        return turns[self.random.randrange(2):][:-self.random.randrange(2) or None]

    def truncate(self, table):
        chosen = [table, *self.random.sample(self.tables, self.random.choice((0, 0, 2)))]
        names = {other.name: other.sql for other in chosen}
        tail = self.random.choice(("", " restart identity", " cascade"))
        return [Statement(f"truncate {', '.join(names.values())}{tail}", tuple(names)),
                *(self.insert(table) if self.random.random() < 0.7 else [])]

    def touch_all(self, table):
        return [Update((table.name,), table.sql, {column.name: self.value(table, column)}, "true")
                for column in self.random.sample(table.others(), min(1, len(table.others())))]

    CHANGES = [(insert, 35), (update, 40), (delete, 10), (change_key, 8), (swap_keys, 3),
               (flicker, 4), (truncate, 0.7), (touch_all, 0.7)]
    ADDITIONS = [(insert, 40), (truncate, 1)]

    def operate(self, table):
        kinds, weights = zip(*(self.CHANGES if table.changes else self.ADDITIONS), strict=True)
        return self.random.choices(kinds, weights)[0](self, table)

    # --- shapes ----------------------------------------------------------------------------

    def alter(self, table):
        changes = [self.add_column, self.add_column, self.drop_column, self.rename_column,
                   self.change_type, self.storage, self.rename_words, self.rename_words]
        if not table.partition:
            changes += [self.change_identity, self.rewrite, self.new_key, self.widen_key]
        return self.random.choice(changes)(table)

    def altered(self, table, words, *columns):
        return [Statement(f"alter table {table.sql} {words}", (table.name,), columns)]

    def add_column(self, table):
        """Some with a default, some under a name that was dropped before."""
        if not table.spare:
            return []
        name = table.spare.pop(self.random.randrange(len(table.spare)))
        case = self.cases[self.random.choice(("integer", "text", "numeric(12,2)", "integer[]"))]
        default = ""
        if case.sql in ("integer", "text") and self.random.random() < 0.3:
            default = self.random.choice((" default '7'", " default nextval('ticket')"))
        table.columns = [*table.columns, Column(name, case)]
        return self.altered(table, f"add column {quoted(name)} {case.sql}{default}", name)

    @staticmethod
    def replace(table, old, new):
        table.columns = [new if column is old else column for column in table.columns]

    def droppable(self, table):
        return [column for column in table.others() if not (column.name == "big" and table.big)]

    def drop_column(self, table):
        columns = self.droppable(table)
        if len(columns) < 2:
            return []
        name = self.random.choice(columns).name
        table.columns = [column for column in table.columns if column.name != name]
        table.spare.append(name)
        return self.altered(table, f"drop column {quoted(name)}", name)

    def rename_column(self, table):
        columns = self.droppable(table)
        if not table.spare or not columns:
            return []
        column = self.random.choice(columns)
        new = dataclasses.replace(column, name=table.spare.pop())
        self.replace(table, column, new)
        table.spare.append(column.name)
        return self.altered(table, f"rename column {quoted(column.name)} to {quoted(new.name)}",
                            column.name, new.name)

    def change_type(self, table):
        """int to bigint is a promotion; anything to text is not, and rewrites the rows."""
        columns = [column for column in self.droppable(table) if not column.extra]
        if not columns:
            return []
        column = self.random.choice(columns)
        sql = {"smallint": "integer", "integer": "bigint", "real": "double precision"}.get(
            column.case.sql, "text")
        self.replace(table, column, dataclasses.replace(column, case=self.cases[sql]))
        name = quoted(column.name)
        return self.altered(table, f"alter column {name} type {sql} using {name}::{sql}",
                            column.name)

    def storage(self, table):
        column = self.random.choice(table.columns)
        if column.case.sql != "text":
            return []
        kind = self.random.choice(("external", "extended", "main"))
        return self.altered(table, f"alter column {quoted(column.name)} set storage {kind}",
                            column.name)

    def change_types(self):
        """Another label of an enum, another attribute of a composite, in every table that has
        them; only when no row of the old shape is on its way: see the README."""
        self.types_changed += 1
        return Transaction([Statement(self.random.choice((
            f"alter type colour add value 'new {self.types_changed}'",
            f"alter type pair add attribute z{self.types_changed} int")))])

    def rename_words(self, _):
        """Labels and attributes under another name, or two that swap theirs, in every table."""
        self.types_changed += 1
        new = literal(f"new {self.types_changed}")
        label = ("(select enumlabel from pg_enum where enumtypid = 'colour'::regtype"
                 " order by enumsortorder limit 1 offset {})").format
        attribute = ("(select attname from pg_attribute where attrelid = 'pair'::regclass"
                     " and attnum = {})").format
        value = "execute format('alter type colour rename value %L to %L', {}, {});".format
        member = "execute format('alter type pair rename attribute %I to %I', {}, {});".format
        one, two = self.random.sample(range(3), 2)
        body = self.random.choice((
            f"begin {value(label(one), new)}",
            f"declare a text := {label(one)}; b text := {label(two)};"
            f" begin {value('a', new)} {value('b', 'a')} {value(new, 'b')}",
            f"begin if {attribute(2)} = 'y' then {member(attribute(2), literal('why'))}"
            f" else {member(attribute(2), literal('y'))} end if;",
            f"declare a text := {attribute(1)}; b text := {attribute(3)};"
            f" begin {member('a', new)} {member('b', 'a')} {member(new, 'b')}"))
        return [Statement(f"do $do$ {body} end $do$")]

    def change_identity(self, table):
        if "primary" not in table.identity or any(
                "generated" in column.extra for column in table.columns):
            return []
        table.identity = self.random.choice(("primary", "full and primary"))
        return self.altered(table, "replica identity "
                            + ("full" if "full" in table.identity else "default"))

    def new_key(self, table):
        """The same columns in another order, under a constraint that is made anew."""
        if "primary" not in table.identity:
            return []
        keys = ", ".join(map(quoted, self.random.sample(table.key, len(table.key))))
        keys = keys.replace("'", "''").replace("%", "%%")
        return [Statement("do $do$ begin execute (select format('alter table %s drop constraint"
                          f" %I, add primary key ({keys})',"
                          " conrelid::regclass, conname) from pg_constraint where contype = 'p'"
                          f" and conrelid = {literal(table.sql)}::regclass); end $do$",
                          (table.name,))]

    def widen_key(self, table):
        small = [table.column(name) for name in table.key
                 if table.column(name).case.sql == "integer"]
        if not small:
            return []
        self.replace(table, small[0], dataclasses.replace(small[0], case=self.cases["bigint"]))
        return self.altered(table, f"alter column {quoted(small[0].name)} type bigint")

    def rewrite(self, table):
        """All rows anew: the same ones, or others of which the stream says nothing."""
        texts = [column for column in self.droppable(table) if column.case.sql == "text"]
        if not texts or self.random.random() < 0.3:
            self.queue.append(Transaction(
                [Statement(f"vacuum full {table.sql}", (table.name,))], "alone"))
            return []
        name = self.random.choice(texts).name
        return self.altered(table, f"alter column {quoted(name)} type text"
                            f" using upper({quoted(name)})", name)

    # --- transactions ----------------------------------------------------------------------

    def creates(self):
        return [Transaction([Create(copy.deepcopy(table))], "commit") for table in self.tables]

    def fills(self, rows=50):
        """Rows that are there before anybody looks: what the initial copy must bring."""
        made = []
        for table in self.tables:
            statements = [self.put(table) for _ in range(rows)]
            self.rows[table.name] = [{name: value for name, value in statement.row.items()
                                      if name not in table.key} for statement in statements[:10]]
            made.append(Transaction(statements))
        return made

    def fill(self, rows=50):
        for transaction in self.creates() + self.fills(rows):
            error = transaction.run(self.conn)
            assert error is None, f"{error}: {transaction.text()[:2000]}"

    def transaction(self):
        self.run(self.next())

    def run(self, transaction):
        error = transaction.run(self.conn)
        self.done += 1
        if error:
            self.failed += 1
            self.forget(self.before)              # what it would have altered
        return error

    def next(self):
        if self.queue:
            return self.queue.pop(0)
        before = self.before = self.remember()
        statements = []
        for _ in range(self.random.choice((1, 1, 2, 3, 8))):
            table = self.random.choice(self.tables)
            if self.random.random() < self.alters:
                statements += self.alter(table)
            elif self.random.random() < 0.15:
                statements += self.subtransactions(table)
            else:
                statements += self.operate(table)
        chance = self.random.random()
        if chance < 0.1:
            self.forget(before)
            return Transaction(statements, "rollback")
        if chance < 0.13:
            return self.prepare(statements, before)
        return Transaction(statements)

    def prepare(self, statements, before):
        """In two steps, with another transaction between them."""
        self.prepared += 1
        name = f"walberg {self.seed} {self.prepared}"
        end = self.random.choice(("commit", "commit", "rollback"))
        if end == "rollback":
            self.forget(before)
        ending = Transaction([Statement(f"{end} prepared '{name}'")], "alone")
        busy = {table for statement in statements for table in statement.tables}
        free = [table for table in self.tables if table.name not in busy]
        if free:
            self.queue.append(Transaction(self.operate(self.random.choice(free))))
        self.queue.append(ending)
        return Transaction(statements, f"prepare {name}")

    def subtransactions(self, table):
        """One, or dozens, some of them inside others."""
        statements = []
        for _ in range(self.random.choice((1, 1, 1, 1, 30))):
            before = self.remember()
            some = self.operate(table)
            if self.random.random() < 0.2:
                some = [Statement("savepoint below"), *some, *self.operate(table),
                        Statement(self.random.choice(("release below", "rollback to below")))]
            end = "release s"
            if self.random.random() < 0.5:
                end = "rollback to s"
                self.forget(before)
            statements += [Statement("savepoint s"), *some, Statement(end)]
        return statements

    def remember(self):
        """Columns are never changed, only replaced."""
        return [(t.columns, t.spare[:], t.identity) for t in self.tables]

    def forget(self, before):
        for table, (columns, spare, identity) in zip(self.tables, before, strict=True):
            table.columns, table.spare, table.identity = columns, spare, identity


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
        while self.workload.queue:                # a prepared transaction holds up every new slot
            self.workload.transaction()
