"""walberg check: what it says about servers, roles, slots, publications, tables and warehouses that
are right, odd or wrong; and that it leaves nothing behind."""
import json
import subprocess

from lib.postgres import Postgres


def check(walberg, *args, uri=None, warehouse=None, **settings):
    """The items of check --json, by name, and the exit code."""
    uri = uri or walberg.database.uri
    warehouse = warehouse or walberg.storage.uri
    done = walberg.call("check", "--json", uri, str(warehouse), *args, **settings)
    assert done.stderr == ""
    items = json.loads(done.stdout)
    assert (done.returncode == 1) == any(i["result"] == "FAIL" for i in items), items
    assert done.returncode in (0, 1)
    return items


def about(items, name):
    return [(i["result"], i["message"], i["hint"]) for i in items if i["item"] == name]


def only(items, name):
    found = about(items, name)
    assert len(found) == 1, (name, items)
    return found[0]


def test_a_healthy_source(database, walberg):
    database.execute("create table orders (id int primary key, took interval, at timestamptz)")
    done = walberg.call("check", *walberg.positional())
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert all(line.startswith(("ok   ", "warn ", "     hint: ")) for line in lines), lines
    assert "ok   table public.orders: key (id), 3 columns; as text: took interval" in lines
    assert "ok   wal_level: logical" in lines

    items = check(walberg)
    assert {i["item"] for i in items} >= {"settings", "server", "wal_level", "role", "clock",
                                          "slot", "wal senders", "publication",
                                          "table public.orders", "warehouse"}
    assert f"walberg_{database.name} will be made" in only(items, "slot")[1]
    assert only(items, "publication") == ("ok", f"walberg_{database.name} will be made", None)


def test_it_changes_nothing(database, walberg, tmp_path):
    database.execute("create table orders (id int primary key)")
    lake = tmp_path / "not" / "yet" / "there"
    check(walberg, warehouse=lake)
    assert not (tmp_path / "not").exists()
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_text("x")
    check(walberg, warehouse=there)
    assert [p.name for p in there.rglob("*")] == ["file"]
    assert database.server.rows(database.name, "select 1 from pg_publication") == []
    assert walberg.slot() is None
    assert not (tmp_path / "state").exists()


def test_tables_one_by_one(database, walberg):
    database.execute(
        "create table nokey (a int, b text)",
        "create table whole (a int, b text)", "alter table whole replica identity full",
        "create table made (id int primary key, twice int generated always as (id * 2) stored)",
        "create unlogged table fleeting (id int primary key)",
        "create view seen as select 1 as one",
        "create table parts (id int, day date, primary key (id, day)) partition by range (day)",
        "create table parts_1 partition of parts for values from ('2026-01-01') to ('2027-01-01')",
        'create table "Odd.Name" (id int primary key)',
    )
    items = check(walberg)
    assert about(items, "table public.nokey")[0][0] == "warn"
    assert "replica identity" in about(items, "table public.nokey")[0][1]
    assert only(items, "table public.whole") == (
        "ok", "no key, whole rows, 2 columns, replica identity full", None)
    generated = about(items, "table public.made")
    assert ("ok", "key (id), 1 column", None) in generated
    assert any(r == "warn" and "column twice will not arrive: " in m for r, m, _ in generated)
    assert only(items, "table public.fleeting")[:2] == (
        "warn", "will not arrive: unlogged: its changes are not in the WAL")
    described, limits = about(items, "table public.parts")
    assert described[:2] == ("ok", "key (id, day), 2 columns, 1 partitions")
    assert limits[0] == "ok" and "copied again" in limits[1]
    assert about(items, "table public.parts_1") == []
    assert only(items, 'table public."Odd.Name"')[0] == "ok"


def test_patterns_choose_tables(database, walberg):
    database.execute("create table a (id int primary key)", "create table b (id int primary key)")
    items = check(walberg, source__tables='["public.*", "!public.b"]')
    assert about(items, "table public.a") and not about(items, "table public.b")
    assert only(check(walberg, source__tables="none.*"), "tables")[0] == "warn"


def test_an_existing_publication(database, walberg):
    database.execute("create table a (id int primary key)", "create table b (id int primary key)",
                     "create publication pub for table a with (publish = 'insert')")
    items = check(walberg, source__publication="pub")
    missing, partial = about(items, "publication")
    assert missing == ("warn", "pub does not publish 1 of the tables",
                       'ALTER PUBLICATION "pub" ADD TABLE ONLY "public"."b"')
    assert partial[:2] == ("warn", "pub leaves out update, delete, truncate")
    database.execute(
        "create table p (id int primary key) partition by range (id)",
        "create publication leaves for all tables")
    assert only(check(walberg, source__publication="leaves"), "publication")[::2] == (
        "FAIL", 'ALTER PUBLICATION "leaves" SET (publish_via_partition_root = true)')


def test_the_slot(database, walberg):
    database.execute("create table a (id int primary key)",
                     "select pg_create_logical_replication_slot('there', 'pgoutput')",
                     "select pg_create_logical_replication_slot('other', 'test_decoding')")
    items = check(walberg, source__slot="there")
    assert only(items, "slot")[0] == "ok" and "there is there, at " in only(items, "slot")[1]
    result, message, hint = only(check(walberg, source__slot="other"), "slot")
    assert result == "FAIL" and "test_decoding" in message and hint


def test_a_role_without_rights(database, walberg):
    server = database.server
    with server.connect() as conn:
        conn.execute("drop role if exists weak")
        conn.execute("create role weak login")
    try:
        database.execute(
            "create table a (id int primary key)",
            "create table hidden (id int primary key)", "grant select on a to weak",
            "create table guarded (id int primary key)", "grant select on guarded to weak",
            "alter table guarded enable row level security")
        items = check(walberg, uri=server.uri(database.name, "weak"))
        assert only(items, "role")[0] == "FAIL" and "REPLICATION" in only(items, "role")[2]
        assert only(items, "publication")[0] == "FAIL"
        assert "CREATE PUBLICATION" in only(items, "publication")[2]
        assert about(items, "table public.hidden")[0][0] == "FAIL"
        assert about(items, "table public.guarded")[0][0] == "FAIL"
        assert "row security" in about(items, "table public.guarded")[0][1]
        assert about(items, "table public.a")[0][0] == "ok"
    finally:
        with server.connect(database.name) as conn:
            conn.execute("drop owned by weak")
            conn.execute("drop role weak")


def test_a_server_that_cannot_work(walberg):
    server = Postgres(settings={"wal_level": "replica", "max_replication_slots": "0",
                           "max_wal_senders": "0"})
    try:
        items = check(walberg, uri=server.uri())
        assert only(items, "wal_level")[0] == "FAIL"
        assert "ALTER SYSTEM SET wal_level = logical" in only(items, "wal_level")[2]
        assert only(items, "slot")[:2] == ("FAIL", "all 0 replication slots are taken")
        assert only(items, "wal senders")[:2] == ("FAIL", "all 0 are taken")
        assert only(items, "warehouse")[0] == "ok"
    finally:
        server.remove()


def test_limits_that_lose_slots(walberg):
    server = Postgres(settings={"max_slot_wal_keep_size": "512MB"})
    try:
        items = check(walberg, uri=server.uri())
        assert only(items, "max_slot_wal_keep_size")[:2] == (
            "warn", "a slot that is 512 MB of WAL behind is lost")
    finally:
        server.remove()


def test_a_server_that_is_not_there(walberg):
    items = check(walberg, uri="postgres://me:s3cr3t@127.0.0.1:1/none")
    result, message, _ = only(items, "source")
    assert result == "FAIL" and "127.0.0.1" in message
    assert "s3cr3t" not in json.dumps(items)
    assert only(items, "warehouse")[0] == "ok"  # the other end is looked at all the same


def test_a_warehouse_that_cannot_be_written(database, walberg, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert only(check(walberg, warehouse=tmp_path / "file"), "warehouse")[0] == "FAIL"
    assert (tmp_path / "file").read_text() == "in the way"


def test_s3(database, walberg, s3):
    walberg.storage = s3.warehouse()
    result, message, _ = only(check(walberg), "warehouse")
    assert result == "ok" and message.startswith("s3://")
    result, message, hint = only(check(walberg, warehouse="s3://no-such-bucket/x"), "warehouse")
    assert result == "FAIL" and "no-such-bucket" in message and hint


def test_without_source_or_warehouse(walberg):
    done = walberg.call("check")
    assert done.returncode == 2
    assert done.stderr.startswith("walberg: no source is set\nhint: walberg check postgres://")
    done = walberg.call("check", "--set", "source.postgres=postgres://localhost/x")
    assert done.returncode == 2
    assert done.stderr.startswith("walberg: no warehouse is set\nhint: ")
    done = walberg.call("check", "postgres://localhost/x")
    assert done.returncode == 2
    assert done.stderr == ("walberg: wrong number of arguments\n"
                           "hint: walberg check [SOURCE WAREHOUSE]\n")


def test_a_folder_that_cannot_be_made(database, walberg):
    assert only(check(walberg, warehouse="/proc/walberg"), "warehouse")[0] == "FAIL"


def test_many_tables_and_few_open_files(database, walberg):
    database.execute(*[f"create table t{n} (id int primary key)" for n in range(40)])
    command = walberg.command("check", "--json", *walberg.positional())

    def under(limit):
        done = subprocess.run(["prlimit", f"--nofile={limit}:{limit}", *command], check=True,
                              capture_output=True, text=True)
        return about(json.loads(done.stdout), "open files")

    assert under(220) == []
    [(result, message, hint)] = under(219)
    assert result == "warn" and message == "40 tables may need 220, and the limit is 219"
    assert "LimitNOFILE" in hint
