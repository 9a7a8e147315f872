"""shapes - random tables of every shape, the same again for the same dice.

Keys of any type with an order, of one to three columns; identities of every kind; partitions of
partitions whose leaves have another order of columns; names that need quotes or escapes.

Keys come from a pool that each table has from the beginning, so that an operation never depends on
what the server answered: it names a key, and does nothing where that is not there. So any part of
a workload can be left out and the rest still runs, which is how lib/replay makes it small.
"""
import dataclasses

from lib import values
from lib.oracle import qualified, quoted

PREPARE = [
    "create type colour as enum ('red', 'green', 'dark blue')",
    "create type pair as (x int, y text, z int)",
    "create domain words as text[]",
    "create domain positive as int check (value > 0)",
    "create sequence ticket",                     # volatile, and yet the same each time
]
ICU = ("create collation nocase"
       " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")

# Types whose labels or members change on the way: a value says only what holds whatever happens.
COLOUR = values.Case("colour", [])
PAIR = values.Case("pair", [])
MORE = [
    COLOUR, PAIR,
    values.Case("colour[]", ["{}", "{NULL}"]),
    values.Case("pair[]", ["{}", "{NULL}"]),
    values.Case("words", ["{}", '{a,NULL,"NULL",""}', '{"a,b"}']),
    values.Case("positive", ["1", "2147483647"]),
    values.Case("price[]", ["{}", "{1.5,NULL,-999999.999}"]),
]
NOCASE = values.Case("text", ["a", "A", "b", "\u00e9", "\u00c9", ""])

KEYS = ["smallint", "integer", "bigint", "oid", "real", "double precision", "numeric(12,2)",
        "numeric(38,10)", "numeric", "money", "text", "varchar(20)", "char(5)", "name", '"char"',
        "jsonb", "bytea", "bit(5)", "varbit", "uuid", "date", "time", "timetz", "timestamp",
        "timestamptz", "interval", "mood", "price", "boolean", "integer[]", "text[]", "point3",
        "int4range", "inet", "macaddr", "pg_lsn", "tsvector", "citext", "ltree", "colour", "pair"]
# Values that are equal to Postgres and are not the same bytes.
ALIASES = {"numeric": ["1.0", "1.00", "1"], "double precision": ["0", "-0"], "real": ["0", "-0"],
           "interval": ["1 day", "24:00:00"], "jsonb": ['{"a": 1.0}', '{"a": 1.00}'],
           "citext": ["MiXed", "mixed", "MIXED"], "char(5)": ["ab", "ab  "]}
RANGES = {"integer": "0", "bigint": "0", "smallint": "0", "date": "2000-01-01", "uuid":
          "80000000-0000-0000-0000-000000000000", "numeric(12,2)": "0", "text": "m",
          "timestamp": "2000-01-01", "timestamptz": "2000-01-01 00:00:00+00", "bytea": "\\x80"}
LISTS = {"boolean": ["t", "f"], "mood": ["sad", "ok", "very happy", "it's"]}
HASHES = ["integer", "bigint", "text", "varchar(20)", "char(5)", "name", "uuid", "numeric",
          "double precision", "interval", "jsonb", "bytea", "date", "timestamp", "inet", "citext",
          "text[]", "int4range", "pg_lsn", "mood", "numeric(12,2)"]

NAMES = ["MixedCase", "mixedcase", "with space", 'quo"te', "dot.ted", "sl/ash", "per%cent",
         "select", "it's", "que?ry#frag", "\u8868", "\u00dcml\u00e4ut", "~7E", "tilde~",
         "n" * 63, "\u00e9" * 31, "back\\slash", "plus+and&", "CON", "a", "A"]
SCHEMAS = ["public", "public", "public", "Odd.Sch\u00e9ma", "other"]
COLUMNS = ["Id", "id", "a b", 'x"y', "\u00e9.z", "select", "n" * 63, "p%s", "tab\tle", "x", "X"]


def literal(text, sql=None):
    """A value as SQL. What is long is said in short, so that a script can be read."""
    if text is None:
        return "null"
    if len(text) > 2000 and text in values.LONG:
        start = values.LONG.index(text)
        value = (f"(select string_agg(chr(19968 + i * 7919 % 20000), '' order by i)"
                 f" from generate_series({start}, {start + len(text) - 1}) i)")
    else:
        value = "'" + text.replace("'", "''") + "'"
    return f"{value}::{sql}" if sql else value


def record(text):
    """Of the type pair, however many members it has got, and however they are called."""
    return f"jsonb_populate_record(null::pair, '{text}')"


def value_of(case, dice):
    """SQL of a random value of this type."""
    if case.sql == "colour":
        return f"(enum_range(null::colour))[{dice.randint(1, 4)}]"
    if case.sql == "pair":
        full = ('{"x": %d, "z": %d, "y": "a,\\"b\\\\", "why": ",\\""}'
                % (dice.randint(-9, 9), dice.randint(10, 99)))
        return dice.choice(("null", record("{}"), record(full)))
    if case.sql == "colour[]" and dice.random() < 0.7:
        return "enum_range(null::colour)"
    if case.sql == "pair[]" and dice.random() < 0.7:
        one = record('{"x": %d}' % dice.randint(-9, 9))
        return f"array[null, {one}]"
    if case.rejects and dice.random() < 0.03:
        return literal(dice.choice(case.rejects))
    return literal(case.value(dice))


@dataclasses.dataclass
class Column:
    name: str
    case: values.Case
    extra: str = ""                              # collation, default, generated

    def definition(self, required=False):
        return (f"{quoted(self.name)} {self.case.sql}{self.extra}"
                + (" not null" if required else ""))


@dataclasses.dataclass
class Table:
    name: tuple                                  # (schema, name)
    columns: list
    key: list = dataclasses.field(default_factory=list)      # names of columns
    identity: str = "primary"                    # primary, index, full, full and primary, none
    partition: str = None                        # range, list or hash of the first key column
    levels: int = 1
    big: bool = False                            # a column of large values, stored outside
    few: bool = False                            # few values, so that there are twins
    pool: list = dataclasses.field(default_factory=list)     # of keys, as tuples of SQL
    spare: list = dataclasses.field(default_factory=list)    # column names that are free
    settings: dict = dataclasses.field(default_factory=dict)

    @property
    def sql(self):
        return qualified(self.name)

    @property
    def changes(self):
        """Whether Postgres lets its rows be updated and deleted."""
        return self.identity != "none"

    def column(self, name):
        return next(column for column in self.columns if column.name == name)

    def others(self):
        return [column for column in self.columns
                if column.name not in self.key and "generated" not in column.extra]

    def is_key(self, key):
        return " and ".join(f"{quoted(name)} = {value}"
                            for name, value in zip(self.key, key, strict=True))

    # --- definition ------------------------------------------------------------------------

    def create(self):
        """Statements that make it."""
        keys = ", ".join(map(quoted, self.key))
        parts = [column.definition(column.name in self.key) for column in self.columns]
        if "primary" in self.identity:
            parts.append(f"primary key ({keys})")
        by = f" partition by {self.partition} ({quoted(self.key[0])})" if self.partition else ""
        statements = [f"create table {self.sql} ({', '.join(parts)}){by}"]
        tables = [self.sql]
        if self.partition:
            tables += self.make_leaves(statements)
        if self.identity == "index":
            statements.append(f"create unique index on {self.sql} ({keys})")
        for table in tables:
            if "full" in self.identity:
                statements.append(f"alter table {table} replica identity full")
            elif self.identity == "index":
                statements.append(self.identity_by_index(table))
        if self.big:
            statements.append(f"alter table {self.sql} alter column {quoted('big')}"
                              " set storage external")
        return statements

    def identity_by_index(self, table):
        name = literal(table)
        return ("do $do$ begin execute (select format('alter table %s replica identity using index"
                " %I', i.indrelid::regclass, c.relname) from pg_index i join pg_class c"
                f" on c.oid = i.indexrelid where i.indrelid = {name}::regclass and i.indisunique"
                " and not i.indisprimary limit 1); end $do$")

    def make_leaves(self, statements):
        """Adds the statements; the names of the leaves. One of them has another order of columns
        and a hole, another is partitioned itself."""
        schema, stem = self.name
        stem = "leaf_" + "".join(c for c in stem if c.isalnum())[:15]
        names = []
        for i, bound in enumerate(self.bounds()):
            leaf = qualified((schema, f"{stem}_{i}"))
            names.append(leaf)
            if i == 0:
                parts = [c.definition(c.name in self.key) for c in reversed(self.columns)]
                statements += [f"create table {leaf} (gone int, {', '.join(parts)})",
                               f"alter table {leaf} drop column gone",
                               f"alter table {self.sql} attach partition {leaf} {bound}"]
            elif i == 1 and self.levels > 1:
                statements.append(f"create table {leaf} partition of {self.sql} {bound}"
                                  f" partition by hash ({quoted(self.key[0])})")
                for j in range(2):
                    below = qualified((schema, f"{stem}_{i}_{j}"))
                    names.append(below)
                    statements.append(f"create table {below} partition of {leaf} for values with"
                                      f" (modulus 2, remainder {j})")
            else:
                statements.append(f"create table {leaf} partition of {self.sql} {bound}")
        return names

    def bounds(self):
        sql = self.column(self.key[0]).case.sql
        if self.partition == "range":
            middle = literal(RANGES[sql])
            return [f"for values from (minvalue) to ({middle})",
                    f"for values from ({middle}) to (maxvalue)"]
        if self.partition == "list":
            lists = ", ".join(map(literal, LISTS[sql][1:]))
            return [f"for values in ({literal(LISTS[sql][0])})", f"for values in ({lists})"]
        return [f"for values with (modulus 3, remainder {i})" for i in range(3)]

    def without(self, name):
        """The same without this column, where that is possible."""
        keep = [column for column in self.columns if column.name != name]
        return dataclasses.replace(self, columns=keep, big=self.big and name != "big")


class Shapes:
    """Makes tables from dice and from the types that the server has."""

    def __init__(self, dice, cases, icu=True, major=15):
        self.dice = dice
        self.cases = list(cases) + MORE
        self.by_sql = {case.sql: case for case in self.cases}
        self.icu = icu
        self.major = major
        self.names = NAMES[:]
        self.count = 0

    def name(self):
        self.count += 1
        if self.dice.random() < 0.35 and self.names:
            name = self.names.pop(self.dice.randrange(len(self.names)))
            return (self.dice.choice(SCHEMAS), name)
        return ("public", f"t{self.count}")

    def table(self):
        dice = self.dice
        identity = dice.choice(("primary", "primary", "primary", "index", "full",
                                "full and primary", "none"))
        table = Table(self.name(), [], identity=identity)
        names = COLUMNS[:]
        dice.shuffle(names)
        names = [name if dice.random() < 0.3 else f"c{i}" for i, name in enumerate(names)]
        if identity in ("primary", "index", "full and primary"):
            self.add_key(table, names)
        some = dice.sample(self.cases, dice.randint(1, 6))
        table.columns += [Column(names.pop(), case) for case in some]
        if dice.random() < 0.3:
            table.columns.append(Column("big", self.by_sql["text"]))
            table.big = True
        self.decorate(table, names)
        dice.shuffle(table.columns)
        table.spare = names[:2] + ["spare 1", "spare2"]
        return table

    def decorate(self, table, names):
        """A partition, twins, a column that is computed, partitions in the lake."""
        dice = self.dice
        if table.identity == "full" and dice.random() < 0.7:
            table.few = True
            table.columns = table.columns[:2]
            table.big = any(column.name == "big" for column in table.columns)
        # since 18 Postgres refuses updates where the identity has a column that is not published
        if dice.random() < 0.15 and not (self.major >= 18 and "full" in table.identity):
            table.columns.append(Column(names.pop(), self.by_sql["integer"],
                                        " generated always as (7 * 6) stored"))
        kinds = self.partitions_of(table)
        if kinds and dice.random() < 0.4:
            table.partition = dice.choice(kinds)
            sql = table.column(table.key[0]).case.sql
            table.levels = 2 if sql in HASHES and dice.random() < 0.4 else 1
        if table.name[0] == "public" and table.name[1].isalnum() and dice.random() < 0.25:
            self.partition_lake(table)

    def partitions_of(self, table):
        if not table.key or table.column(table.key[0]).extra:
            return []
        sql = table.column(table.key[0]).case.sql
        return ([kind for kind, fits in (("range", RANGES), ("list", LISTS), ("hash", HASHES))
                 if sql in fits])

    def partition_lake(self, table):
        flat = [column.name for column in table.columns
                if column.name.isalnum() and not column.extra
                and column.case.sql in ("integer", "bigint", "text", "uuid", "date")]
        if not flat:
            return
        name = self.dice.choice(flat)
        term = self.dice.choice((f"bucket[3]({name})", f"bucket[3]({name})", name))
        table.settings[f"tables.{table.name[0]}.{table.name[1]}.partition"] = f"['{term}']"

    def add_key(self, table, names):
        dice = self.dice
        count = dice.choice((1, 1, 1, 2, 3))
        for sql in dice.sample([sql for sql in KEYS if sql in self.by_sql], count):
            case, extra = self.by_sql[sql], ""
            if sql == "text" and self.icu and dice.random() < 0.5:
                case, extra = NOCASE, " collate nocase"
            table.columns.append(Column(names.pop(), case, extra))
        table.key = [column.name for column in table.columns]
        for _ in range(60):
            key = tuple(self.key_value(column.case) for column in table.columns)
            if key not in table.pool:
                table.pool.append(key)

    def key_value(self, case):
        dice = self.dice
        if case.sql == "colour":
            return f"(enum_range(null::colour))[{dice.randint(1, 3)}]"
        if case.sql == "pair":
            return record('{"x": %d, "z": %d}' % (dice.randint(-9, 9), dice.randint(-9, 9)))
        if case.sql in ALIASES and dice.random() < 0.2:
            return literal(dice.choice(ALIASES[case.sql]), case.sql)
        while True:
            value = case.value(dice)
            if value is not None and len(value) < 1000:  # more is too large for an index
                return literal(value, case.sql)

    def wide(self):
        """One table with a column of every type."""
        columns = [Column(f"c{i}", case) for i, case in enumerate(self.cases)]
        key = Column("id", self.by_sql["bigint"])
        pool = [(f"'{n}'::bigint",) for n in range(-20, 20)]
        return Table(("public", "wide"), [key, *columns], ["id"], pool=pool,
                     spare=["spare 1", "spare2"])
