"""oracle - what a table's rows must be in the lake, said by Postgres itself.

The mapping (src/model/type.c, docs/design.md) is written a second time here, as SQL: for each
column an expression whose value is the canonical form of lib/readers as jsonb. No text of a value
is parsed by us on this side, so a wrong parser in walberg cannot be matched by the same wrong
parser here. A value that its lake column cannot hold (NaN in a numeric(p,s), infinity in a date, an
array of another shape) is NULL here, and is counted: the program must have recorded it as a reject.
"""
import collections
import copy
import dataclasses
import json
import struct

from lib.iceberg_check import check_table
from lib.readers import READERS, canonical_float, sort_map

# What every session that reads the truth has; roles and databases may say otherwise.
SESSION = """set datestyle = 'ISO'; set intervalstyle = 'postgres'; set extra_float_digits = 3;
             set timezone = 'UTC'; set bytea_output = 'hex'; set jit = off"""

COLUMNS = """
select a.attname, a.atttypid::int8, a.atttypmod, a.attndims, a.attnotnull
  from pg_attribute a
 where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped
   and a.attgenerated = '' order by a.attnum"""

TYPE = """
select t.typname, t.typtype::text, t.typbasetype::int8, t.typtypmod, t.typelem::int8,
       t.typsubscript = 'array_subscript_handler'::regproc, t.typndims, t.typrelid::int8
  from pg_type t where t.oid = %s"""
TYPE_13 = TYPE.replace("t.typsubscript = 'array_subscript_handler'::regproc",
                       "t.typelem <> 0 and t.typlen = -1")

KEY = """
select a.attname from pg_index i join pg_attribute a
    on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
 where i.indrelid = %s::regclass
   and case (select relreplident from pg_class where oid = i.indrelid)
       when 'i' then i.indisreplident else i.indisprimary end"""

PLAIN = {  # typname: Iceberg type, SQL with {e} for the value
    "bool": ("boolean", "to_jsonb({e})"),
    "int2": ("int", "to_jsonb({e})"),
    "int4": ("int", "to_jsonb({e})"),
    "int8": ("long", "to_jsonb({e})"),
    "oid": ("long", "to_jsonb({e}::int8)"),
    "xid": ("long", "to_jsonb({e}::text::int8)"),
    "float4": ("float", "to_jsonb({e}::text)"),
    "float8": ("double", "to_jsonb({e}::text)"),
    "bytea": ("binary", "to_jsonb(encode({e}, 'hex'))"),
    "uuid": ("uuid", "to_jsonb({e}::text)"),
    "date": ("date", "case when isfinite({e}) then to_jsonb({e} - date '1970-01-01') end"),
    # An Iceberg timestamp is an int64 of microseconds since 1970: Postgres goes 29 years further.
    "timestamp": ("timestamp", "case when isfinite({e}) and"
                  " {e} <= timestamp '294247-01-10 04:00:54.775807' then to_jsonb("
                  "extract(epoch from date_trunc('second', {e}))::int8 * 1000000"
                  " + extract(microseconds from {e})::int8 %% 1000000) end"),
}
# format() calls the output function, as the protocol does. A cast to text is another thing: it
# cuts the padding of char(n) and writes 10.0.0.1 as 10.0.0.1/32.
TEXT = "case when {e} is not null then to_jsonb(format('%s', {e})) end"
# PostGIS prints EWKB; its own function says what that is.
PLAIN["geometry"] = ("binary", "to_jsonb(encode(st_asewkb({e}), 'hex'))")
PLAIN["geography"] = ("binary", "to_jsonb(encode(st_asewkb({e}::geometry), 'hex'))")
PLAIN["timestamptz"] = ("timestamptz", PLAIN["timestamp"][1].replace(
    "{e}", "({e} at time zone 'UTC')"))
FLOATS = ("float", "double")


@dataclasses.dataclass
class Column:
    name: str
    kind: object        # Iceberg's type name, or ("list", kind), ("map",), ("struct", {name: kind})
    sql: str
    required: bool = False

    def canonical(self, value):
        return canonical(self.kind, value)


def canonical(kind, value):
    if value is None:
        return None
    if kind == "float":
        return canonical_float(struct.unpack("f", struct.pack("f", float(value)))[0])
    if kind == "double":
        return canonical_float(value)
    if isinstance(kind, str):
        return value
    if kind[0] == "list":
        return [canonical(kind[1], element) for element in value]
    if kind[0] == "map":
        return sort_map(value)
    return {name: canonical(member, value[name]) for name, member in kind[1].items()}


class Types:
    """Iceberg type and SQL of a Postgres type, looked up in one connection's catalog."""

    def __init__(self, conn):
        self.conn = conn
        self.depth = 0
        self.query = TYPE if conn.info.server_version >= 140000 else TYPE_13

    def look_up(self, oid, typmod, dims, expression):
        name, kind, base, base_typmod, element, is_array, type_dims, relation = self.conn.execute(
            self.query, [oid]).fetchone()
        if kind == "d":
            base_name = self.conn.execute("select format_type(%s, %s)",
                                          [base, base_typmod]).fetchone()[0]
            return self.look_up(base, base_typmod, type_dims or dims,
                                f"({expression})::{base_name}")
        if name == "numeric":
            return numeric(typmod, expression)
        if name == "money":  # as the locale of the role and the database has it
            digits = self.conn.execute("select scale('0'::money::numeric)").fetchone()[0]
            return f"decimal(19,{digits})", f"to_jsonb(({expression})::numeric::text)"
        if name in PLAIN:
            iceberg, sql = PLAIN[name]
            return iceberg, sql.replace("{e}", expression).replace("%%", "%")
        if name == "hstore":
            return ("map",), (
                f"case when ({expression}) is not null then coalesce((select"
                f" jsonb_agg(jsonb_build_array(key, value)) from each({expression})), '[]') end")
        if name in ("vector", "halfvec"):
            return ("list", "float"), f"to_jsonb(({expression})::real[]::text[])"
        if is_array and element and name not in ("oidvector", "int2vector"):
            return self.array(element, typmod, max(dims, 1), expression)
        if kind == "c":
            return self.composite(relation, expression)
        return "string", TEXT.replace("{e}", expression)

    def array(self, element, typmod, dims, expression):
        """Shape as declared (attndims, at least one), lower bounds 1; anything else is a reject."""
        if dims == 1:
            # Not unnest(): it would spread a composite element over several columns.
            self.depth += 1
            i = f"i{self.depth}"
            kind, sql = self.look_up(element, typmod, 0, f"({expression})[{i}]")
            value = (f"(select jsonb_agg({sql} order by {i}) from"
                     f" generate_subscripts({expression}, 1) {i})")
        else:
            kind, _ = self.look_up(element, typmod, 0, "x")
            value = f"to_jsonb({expression})"
        for _ in range(dims):
            kind = ("list", kind)
        shape = " and ".join(f"array_lower({expression}, {i + 1}) = 1" for i in range(dims))
        return kind, (f"case when cardinality({expression}) = 0 then '[]'::jsonb"
                      f" when array_ndims({expression}) = {dims} and {shape} then {value} end")

    def composite(self, relation, expression):
        members, parts = {}, []
        for name, oid, typmod, dims, _ in self.conn.execute(
                COLUMNS.replace("%s::regclass", "%s::int8::oid"), [relation]).fetchall():
            kind, sql = self.look_up(oid, typmod, dims, f"({expression}).{quoted(name)}")
            members[name] = kind
            parts.append("'%s', %s" % (name.replace("'", "''"), sql))
        # A row of NULLs "is null" without being NULL; its text is not.
        return ("struct", members), (f"case when ({expression})::text is not null then"
                                     f" jsonb_build_object({', '.join(parts)}) end")


def numeric(typmod, expression):
    if typmod >= 4:
        precision = (typmod - 4) >> 16 & 0xffff
        scale = (typmod - 4) & 0x7ff
        scale = scale - 0x800 if scale & 0x400 else scale
        if precision <= 38 and 0 <= scale <= precision:
            return f"decimal({precision},{scale})", (
                f"case when ({expression})::text not in ('NaN', 'Infinity', '-Infinity')"
                f" then to_jsonb(({expression})::text) end")
    return "string", f"to_jsonb(({expression})::text)"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def qualified(table):
    """public.orders or ("odd schema", "odd.table") as SQL."""
    parts = table if isinstance(table, tuple) else tuple(table.split("."))
    return ".".join(quoted(part) for part in (("public",) + parts)[-2:])


class Truth:
    """A source table's columns, key and rows, in canonical form."""

    def __init__(self, conn, table, key=None):
        self.name = table
        self.sql = qualified(table)
        conn.execute(SESSION)
        types = Types(conn)
        self.columns = []
        for name, oid, typmod, dims, required in conn.execute(COLUMNS, [self.sql]).fetchall():
            kind, sql = types.look_up(oid, typmod, dims, "t." + quoted(name))
            self.columns.append(Column(name, kind, sql, required))
        self.key = key or [row[0] for row in conn.execute(KEY, [self.sql]).fetchall()]
        chosen = ", ".join(f"({column.sql})::jsonb" for column in self.columns)
        nulls = ", ".join(f"t.{quoted(c.name)}::text is not null" for c in self.columns)
        self.rows, self.rejects = [], 0
        count = len(self.columns)
        # A partitioned table has the rows of its partitions; an inheritance parent only its own.
        only = conn.execute("select case relkind when 'p' then '' else 'only' end from pg_class"
                            " where oid = %s::regclass", [self.sql]).fetchone()[0]
        for row in conn.execute(f"select {chosen}, {nulls} from {only} {self.sql} t"):
            values = tuple(column.canonical(value) for column, value
                           in zip(self.columns, row[:count], strict=True))
            self.rejects += sum(value is None and present for value, present
                                in zip(values, row[count:], strict=True))
            self.rows.append(values)

    @property
    def names(self):
        return [column.name for column in self.columns]

    def without(self, names):
        """The same rows without these columns."""
        keep = [i for i, name in enumerate(self.names) if name not in names]
        other = copy.copy(self)
        other.columns = [self.columns[i] for i in keep]
        other.rows = [tuple(row[i] for i in keep) for row in self.rows]
        return other


def freeze(value):
    return json.dumps(value, ensure_ascii=False)


def blurred(truth, names, rows):
    """PyIceberg 0.12 reads a NULL list of structs as an empty list (also in tables of its own, see
    test_harness): there it has no say about which of the two it is."""
    places = [names.index(column.name) for column in truth.columns
              if column.kind[0] == "list" and column.kind[1][0] == "struct"]
    if not places:
        return rows
    return [tuple([] if value is None and i in places else value for i, value in enumerate(row))
            for row in rows]


def differences(truth, names, rows, limit=10, reader=None):
    """Lines that say what differs: a key, a column, both values. Empty: equal."""
    if reader == "pyiceberg" and sorted(names) == sorted(truth.names):
        rows = blurred(truth, names, rows)
        truth = copy.copy(truth)
        truth.rows = blurred(truth, truth.names, truth.rows)
    lines = []
    if sorted(names) != sorted(truth.names):
        return [f"columns {sorted(names)}, should be {sorted(truth.names)}"]
    order = [names.index(name) for name in truth.names]
    rows = [tuple(row[i] for i in order) for row in rows]
    if not truth.key:
        wanted = collections.Counter(map(freeze, truth.rows))
        got = collections.Counter(map(freeze, rows))
        lines += [f"{n} too few: {row}" for row, n in (wanted - got).items()]
        lines += [f"{n} too many: {row}" for row, n in (got - wanted).items()]
        return shortened(lines, limit)
    places = [truth.names.index(name) for name in truth.key]
    wanted = {freeze([row[i] for i in places]): row for row in truth.rows}
    got = {}
    for row in rows:
        key = freeze([row[i] for i in places])
        if key in got:
            lines.append(f"{key}: twice in the lake")
        got[key] = row
    lines += [f"{key}: not in the lake" for key in wanted if key not in got]
    lines += [f"{key}: in the lake, not in the source" for key in got if key not in wanted]
    for key, row in wanted.items():
        for name, right, left in zip(truth.names, row, got.get(key, row), strict=True):
            if freeze(right) != freeze(left):
                lines.append(f"{key}: {name}: source {right!r:.200}, lake {left!r:.200}")
    return shortened(lines, limit)


def shortened(lines, limit):
    more = len(lines) - limit
    return lines[:limit] + ([f"... and {more} more"] if more > 0 else [])


def schema_differences(truth, table):
    """The lake's column types against the mapping."""
    lines = []
    for column in truth.columns:
        if column.name not in table.columns:
            lines.append(f"{column.name}: not in the lake's schema")
            continue
        field = table.field(column.name)
        if shape(field["type"]) != column.kind:
            lines.append(f"{column.name}: lake {field['type']}, should be {column.kind}")
    return lines


def shape(kind):
    if isinstance(kind, str):
        return kind.replace(", ", ",")  # Java writes decimal(9, 2)
    if kind["type"] == "list":
        return ("list", shape(kind["element"]))
    if kind["type"] == "map":
        assert (kind["key"], kind["value"]) == ("string", "string"), kind
        return ("map",)
    return ("struct", {field["name"]: shape(field["type"]) for field in kind["fields"]})


def compare(database, lake, tables, readers=READERS, check=True, called=None):
    """Every table equal by value through every reader, and its metadata true. Returns the rows.
    called: names in the lake of those that are called otherwise there."""
    complaints = []
    total = 0
    found = lake.tables()
    for name in tables:
        with database.connect() as conn:
            truth = Truth(conn, name)
        total += len(truth.rows)
        where = (called or {}).get(name, name)
        where = tuple(where.split(".")) if isinstance(where, str) and "." in where else where
        table = found.get(where if isinstance(where, tuple) else ("public", where))
        if table is None:
            complaints.append(f"{name}: not in the lake, which has {sorted(found)}")
            continue
        complaints += [f"{name}: {line}" for line in schema_differences(truth, table)]
        if check:
            complaints += [f"{name}: {line}" for line in check_table(table, len(truth.rows))]
        for reader in readers:
            try:
                names, rows = READERS[reader](table)
            except Exception as error:  # a reader that cannot read it is a finding like any other
                complaints.append(f"{name}: {reader} cannot read it: {error}")
                continue
            complaints += [f"{name}: {reader}: {line}"
                           for line in differences(truth, names, rows, reader=reader)]
    assert not complaints, "\n".join(complaints[:60])
    return total


def is_equal(database, lake, tables):
    """The same as a question, by the quickest reader: to wait for it."""
    try:
        compare(database, lake, tables, readers=["duckdb"], check=False)
        return True
    except AssertionError:
        return False
