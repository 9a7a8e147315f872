"""values - Postgres types and values that have broken replication tools, by type.

Each type has edge values and, where it pays, a way to make random ones. Values are the text that
Postgres reads; None is NULL. What a lake column cannot hold stands under `rejects`.
"""
import dataclasses
import uuid

PREPARE = [
    "create type mood as enum ('sad', 'ok', 'very happy', 'it''s')",
    "create domain price as numeric(10,3) check (value > -1000000)",
    "create type point3 as (x int4, label text, y numeric(8,2))",
    "create type nested as (p point3, tags text[])",
    "create domain prices as price[]",
    "create domain spot as point3",
    "create type deep as (n nested, all_n nested[], pr price, m mood, ms mood[], r int4range)",
]


@dataclasses.dataclass
class Case:
    sql: str
    edges: list
    random: object = None                    # function of a random.Random
    rejects: list = dataclasses.field(default_factory=list)
    extension: str = None
    since: int = 0                           # major version of the server that has it

    def value(self, random):
        choice = random.random()
        if choice < 0.1:
            return None
        if self.random and choice < 0.7:
            return self.random(random)
        return random.choice(self.edges)


def integers(bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return [str(low), "-1", "0", "1", str(high)], lambda r: str(r.randint(low, high))


def words(random, longest=40):
    letters = "abc \t\n\\\"',{}()[]NULL\u00e9\u4e16\U0001f600%_$"
    return "".join(random.choice(letters) for _ in range(random.randrange(longest)))


def decimals(precision, scale):
    def make(random):
        digits = random.randrange(10 ** random.randint(1, precision))
        text = str(digits).rjust(scale + 1, "0")
        sign = random.choice(("", "-"))
        return sign + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)
    return make


def day(random):
    return f"{random.randint(1, 9999):04}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


def clock(random):
    return (f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}"
            f".{random.randrange(10**6):06}")


def array(make):
    def quote(value):
        if value is None:
            return "NULL"
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def generate(random):
        return "{" + ",".join(quote(make(random) if random.random() < 0.9 else None)
                              for _ in range(random.randrange(5))) + "}"
    return generate


LONG = "".join(chr(0x4e00 + i * 7919 % 20000) for i in range(4000))  # 12 kB, hard to compress

CASES = [
    Case("boolean", ["t", "f"]),
    Case("smallint", *integers(16)),
    Case("integer", *integers(32)),
    Case("bigint", *integers(64)),
    Case("oid", ["0", "1", "4294967295"]),
    Case("xid", ["0", "3", "4294967295"]),
    Case("real", ["0", "-0", "0.1", "1e-45", "3.4028235e38", "16777217", "NaN", "Infinity",
                  "-Infinity", "1.17549435e-38"], lambda r: repr(r.uniform(-1e6, 1e6))),
    Case("double precision", ["0", "-0", "0.1", "5e-324", "1.7976931348623157e308", "NaN",
                              "Infinity", "-Infinity", "9007199254740993",
                              "2.2250738585072014e-308"],
         lambda r: repr(r.uniform(-1e300, 1e300))),
    Case("numeric(12,2)", ["0", "-0.01", "9999999999.99", "-9999999999.99", "0.10"],
         decimals(12, 2), rejects=["NaN"]),
    Case("numeric(9,0)", ["0", "999999999", "-999999999"], decimals(9, 0)),
    Case("numeric(18,18)", ["0.999999999999999999", "-0.000000000000000001", "0"]),
    Case("numeric(38,0)", ["9" * 38, "-" + "9" * 38, "0", "1"], decimals(38, 0)),
    Case("numeric(38,10)", ["9" * 28 + "." + "9" * 10, "-0.0000000001", "1"], decimals(38, 10)),
    Case("numeric", ["0", "1.10", "NaN", "1e-20", "-" + "9" * 60 + "." + "9" * 20, "0.000"]),
    Case("numeric(50,5)", ["9" * 45 + ".00001", "NaN", "-1"]),
    Case("money", ["0", "-1.5", "92233720368547758.07", "-92233720368547758.08", "1234.56"]),
    Case("text", ["", " ", "NULL", "\\N", "\\.", "a\tb\nc\rd\\e", "\u00e9\u4e16\U0001f600",
                  "x" * 300, LONG, "\u2028\u0085\ufeff", "'\"`$$", "\x01\x7f"], words),
    Case("varchar(20)", ["", "  trailing  ", "\u4e16" * 20], lambda r: words(r, 20)),
    Case("char(5)", ["", "ab", "abcde", "\u00e9"]),
    Case("name", ["", "a_name"]),
    Case('"char"', ["a", ""]),
    Case("json", ['{"a": 1, "a":  2}', "null", '"\\u00e9"', "[1.10, 1e400]", " {} "]),
    Case("jsonb", ['{"b": [1, 2.50, null], "a": "x\\ty"}', "null", "[]", '"text"',
                   "123456789012345678901234567890.0001"]),
    Case("bytea", ["\\x", "\\x00", "\\xdeadbeef", "\\x" + "00ff5c27" * 600],
         lambda r: "\\x" + r.randbytes(r.randrange(30)).hex()),
    Case("bit(5)", ["00000", "10101"]),
    Case("varbit", ["", "1", "0" * 70]),
    Case("uuid", ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
         lambda r: str(uuid.UUID(int=r.getrandbits(128)))),
    Case("date", ["1970-01-01", "1969-12-31", "2000-02-29", "0001-01-01", "0001-12-31 BC",
                  "4713-01-01 BC", "5874897-12-31", "10000-01-01"], day,
         rejects=["infinity", "-infinity"]),
    Case("time", ["00:00:00", "23:59:59.999999", "24:00:00", "12:00"], clock),
    Case("time(0)", ["23:59:59"]),
    Case("timetz", ["00:00:00+00", "23:59:59.999999-15:59", "12:00+05:30"]),
    Case("timestamp", ["1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00",
                       "4713-01-01 00:00:00 BC", "294247-01-10 04:00:54.775807",
                       "2026-03-29 02:30:00.000001"], lambda r: f"{day(r)} {clock(r)}",
         rejects=["infinity", "-infinity", "294247-01-10 04:00:54.775808"]),
    Case("timestamptz", ["1970-01-01 00:00:00+00", "2026-10-25 01:30:00+02",
                         "294247-01-10 04:00:54.775807+00", "4713-01-02 00:00:00+00 BC",
                         "1890-01-01 00:00:00+00"], lambda r: f"{day(r)} {clock(r)}+00",
         rejects=["infinity", "-infinity", "294276-12-31 23:59:59.999999+00"]),
    Case("interval", ["0", "1 year -2 months 3 days 04:05:06.789", "-00:00:01", "178000000 years",
                      "00:00:00.000001"]),
    Case("mood", ["sad", "ok", "very happy", "it's"]),
    Case("price", ["0", "12.345", "-999999.999"]),
    Case("integer[]", ["{}", "{1,2,3}", "{NULL}", "{-2147483648,NULL,2147483647}"],
         array(lambda r: str(r.randint(-9, 9))), rejects=["[2:3]={1,2}", "{{1,2},{3,4}}"]),
    Case("text[]", ["{}", '{""}', '{NULL,"NULL",null}', '{"a,b","c\\"d","e\\\\f","{}"," "}'],
         array(words)),
    Case("bigint[][]", ["{}", "{{1,2},{3,4}}", "{{NULL}}"], rejects=["{1,2}"]),
    Case("numeric(12,2)[]", ["{1.10,-2.00}", "{}"]),
    Case("timestamptz[]", ['{"2026-01-01 00:00:00+00",NULL}']),
    Case("uuid[]", ["{00000000-0000-0000-0000-000000000001}"]),
    Case("double precision[]", ["{NaN,Infinity,-0,0.1}", "{}"]),
    Case("boolean[]", ["{t,f,NULL}"]),
    Case("bytea[]", ['{"\\\\x00ff","\\\\x"}']),
    Case("mood[]", ['{sad,"very happy"}']),
    Case("point3", ["(1,a,2.50)", '(,,)', '(-1,"with ""quotes"", and \\\\",0)', '(1,"",)']),
    Case("nested", ['("(1,a,2.50)","{x,NULL}")', "(,)", '("(,,)",{})']),
    Case("point3[]", ['{"(1,a,2.50)",NULL,"(,,)"}', "{}"]),
    Case("int4range", ["empty", "[1,5)", "(,)", "[3,)"]),
    Case("tstzrange", ['["2026-01-01 00:00:00+00","2026-02-01 00:00:00+00")']),
    Case("numeric[]", ["{1.10,NaN,-1e30,NULL}", "{}"]),
    Case("date[]", ["{2026-01-01,NULL}", "{0044-03-15 BC}"]),
    Case("timestamp[]", ['{"2026-01-01 00:00:00.000001",NULL}']),
    Case("time[]", ["{24:00:00,NULL}"]),
    Case("interval[]", ['{"1 year -3 days",NULL}']),
    Case("money[]", ["{1.5,-2,NULL}"]),
    Case("varchar(5)[]", ['{"a b","",NULL}']),
    Case("char(3)[]", ["{ab,abc}"]),
    Case("bit(3)[]", ["{101,NULL}"]),
    Case("jsonb[]", ['{"{\\"a\\": [1, null]}",NULL,"null"}']),
    Case("inet[]", ["{10.0.0.1/8,::1}"]),
    Case("int4range[]", ['{"[1,5)",empty,NULL}']),
    Case("price[]", ["{1.5,NULL}", "{}"]),
    Case("prices", ["{1.5,NULL}", "{}"]),
    Case("spot", ["(1,a,2.50)", "(,,)"]),
    Case("deep", ['("(""(1,a,2.50)"",{x})","{""(,)""}",1.5,sad,"{ok,NULL}","[1,2)")',
                  "(,{},,,,)", "(,{},,,{},empty)"]),
    Case("hstore[]", ['{"a=>1",NULL}', "{}"], extension="hstore"),
    Case("text[][]", ["{}", "{{a,NULL},{\"b c\",\"\"}}"]),
    Case("integer[][][]", ["{{{1,2}},{{3,NULL}}}"]),
    Case("numrange", ["(1.5,2.50]", "empty"]),
    Case("daterange", ["[2026-01-01,)"]),
    Case("tsrange", ['["2026-01-01 00:00:00","2026-02-01 00:00:00")']),
    Case("int8range", ["[1,5)"]),
    Case("int4multirange", ["{}", "{[1,3),[5,)}"], since=14),
    Case("tstzmultirange", ['{["2026-01-01 00:00:00+00","2026-02-01 00:00:00+00")}'], since=14),
    Case("numeric(5,-2)", ["12300", "-9999900", "0"], since=15),
    Case("numeric(3,5)", ["0.00123", "0"], since=15),
    Case("macaddr8", ["08:00:2b:01:02:03:04:05"]),
    Case("line", ["{1,-1,0}"]),
    Case("lseg", ["[(0,0),(1,1.5)]"]),
    Case("box", ["(1,1),(0,0)"]),
    Case("path", ["[(0,0),(1,1)]", "((0,0),(1,1))"]),
    Case("polygon", ["((0,0),(1,1),(1,0))"]),
    Case("circle", ["<(0,0),1.5>"]),
    Case("jsonpath", ['$."a"[*]?(@ > 1)']),
    Case("tid", ["(0,1)"]),
    Case("cid", ["7"]),
    Case("xid8", ["18446744073709551615"]),
    Case("pg_snapshot", ["10:20:10,14"]),
    Case("regclass", ["pg_class"]),
    Case("regtype", ["integer"]),
    Case("oidvector", ["1 2 3"]),
    Case("int2vector", ["1 2 3"]),
    Case("inet", ["10.0.0.1/8", "::1", "192.168.0.1"]),
    Case("cidr", ["10.0.0.0/8"]),
    Case("macaddr", ["08:00:2b:01:02:03"]),
    Case("point", ["(1,2)", "(NaN,-0)"]),
    Case("tsvector", ["'a':1A 'b':2,3"]),
    Case("tsquery", ["'a' & !'b'"]),
    Case("pg_lsn", ["0/0", "FFFFFFFF/FFFFFFFF"]),
    Case("xml", ["<a>b &amp; c</a>"]),
    Case("hstore", ["", 'a=>1, b=>NULL, "c d"=>"x\\"y"', '""=>""'], extension="hstore"),
    Case("citext", ["MiXed", ""], extension="citext"),
    Case("citext[]", ['{MiXed,NULL,""}', "{}"], extension="citext"),
    Case("ltree", ["a.b.c", ""], extension="ltree"),
    Case("ltree[]", ["{a.b.c,NULL}"], extension="ltree"),
    Case("lquery", ["*.a{1,2}.!b|c@*"], extension="ltree"),
    Case("ltxtquery", ["a & !b@*"], extension="ltree"),
    Case("query_int", ["1&(2|!3)"], extension="intarray"),
    Case("cube", ["(1,2),(3,4.5)", "(0)", "()"], extension="cube"),
    Case("cube[]", ['{"(1, 2),(3, 4)",NULL}'], extension="cube"),
    Case("seg", ["1 .. 2.50", "~1.0", "<3", "5(+-)0.3"], extension="seg"),
    Case("seg[]", ['{"1 .. 2",NULL}'], extension="seg"),
    Case("isbn", ["0-393-04002-X", "978-0-393-04002-9"], extension="isn"),
    Case("isbn13[]", ["{978-0-393-04002-9,NULL}"], extension="isn"),
    Case("issn", ["1436-4522"], extension="isn"),
    Case("ismn", ["M-2306-7118-7"], extension="isn"),
    Case("ean13", ["978-0-393-04002-9"], extension="isn"),
    Case("upc", ["220356483481"], extension="isn"),
    Case("lo", ["4294967295"], extension="lo"),                      # a domain of oid
    Case("earth", ["(6378168, 0, 0)"], extension="earthdistance"),   # a domain of cube
]

PGVECTOR = [
    Case("vector", ["[1,2.5,-3e-7]", "[0]", "[-0,3.4028235e38,1e-45]",
                    "[" + ",".join(str(i / 7) for i in range(2000)) + "]"]),
    Case("vector(3)", ["[0.1,0.2,0.3]"]),
    Case("vector(3)[]", ['{"[1,2,3]",NULL,"[4,5,6.5]"}', "{}"]),
    Case("halfvec", ["[1,2.5,-0]", "[65504,6e-8]"]),
    Case("halfvec[]", ['{"[1]","[2,3]"}']),
    Case("sparsevec", ["{1:1,3:-2.5}/5", "{}/3"]),
    Case("sparsevec[]", ['{"{1:1}/2",NULL}']),
    Case("embedded", ["[1,2]"]),
    Case("chunk", ['(a,"[1,2]","{""[3]"",NULL}")', "(,,)"]),
]
PGVECTOR_PREPARE = ["create extension vector", "create domain embedded as vector",
                    "create type chunk as (t text, v vector, vs vector[])"]

POSTGIS = [
    Case("geometry", ["POINT(1 2)", "SRID=4326;POINT Z (1 2 3)", "POINT EMPTY",
                      "LINESTRING M (0 0 1, 1 1 2)", "CIRCULARSTRING(0 0, 1 1, 2 0)",
                      "GEOMETRYCOLLECTION(POINT(1 1),POLYGON((0 0,1 0,1 1,0 0)))"]),
    Case("geometry(PointZM,3857)", ["SRID=3857;POINT ZM (1 2 3 4)"]),
    Case("geometry[]", ["{0101000000000000000000F03F0000000000000040:NULL}", "{}"]),
    Case("geography", ["POINT(-71.06 42.28)", "SRID=4267;POINT(1 2)", "POLYGON EMPTY"]),
    Case("geography(Point)", ["POINT(180 -90)"]),
    Case("geography[]", ["{0101000020E6100000000000000000F03F0000000000000040:NULL}"]),
    Case("box2d", ["BOX(1 2,3 4)"]),
    Case("box3d", ["BOX3D(1 2 3,4 5 6)"]),
    Case("geometry_dump", ['("{1,2}",0101000000000000000000F03F0000000000000040)', "(,)"]),
    Case("place", ["POINT(1 2)"]),
]
POSTGIS_PREPARE = ["create extension postgis", "create domain place as geometry(Point)"]


def available(conn):
    """The cases whose extension this server has, with extensions and types made."""
    have = {row[0] for row in conn.execute("select name from pg_available_extensions")}
    for name in sorted({case.extension for case in CASES if case.extension} & have):
        conn.execute(f"create extension if not exists {name} cascade")
    for statement in PREPARE:
        conn.execute(statement)
    major = conn.info.server_version // 10000
    return [case for case in CASES
            if (case.extension is None or case.extension in have) and case.since <= major]
