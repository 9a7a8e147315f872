"""The query server on lakes that PyIceberg wrote (position deletes by hand): what psql, psycopg and
plain bytes on the wire and pgjdbc get back."""
import datetime
import decimal
import json
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time
import uuid

import psycopg
import pyarrow as pa
import pytest
from pyiceberg import types as t
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.schema import Schema

from lib import foreign
from lib.env import CACHE, PROGRAM, ROOT, free_port, kill, listening, wait_for
from lib.storage import Storage
from lib.walberg import environment


class QueryServer:
    """`walberg query` on a warehouse."""

    def __init__(self, storage, folder, **variables):
        self.port = free_port()
        self.log_path = folder / "query.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(PROGRAM), "query", storage.uri, "-v", "--set", f"state={folder / 'state'}",
                 "--set", f"query.listen=127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                env=environment(storage, **variables))
        wait_for("query server", self.ready, 60)

    def ready(self):
        assert self.process.poll() is None, self.log_path.read_text()
        return listening(self.port)

    def connect(self, **settings):
        return psycopg.connect(host="127.0.0.1", port=self.port, user="ann", dbname="shop",
                               **{"autocommit": True, **settings})

    def psql(self, *commands, check=True):
        done = subprocess.run(
            ["psql", "-XAt", "-h", "127.0.0.1", "-p", str(self.port), "-U", "ann", "shop",
             *(part for command in commands for part in ("-c", command))],
            capture_output=True, text=True, timeout=60, check=False, env=environment())
        assert not check or done.returncode == 0, done.stderr
        return done


@pytest.fixture
def serve(tmp_path):
    started = []

    def start(storage, **variables):
        started.append(QueryServer(storage, tmp_path, **variables))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            assert kill(server.process, 15) == 0, server.log_path.read_text()
        assert "AddressSanitizer" not in server.log_path.read_text(), server.log_path.read_text()


@pytest.fixture
def lake(tmp_path):
    (tmp_path / "lake").mkdir()
    return Storage(tmp_path / "lake")


@pytest.fixture
def things(lake, serve):
    """A server on foreign.rows() as public.things, without the row with id 2."""
    foreign.with_position_deletes(foreign.write(lake), [1])
    return serve(lake)


def folder_name(name):
    """As the file catalog spells it: bytes but letters, digits, '_', '-', '.' become ~XX."""
    return "".join(chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_-.")
                   else f"~{byte:02X}" for byte in name.encode())


def table_of(storage, name, schema, *batches, space="public"):
    """A table made by PyIceberg, and the function that publishes its present state."""
    root = f"file://{storage.uri}"
    catalog = InMemoryCatalog("foreign", warehouse=root)
    catalog.create_namespace(space)
    folder = pathlib.Path(storage.uri) / space / folder_name(name)
    table = catalog.create_table(f"{space}.{name}", schema, f"file://{folder}")
    versions = []

    def publish(change=None):
        metadata = json.loads(storage.read(table.metadata_location))
        if change:
            change(metadata)
        versions.append(metadata)
        path = folder / "metadata" / f"v{len(versions)}.metadata.json"
        path.write_text(json.dumps(metadata))
        (folder / "metadata" / "version-hint.text").write_text(str(len(versions)))

    for batch in batches:
        table.append(pa.Table.from_pylist(batch, schema=table.schema().as_arrow()))
    return table, publish


NUMBERS = Schema(t.NestedField(1, "id", t.LongType(), required=True),
                 t.NestedField(2, "name", t.StringType()))


def numbers(first, last):
    return [{"id": i, "name": f"n{i}"} for i in range(first, last)]


# --- clients -----------------------------------------------------------------------------------


def test_psql(things):
    assert things.psql("select id, name from things order by id").stdout \
        == "1|h\u00e9\u2028llo\n\n3|\n"
    assert things.psql("\\dt").stdout == "public|things|table|walberg\n"
    described = things.psql("\\d things").stdout.splitlines()
    assert described[0] == "id|bigint||not null|"
    assert "price|numeric(12,2)|||" in described
    assert "tags|text[]|||" in described
    assert things.psql("\\dn").stdout == "public|walberg\n"
    assert things.psql("begin", "select 1", "commit").stdout == "BEGIN\n1\nCOMMIT\n"
    # several statements in one message: up to the first that fails
    done = things.psql("select 1; select nope from things; select 3", check=False)
    assert done.stdout == "1\n"
    assert 'column "nope" does not exist\nLINE 1: select 1; select nope from' in done.stderr


@pytest.mark.parametrize("binary", [False, True])
def test_values(things, binary):
    columns = [name for name in foreign.rows()[0] if binary is False or name not in
               ("attrs", "pair")]  # no binary form
    with things.connect() as conn:
        cursor = conn.cursor(binary=binary)
        cursor.execute(f"select {', '.join(columns)} from things order by id")
        got = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    first, strange = got
    wanted = foreign.rows()[0]
    assert first["real"] == pytest.approx(wanted["real"], rel=1e-7)
    assert first["uid"] == uuid.UUID(int=5)
    for name in columns:
        if name not in ("real", "uid", "attrs", "pair"):
            assert first[name] == wanted[name], name
    if not binary:
        assert first["attrs"] == {"z": "1", "a": None}  # json
        assert first["pair"] == ("1", None)
    assert str(first["wide"]) == "-0.0"
    assert str(strange["real"]) == "nan" and strange["wide"] == float("inf")
    assert strange["tags"] == [] and strange["name"] == "" and strange["price"] is None


def test_column_types(things):
    with things.connect() as conn:
        cursor = conn.execute("select *, count(*) over () from things")
        types = {column.name: column.type_code for column in cursor.description}
    # OIDs of pg_type.dat
    assert types == {"id": 20, "flag": 16, "small": 23, "real": 700, "wide": 701, "price": 1700,
                     "day": 1082, "at": 1114, "at_tz": 1184, "name": 25, "raw": 17, "uid": 2950,
                     "tags": 1009, "attrs": 114, "pair": 2249, "count": 20}
    assert cursor.description[5].precision == 12 and cursor.description[5].scale == 2


def test_empty_texts_are_not_null(lake, serve):
    """Nor in what is printed as JSON."""
    pairs = t.MapType(10, t.StringType(), 11, t.StringType(), value_required=False)
    _, publish = table_of(lake, "empty", Schema(
        t.NestedField(1, "text", t.StringType()), t.NestedField(2, "raw", t.BinaryType()),
        t.NestedField(3, "attrs", pairs), t.NestedField(4, "tags", t.ListType(
            12, t.StringType(), element_required=False))),
        [{"text": "", "raw": b"", "attrs": [("a", ""), ("b", None), ("", "c")],
          "tags": ["", None]}])
    publish()
    with serve(lake).connect() as conn:
        assert conn.execute("select * from empty").fetchall() == [
            ("", b"", {"a": "", "b": None, "": "c"}, ["", None])]


def test_parameters(things):
    utc = datetime.timezone.utc
    with things.connect() as conn:
        def one(sql, *values):
            return conn.execute(sql, values).fetchone()

        assert one("select id from things where id = %s", 3) == (3,)
        assert one("select id from things where id = %b", 3) == (3,)
        assert one("select id from things where name = %s", "") == (3,)
        assert one("select count(*) from things where id = any(%s)", [1, 2, 3]) == (2,)
        assert one("select id from things where at_tz > %s",
                   datetime.datetime(2026, 1, 1, tzinfo=utc)) == (1,)
        assert one("select id from things where uid = %s", uuid.UUID(int=5)) == (1,)
        assert one("select id from things where raw = %s", b"\x00\xff") == (1,)
        assert one("select id from things where raw = %b", b"\x00\xff") == (1,)
        assert one("select id from things where price = %s",
                   decimal.Decimal("1234567890.10")) == (1,)
        assert one("select id from things where day = %s", datetime.date(1, 1, 1)) == (1,)
        assert one("select %s, %s, %s::int, %s", "it's $1 \\", 1.5, "7", None) \
            == ("it's $1 \\", 1.5, 7, None)
        assert one("select %s + 1 from things limit %s", 1, 1) == (2,)
        for _ in range(8):  # psycopg prepares the statement on the way
            assert one("select name from things where id = %s", 3) == ("",)


def test_transactions_see_one_state(lake, serve):
    table, publish = table_of(lake, "t", NUMBERS, numbers(0, 10))
    publish()
    server = serve(lake)
    with server.connect() as conn, server.connect() as other:
        conn.execute("begin")
        assert conn.execute("select count(*) from t").fetchone() == (10,)
        table.append(pa.Table.from_pylist(numbers(10, 15), schema=table.schema().as_arrow()))
        publish()
        wait_for("the new snapshot", lambda: other.execute("select count(*) from t").fetchone()
                 == (15,), 10)
        assert conn.execute("select count(*) from t").fetchone() == (10,)
        conn.execute("commit")
        assert conn.execute("select count(*) from t").fetchone() == (15,)


def test_errors_break_a_transaction(things):
    with things.connect() as conn:
        conn.execute("begin")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            conn.execute("select nope from things")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            conn.execute("select 1")
        assert conn.execute("commit").statusmessage == "ROLLBACK"
        with conn.transaction(), conn.transaction():  # savepoints
            assert conn.execute("select 1").fetchone() == (1,)
        with conn.pipeline():
            cursors = [conn.execute("select %s::int", (i,)) for i in range(5)]
        assert [cursor.fetchone()[0] for cursor in cursors] == list(range(5))


@pytest.mark.parametrize("sql, sqlstate", [
    ("selec 1", "42601"),
    ("select * from nope", "42P01"),
    ("select nope from things", "42703"),
    ("select nope(1)", "42883"),
    ("select 'x'::nope", "42704"),
    ("select id, count(*) from things", "42803"),
    ("select sum('x')", "42883"),
    ("select 'x'::int", "22P02"),
    ("select 9223372036854775807 + 1", "22003"),
    ("insert into things values (1)", "25006"),
    ("drop table things", "25006"),
    ("with x as (select 1) delete from things", "25006"),
    ("copy things to stdout", "0A000"),
    ("declare c cursor for select 1", "0A000"),
    ("select 1 similar to 'x'", "0A000"),
    ("set timezone = 'Europe/Paris'", "0A000"),
    ("set nope = 1", "42704"),
    ("show nope", "42704"),
    ("deallocate nope", "26000"),
    ("attach '/tmp/x.db'", "42601"),
    ("pragma database_list", "42601"),
    ("select * from '/etc/passwd'", "42P01"),
    ("select * from read_csv('/etc/passwd')", "42501"),
    ("select * from duckdb_settings()", "42501"),
    ("select getvariable('x')", "42501"),
    ("/* x", "42601"),
])
@pytest.mark.parametrize("extended", [False, True])
def test_sqlstates(things, sql, sqlstate, extended):
    with things.connect(prepare_threshold=0 if extended else None) as conn:
        with pytest.raises(psycopg.Error) as failure:
            conn.execute(sql)
        assert failure.value.sqlstate == sqlstate
        assert conn.execute("select 1").fetchone() == (1,)


def test_the_lakes_own_files_are_out_of_reach(things, lake):
    data = next(pathlib.Path(lake.uri).rglob("*.parquet"))
    with things.connect() as conn:
        for sql in [f"select * from '{data}'", f"select * from read_parquet('{data}')",
                    f"select * from \"{data.with_suffix('')}\".parquet",
                    f"select * from parquet_metadata('{data}')",
                    f"with \"{data}\" as (select 1) select * from (select * from \"{data}\")",
                    f"copy (select 1) to '{data}'"]:
            with pytest.raises(psycopg.Error):
                conn.execute(sql)


# --- cancel and the end ------------------------------------------------------------------------

FOREVER = "select sum(a.x * b.x % 7) from range(3000000) a(x), range(3000000) b(x)"


def test_cancel_and_timeout(things):
    with things.connect() as conn:
        threading.Timer(0.5, conn.cancel).start()
        start = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="due to user request"):
            conn.execute(FOREVER)
        assert time.monotonic() - start < 10
        conn.execute("set statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="due to statement timeout"):
            conn.execute(FOREVER)
        conn.execute("set statement_timeout = 0")
        assert conn.execute("select 1").fetchone() == (1,)


def test_a_wrong_key_cancels_nothing(things):
    with things.connect() as conn:
        with socket.create_connection(("127.0.0.1", things.port)) as other:
            other.sendall(struct.pack(">IIII", 16, 80877102, conn.info.backend_pid, 12345))
            assert other.recv(10) == b""
        assert conn.execute("select 1").fetchone() == (1,)


def test_shutdown_tells_clients(things):
    conn = things.connect()
    running = things.connect()
    failures = []

    def run():
        try:
            running.execute(FOREVER)
        except psycopg.Error as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.5)
    assert kill(things.process, 15) == 0
    thread.join(10)
    assert failures
    with pytest.raises(psycopg.errors.AdminShutdown):
        conn.execute("select 1")


def test_too_many_clients(things):
    conns = [things.connect() for _ in range(100)]
    with pytest.raises(psycopg.OperationalError, match="too many clients"):
        things.connect()
    conns[0].cancel()
    conns.pop().close()
    wait_for("a free place", lambda: not is_refused(things), 10)
    for conn in conns:
        conn.close()


def is_refused(server):
    try:
        server.connect().close()
        return False
    except psycopg.OperationalError:
        return True


@pytest.mark.parametrize("bytes_sent", [
    b"GET / HTTP/1.1\r\n\r\n",
    struct.pack(">II", 8, 80877103) + b"\x16\x03\x01",   # TLS although the answer is N
    struct.pack(">IHH", 8, 2, 0),
    struct.pack(">IHH", 12, 3, 0) + b"user",
    struct.pack(">IHH", 9, 3, 0) + b"\0" + b"Q\x7f\xff\xff\xff",
    struct.pack(">IHH", 9, 3, 0) + b"\0" + b"?\0\0\0\4",
])
def test_nonsense_on_the_wire(things, bytes_sent):
    with socket.create_connection(("127.0.0.1", things.port)) as client:
        client.sendall(bytes_sent)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(10)
        while client.recv(1000):
            pass
    with things.connect() as conn:
        assert conn.execute("select 1").fetchone() == (1,)


def test_protocol_versions(things):
    """3.9999 and an unknown option are negotiated down to 3.2, with a long cancel key."""
    with socket.create_connection(("127.0.0.1", things.port)) as client:
        body = struct.pack(">HH", 3, 9999) + b"user\0ann\0_pq_.x\0on\0\0"
        client.sendall(struct.pack(">I", len(body) + 4) + body)
        client.settimeout(10)
        answer = b""
        while b"Z\0\0\0\5I" not in answer:
            answer += client.recv(4096)
    assert answer.startswith(b"v\0\0\0\x13\0\3\0\2\0\0\0\1_pq_.x\0R\0\0\0\x08\0\0\0\0")
    assert b"K\0\0\0\x28" in answer  # 4 + 4 + 32


def test_portals_in_pieces(things):
    """Two portals read in turns inside a transaction, as JDBC does with a fetch size."""
    def message(kind, body=b""):
        return kind + struct.pack(">I", len(body) + 4) + body

    def open_portal(name, sql):
        return (message(b"P", name + b"\0" + sql + b"\0\0\0")
                + message(b"B", name + b"\0" + name + b"\0" + b"\0\0\0\0\0\0"))

    with socket.create_connection(("127.0.0.1", things.port)) as client:
        client.settimeout(10)
        body = struct.pack(">HH", 3, 0) + b"user\0ann\0\0"
        client.sendall(struct.pack(">I", len(body) + 4) + body)
        series = b"select x from generate_series(1, 5) x"
        read = {name: message(b"E", name + b"\0" + struct.pack(">I", 2)) for name in (b"a", b"b")}
        client.sendall(message(b"Q", b"begin\0") + open_portal(b"a", series)
                       + open_portal(b"b", series) + read[b"a"] + read[b"b"] + message(b"S")
                       + read[b"a"] + message(b"S") + read[b"a"] + read[b"b"]
                       + message(b"S") + message(b"X"))
        answer = b""
        while chunk := client.recv(4096):
            answer += chunk
    kinds = []
    while answer:
        length, = struct.unpack(">I", answer[1:5])
        kinds.append(answer[:1].decode())
        answer = answer[length + 1:]
    after = "".join(kinds).split("Z", 2)[2]
    assert after == "1212DDsDDsZDDsZDCDDsZ"


# --- tables ------------------------------------------------------------------------------------


def test_schema_evolution(lake, serve):
    """Renamed, widened, added and dropped columns are right by field id."""
    schema = Schema(t.NestedField(1, "id", t.LongType(), required=True),
                    t.NestedField(2, "a", t.IntegerType()),
                    t.NestedField(3, "b", t.DecimalType(5, 2)),
                    t.NestedField(4, "gone", t.StringType()))
    table, publish = table_of(lake, "t", schema,
                              [{"id": 1, "a": 10, "b": decimal.Decimal("1.50"), "gone": "x"}])
    with table.update_schema() as update:
        update.rename_column("a", "b2")
    with table.update_schema() as update:
        update.update_column("b2", field_type=t.LongType())
        update.update_column("b", field_type=t.DecimalType(12, 2))
        update.delete_column("gone")
    with table.update_schema() as update:
        update.add_column("a", t.StringType())
        update.add_column("gone", t.BooleanType())
    table.append(pa.Table.from_pylist([{"id": 2, "b2": 1 << 40, "b": decimal.Decimal("2.50"),
                                        "a": "new", "gone": True}],
                                      schema=table.schema().as_arrow()))
    publish()
    with serve(lake).connect() as conn:
        cursor = conn.execute("select * from t order by id")
        assert [column.name for column in cursor.description] == ["id", "b2", "b", "a", "gone"]
        assert cursor.fetchall() == [
            (1, 10, decimal.Decimal("1.50"), None, None),
            (2, 1 << 40, decimal.Decimal("2.50"), "new", True)]


def test_all_tables_of_one_epoch(lake, serve):
    """Two tables of a pipeline: nobody sees one ahead of the position that its state calls
    committed, whatever their newest snapshots are."""
    def mark(*positions):
        def change(metadata):
            metadata["properties"].update({"cdc.pipeline": "shop", "cdc.position": positions[-1]})
            for snapshot, position in zip(metadata["snapshots"], positions, strict=False):
                snapshot["summary"]["cdc.position"] = position
        return change

    state = pathlib.Path(lake.uri) / "_walberg" / "shop.json"
    state.parent.mkdir()

    def commit(position):
        beside = state.with_suffix(".new")
        beside.write_text(json.dumps({"pipeline": "shop", "committed": position}))
        beside.rename(state)

    a, publish_a = table_of(lake, "a", NUMBERS, numbers(0, 1))
    b, publish_b = table_of(lake, "b", NUMBERS, numbers(0, 1))
    publish_a(mark("0/10"))
    publish_b(mark("0/10"))
    empty, publish_empty = table_of(lake, "empty", NUMBERS)
    publish_empty(mark("0/10"))
    commit("0/10")
    server = serve(lake)
    counts = "select (select count(*) from a), (select count(*) from b)"
    with server.connect() as conn:
        assert conn.execute(counts).fetchone() == (1, 1)
        assert conn.execute("select count(name) from empty").fetchone() == (0,)
        a.append(pa.Table.from_pylist(numbers(1, 5), schema=a.schema().as_arrow()))
        publish_a(mark("0/10", "0/20"))
        time.sleep(2.5)
        assert conn.execute(counts).fetchone() == (1, 1)
        b.append(pa.Table.from_pylist(numbers(1, 9), schema=b.schema().as_arrow()))
        publish_b(mark("0/10", "0/20"))
        time.sleep(1.5)
        assert conn.execute(counts).fetchone() == (1, 1)
        commit("0/20")
        seen = set()

        def both():
            seen.add(conn.execute(counts).fetchone())
            return (5, 9) in seen

        wait_for("both tables", both, 10, 0.01)
        assert seen <= {(1, 1), (5, 9)}


def test_odd_names(lake, serve):
    row = {'a "b" c': 1, "select": 2, "\u00dcn\u00ef": 3, "filename": 4}
    schema = Schema(*(t.NestedField(i, name, t.LongType()) for name, i in row.items()))
    for name in ["Upper", 'quo"te', "\u65e5\u672c"]:
        _, publish = table_of(lake, name, schema, [row])
        publish()
    _, publish = table_of(lake, "orders", NUMBERS, numbers(0, 3), space="Shop")
    publish()
    with serve(lake).connect() as conn:
        for name in ['"Upper"', '"quo""te"', "public.\u65e5\u672c"]:
            got = conn.execute('select "a ""b"" c", "select", "\u00dcn\u00ef", filename '
                               f'from {name}')
            assert got.fetchone() == (1, 2, 3, 4)
        assert conn.execute('select count(*) from "Shop".orders').fetchone() == (3,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute("select * from orders")
        conn.execute('set search_path = "Shop", public')
        assert conn.execute("select count(*) from orders").fetchone() == (3,)
        names = conn.execute("select table_schema, table_name from information_schema.tables "
                             "order by 1, 2").fetchall()
        assert names == [("Shop", "orders"), ("public", "Upper"), ("public", 'quo"te'),
                         ("public", "\u65e5\u672c")]


def test_what_cannot_be_read_is_left_out(lake, serve):
    table, publish = table_of(lake, "t", NUMBERS, numbers(0, 3))
    publish()
    other, publish_other = table_of(lake, "broken", NUMBERS, numbers(0, 3))
    publish_other()
    for manifest in (pathlib.Path(lake.uri) / "public" / "broken").rglob("*.avro"):
        manifest.write_bytes(b"not a manifest")
    foreign.with_position_deletes(foreign.write(lake), [1])
    for deletes in (pathlib.Path(lake.uri) / "public" / "things").rglob("*delete*.parquet"):
        deletes.unlink()
    with serve(lake).connect() as conn:
        assert conn.execute("select count(*) from t").fetchone() == (3,)
        for table, why in (("broken", "cannot be read"), ("things", "somebody removed it")):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=why):
                conn.execute(f"select * from {table}")
        assert conn.execute("select relname from pg_class").fetchall() == [("t",)]


class Unreadable:
    """A file whose reading fails, in a way that may pass, while this lasts."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.path.rename(f"{self.path}.away")
        self.path.mkdir()

    def __exit__(self, *_):
        self.path.rmdir()
        pathlib.Path(f"{self.path}.away").rename(self.path)


def test_what_cannot_be_read_for_now_is_left_out_alone(lake, serve):
    """When the server starts. It is looked at again."""
    foreign.with_position_deletes(foreign.write(lake), [1])
    table_of(lake, "t", NUMBERS, numbers(0, 3))[1]()
    table_of(lake, "bad", NUMBERS, numbers(0, 3))[1]()
    public = pathlib.Path(lake.uri) / "public"
    metadata = public / "bad" / "metadata" / "v1.metadata.json"
    content = metadata.read_bytes()
    metadata.unlink()
    metadata.symlink_to("/proc/self/mem")            # can be opened; reading gives EIO
    (deletes,) = (public / "things").rglob("*delete*.parquet")
    with Unreadable(deletes):
        server = serve(lake)
        with server.connect() as conn:
            assert conn.execute("select count(*) from t").fetchone() == (3,)
            for table in ("things", "bad"):
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                    conn.execute(f"select * from {table}")
    metadata.unlink()
    metadata.write_bytes(content)
    with server.connect() as conn:
        for table, count in (("things", 2), ("bad", 3)):
            wait_for(table, lambda sql=f"select count(*) from {table}", rows=[(count,)]:
                     answers(conn, sql) == rows, 30)


def test_others_do_not_wait_for_ever_for_a_table(lake, serve):
    """All are of one moment; but for what cannot be had they wait a minute at most."""
    pair = Schema(t.NestedField(1, "pair", t.StructType(t.NestedField(2, "a", t.LongType()))))
    shaped, publish_shaped = table_of(lake, "shaped", pair, [{"pair": {"a": 1}}])
    plain, publish_plain = table_of(lake, "plain", NUMBERS, numbers(0, 3))
    publish_shaped()
    publish_plain()
    server = serve(lake, WALBERG_LIMITS="query.patience_ms=4000")
    data = pathlib.Path(lake.uri) / "public" / "shaped" / "data"
    before = set(data.iterdir())
    shaped.append(pa.Table.from_pylist([{"pair": {"a": 2}}], schema=shaped.schema().as_arrow()))
    (added,) = set(data.iterdir()) - before
    plain.append(pa.Table.from_pylist(numbers(3, 4), schema=plain.schema().as_arrow()))
    with Unreadable(added), server.connect() as conn:
        publish_shaped()
        publish_plain()
        time.sleep(2)
        both = "select (select count(*) from shaped), (select count(*) from plain)"
        assert conn.execute(both).fetchall() == [(1, 3)]
        wait_for("the other", lambda: answers(conn, "select count(*) from plain") == [(4,)], 20)
        assert answers(conn, "select count(*) from shaped") is None
    with server.connect() as conn:
        wait_for("the table", lambda: answers(conn, "select count(*) from shaped") == [(2,)], 30)


def test_patience_begins_anew(lake, serve):
    """With a table that does not change, after an error that passed."""
    table_of(lake, "quiet", NUMBERS, numbers(0, 3))[1]()
    server = serve(lake, WALBERG_LIMITS="query.patience_ms=1500",
                   WALBERG_FAULT="error:13:store.stat,error:25:store.stat")
    with server.connect() as conn:
        def fails(times):
            assert answers(conn, "select count(*) from quiet") == [(3,)]
            return server.log_path.read_text().count("public.quiet: look at") == times

        wait_for("an error", lambda: fails(1), 30)
        time.sleep(2)
        wait_for("another", lambda: fails(2), 30)
        time.sleep(0.5)
        assert fails(2)


def test_names_that_differ_in_case_only(lake, serve):
    """Tables are left out rather than one shown for the other, until one of them goes."""
    for name in ("T", "t"):
        table_of(lake, name, NUMBERS, numbers(0, len(name) + ord(name)))[1]()
    with serve(lake).connect() as conn:
        for name in ('"T"', "t"):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="case"):
                conn.execute(f"select * from {name}")
        shutil.rmtree(pathlib.Path(lake.uri) / "public" / "T")
        wait_for("the other", lambda: answers(conn, "select count(*) from t") == [(117,)], 20)
        table_of(lake, "T", NUMBERS, numbers(0, 1))[1]()
        wait_for("both to go", lambda: answers(conn, "select count(*) from t") is None, 20)


def test_columns_that_differ_in_case_only(lake, serve):
    """Each is shown under a name of its own, and none as the other: with its field id."""
    names = ["Name", "name", "name_2", "NAME", "x"]
    columns = Schema(*(t.NestedField(i + 1, name, t.LongType()) for i, name in enumerate(names)))
    table_of(lake, "c", columns, [{name: 10 * i for i, name in enumerate(names)}])[1]()
    with serve(lake).connect() as conn:
        cursor = conn.execute("select * from c")
        assert [column.name for column in cursor.description] == [
            "Name_1", "name__2", "name_2", "NAME_4", "x"]
        assert cursor.fetchall() == [(0, 10, 20, 30, 40)]
        assert conn.execute('select "Name_1", name__2, name_2 from c').fetchone() == (0, 10, 20)
        assert [row[0] for row in conn.execute(
            "select attname from pg_attribute where attrelid = 'c'::regclass and attnum > 0"
            " order by attnum")] == ["Name_1", "name__2", "name_2", "NAME_4", "x"]
        for name in ("name", '"Name"'):
            with pytest.raises(psycopg.errors.UndefinedColumn):
                conn.execute(f"select {name} from c")


def answers(conn, sql):
    try:
        return conn.execute(sql).fetchall()
    except psycopg.errors.ObjectNotInPrerequisiteState:
        return None


def test_tables_come_and_go(lake, serve):
    _, publish = table_of(lake, "t", NUMBERS, numbers(0, 3))
    publish()
    server = serve(lake)
    with server.connect() as conn:
        _, publish_late = table_of(lake, "late", NUMBERS, numbers(0, 2))
        publish_late()
        wait_for("the new table", lambda: len(conn.execute("select * from pg_class").fetchall())
                 == 2, 10)
        assert conn.execute("select count(*) from late").fetchone() == (2,)
        folder = pathlib.Path(lake.uri) / "public" / "late"
        folder.rename(pathlib.Path(lake.uri).parent / "gone")
        wait_for("the table to go", lambda: len(conn.execute("select * from pg_class").fetchall())
                 == 1, 10)
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute("select * from late")


def test_on_s3(s3, serve, tmp_path):
    storage = s3.warehouse()
    foreign.with_position_deletes(foreign.write(storage), [1])
    server = serve(storage)
    with server.connect() as conn:
        assert conn.execute("select id from things order by id").fetchall() == [(1,), (3,)]
    assert list((tmp_path / "state" / "cache").iterdir())


# --- JDBC --------------------------------------------------------------------------------------

DRIVER = "42.7.4"


@pytest.fixture(scope="session")
def driver():
    jar = CACHE / "jdbc" / f"postgresql-{DRIVER}.jar"
    if not jar.exists():
        subprocess.run(["mvn", "-B", "-q", "dependency:copy", f"-DoutputDirectory={jar.parent}",
                        f"-Dartifact=org.postgresql:postgresql:{DRIVER}"], check=True, timeout=300)
    return jar


def test_jdbc(things, driver):
    done = subprocess.run(["java", "-cp", str(driver), str(ROOT / "test/java/Jdbc.java"),
                           str(things.port)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {}
    for line in done.stdout.strip().split("\n"):
        name, _, value = line.partition(": ")
        said.setdefault(name, []).append(value)
    assert said["types"] == ["int8 bool int4 float4 float8 numeric date timestamptz text bytea "
                             "uuid _text"]
    # the same from text and from binary values; what foreign.rows() has
    assert said["row"] == ["1|true|-2|0.1|-0.0|1234567890.10|0001-01-01|"
                           "2026-01-01T12:00:00.000001Z|h\u00e9\u2028llo\\n|bytes[0, -1]|"
                           "00000000-0000-0000-0000-000000000005|[a, null, ]"]
    assert said["found"] == ["1"] * 8
    assert said["pieces"] == ["5000 25005000"]
    assert said["limited"] == ["3"]
    assert said["version"] == ["16"]
    assert said["table"] == ["public.things"]
    assert said["column"] == ["price numeric 12 2"]
    assert "public" in said["schema"]
    assert said["error"] == ["42601", "42P01", "25006", "57014"]
    assert said["alive"] == ["true"]


# --- walberg sql -------------------------------------------------------------------------------


def sql(storage, *args):
    return subprocess.run([str(PROGRAM), "sql", storage.uri, *args], capture_output=True, text=True,
                          timeout=60, check=False, env=environment(storage))


def test_sql_command(lake):
    foreign.with_position_deletes(foreign.write(lake), [1])
    query = "select id, name, price, flag from things where id = 1"
    assert json.loads(sql(lake, query, "--format", "json").stdout) == [
        {"id": 1, "name": "h\u00e9\u2028llo\n", "price": 1234567890.10, "flag": True}]
    assert sql(lake, "select id, name, price from things order by id", "--format", "csv").stdout \
        == 'id,name,price\n1,"h\u00e9\u2028llo\n",1234567890.10\n3,"",\n'
    assert sql(lake, "select id, 'x' as b from things order by id").stdout \
        == " id | b\n----+---\n  1 | x\n  3 | x\n(2 rows)\n"
    failed = sql(lake, "select nope from things")
    assert failed.returncode == 1 and failed.stdout == ""
    assert failed.stderr == 'walberg: column "nope" does not exist\n'
    assert sql(lake, "select 1", "--format", "xml").returncode == 2
    assert sql(lake, "delete from things").returncode == 1


def notices_of(conn):
    """Where the notices of a connection will be."""
    seen = []
    conn.add_notice_handler(lambda diagnostic: seen.append(
        (diagnostic.severity, diagnostic.sqlstate, diagnostic.message_primary,
         diagnostic.message_detail)))
    return seen


def test_a_notice_that_numbers_are_text(database, walberg):
    """Once in a session, when a query first names such a column; by both protocols."""
    database.execute(
        "create table t (id int primary key, fits numeric, wide numeric, empty numeric,"
        ' "N" numeric)',
        "insert into t values (1, 12.50, 1e40, null, 'NaN'), (2, -0.125, 1, null, 2)")
    walberg.start().wait_streaming()
    wide = ("NOTICE", "00000", 'column "wide" of relation "t" is numeric, and shown as text',
            "Its values need 41 digits before the point and 0 behind it, and a decimal has 38.")
    odd = ("NOTICE", "00000", 'column "N" of relation "t" is numeric, and shown as text',
           "Values were NaN or infinite, which no decimal is.")
    where = {"host": "127.0.0.1", "port": walberg.query_port, "user": "ann",
             "dbname": database.name, "autocommit": True}
    with psycopg.connect(**where) as conn:
        seen = notices_of(conn)
        assert conn.execute("select id, fits, empty from t order by id").fetchall() == [
            (1, decimal.Decimal("12.500"), None), (2, decimal.Decimal("-0.125"), None)]
        assert conn.execute("select count(*) from t").fetchone() == (2,)
        assert seen == []
        found = conn.execute("select wide from public.t where id > %s order by id", [0])
        assert found.fetchall() == [("1" + 40 * "0",), ("1",)]
        assert seen == [wide]
        conn.execute("select wide from t")
        assert seen == [wide]
        conn.execute("select * from t")
        assert seen == [wide, odd]
        with pytest.raises(psycopg.errors.UndefinedColumn):
            conn.execute("select wide, nothing from t")
    with psycopg.connect(**where) as conn:               # of another session; described alone
        seen = notices_of(conn)
        described = conn.pgconn.prepare(b"s", b"select wide from t")
        assert described.status == psycopg.pq.ExecStatus.COMMAND_OK and seen == [wide]
    with psycopg.connect(**where, options="-c client_min_messages=warning") as conn:
        seen = notices_of(conn)
        conn.execute("select * from t")
        assert seen == []
    done = subprocess.run(
        ["psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(walberg.query_port), "-U", "ann", "-d",
         database.name, "-c", "select id from t where wide <> '1'"], capture_output=True, text=True,
        check=True)
    assert done.stdout == "1\n"
    assert done.stderr.startswith(f"NOTICE:  {wide[2]}\nDETAIL:  {wide[3]}\nHINT:  Cast it to")
    assert walberg.stop() == 0
    done = walberg.call("sql", walberg.storage.uri, "select \"N\" from t", check=True)
    assert f"notice: {odd[2]}\ndetail: {odd[3]}\n" in done.stderr
