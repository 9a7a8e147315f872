"""Files of the lake that somebody removed or spoiled: what walberg says of it, and that doing what
it says mends it."""
import contextlib
import shutil

import pytest
from test_cleanup import cleanup
from test_gaps import warehouse

from lib.oracle import compare

TABLES = ("create table t (id int primary key, v int)",
          "insert into t select n, n from generate_series(1, 10) n",
          "create table other (id int primary key)")


def newest(folder, pattern):
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def metadata_of(folder):
    return max((folder / "metadata").glob("v*.metadata.json"),
               key=lambda path: int(path.name.split(".")[0][1:]))


FILES = {
    "metadata": metadata_of,
    "list": lambda folder: newest(folder / "metadata", "snap-*.avro"),
    "manifest": lambda folder: newest(folder / "metadata", "*-m0.avro"),
    "delete manifest": lambda folder: newest(folder / "metadata", "*-m1.avro"),
    "deletes": lambda folder: newest(folder / "data", "**/*deletes*"),
    "data": lambda folder: newest(folder / "data", "**/*-data.parquet"),
}


@pytest.fixture(name="damaged")
def damaged_table(database, walberg):
    """A function that does something to a file of table t, whose key index is lost."""
    database.execute(*TABLES)
    walberg.once()
    database.execute("delete from t where id < 4", "insert into t values (99, 99)")
    walberg.once()
    folder = warehouse(walberg) / "public/t"

    def damage(kind, how):
        path = FILES[kind](folder)
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(b"junk")
        shutil.rmtree(walberg.folder / "state" / "index")
        database.execute("insert into t values (100, 0)", "update t set v = v + 1 where id = 5",
                         "insert into other values (1)")
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        return parked(walberg)["public.t"]
    return damage


def parked(walberg):
    return {t["name"]: t["error"] for t in walberg.status()["tables"] if t["state"] == "parked"}


def mended(walberg, database, lake, check=True):
    walberg.once()
    assert parked(walberg) == {}
    compare(database, lake, ["t", "other"], check=check)
    database.execute("update t set v = -1 where id in (5, 100)", "delete from t where id = 6")
    walberg.once()
    compare(database, lake, ["t", "other"], check=check)


@pytest.mark.parametrize("how", ["gone", "junk"])
@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "metadata"])
def test_resync_mends(kind, how, damaged, database, walberg, lake):
    assert damaged(kind, how).endswith("hint: copy it again: walberg resync")
    walberg.call("resync", *walberg.positional(), "public.t", check=True)
    mended(walberg, database, lake, check=False)    # files of older snapshots are still missing
    rows = int(lake.table("t").summary["total-records"]) - int(
        lake.table("t").summary["total-position-deletes"])
    assert rows == len(database.rows("select * from t"))


def test_cleanup_mends_metadata(damaged, database, walberg, lake):
    assert "walberg cleanup public.t" in damaged("metadata", "junk")
    cleanup(walberg, "public.t", "--yes")
    mended(walberg, database, lake)


def test_beginning_again_mends_metadata(damaged, database, walberg, lake):
    """A table that nothing says is ours stays, and that is said."""
    damaged("metadata", "junk")
    stranger = warehouse(walberg) / "public/stranger/metadata/v1.metadata.json"
    stranger.parent.mkdir(parents=True)
    stranger.write_bytes(b"junk")
    done = cleanup(walberg, "--all", "--yes")
    assert "removed table public.t " in done.stdout
    assert "table public.stranger stays" in done.stderr
    assert stranger.read_bytes() == b"junk"
    done = cleanup(walberg, "public.stranger", "--yes", code=1)
    assert "metadata that cannot be read" in done.stderr
    walberg.once()
    stranger.unlink()
    compare(database, lake, ["t", "other"])


def test_cleanup_with_a_broken_table_of_rejects(database, walberg, lake):
    """It notes how far those of each table are recorded: what it cannot say is not asked."""
    database.execute("create table t (id int primary key, n numeric(6,2))")
    walberg.once()
    database.execute("insert into t values (1, 'NaN')")
    walberg.once()
    metadata_of(warehouse(walberg) / "_walberg/rejects").write_bytes(b"junk")
    cleanup(walberg, "public.t", "--yes")
    cleanup(walberg, "--all", "--yes")
    walberg.once()
    assert lake.table("rejects", "_walberg").summary["total-records"] == "1"


@contextlib.contextmanager
def unreadable(path, link=None):
    """A link to itself: reading it fails for root, too."""
    aside = path.rename(path.with_name("aside"))
    path.symlink_to(link or path.name)
    yield
    path.unlink()
    aside.rename(path)


UNREADABLE = {
    "hint": lambda folder: folder / "metadata/version-hint.text",
    "version": metadata_of,
    "folder": lambda folder: folder / "metadata",
}


def sql(walberg, statement):
    return walberg.call("sql", walberg.storage.uri, "--format=csv", statement)


@pytest.mark.parametrize("kind", UNREADABLE)
def test_metadata_that_cannot_be_read_concerns_one_table(kind, database, walberg, lake):
    database.execute(*TABLES, "insert into other values (1)")
    walberg.once()
    path = UNREADABLE[kind](warehouse(walberg) / "public/t")
    with unreadable(path):
        database.execute("insert into t values (11, 11)", "insert into other values (2)")
        assert walberg.call("run", "--once", *walberg.positional()).returncode == 1
        assert parked(walberg).keys() == {"public.t"}
        assert str(path) in parked(walberg)["public.t"]
        assert compare(database, lake, ["other"]) == 2

        assert sql(walberg, "select count(*) from other").stdout.split() == ["count", "2"]
        assert str(path) in sql(walberg, "select count(*) from t").stderr
        done = walberg.call("verify", *walberg.positional(), "other")
        assert done.returncode == 0, done.stderr
        done = walberg.call("check", *walberg.positional())
        assert done.returncode == 1
        said = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
        assert len(said) == 1 and said[0].startswith("FAIL lake table public.t: "), done.stdout
        assert str(path) in said[0]
        cleanup(walberg, "public.other", "--yes")
        assert not (warehouse(walberg) / "public/other").exists()
        assert cleanup(walberg, "public.t", "--dry-run").stdout
    walberg.once()
    compare(database, lake, ["t", "other"])


def test_a_broken_table_of_somebody_else_is_a_warning(database, walberg):
    """A lake is shared: such a table is no reason not to start."""
    database.execute(*TABLES)
    walberg.once()
    stranger = warehouse(walberg) / "public/stranger/metadata/v1.metadata.json"
    stranger.parent.mkdir(parents=True)
    stranger.write_bytes(b"junk")
    done = walberg.call("check", *walberg.positional())
    assert "warn lake table public.stranger: " in done.stdout
    assert "FAIL" not in done.stdout and done.returncode == 0
    metadata_of(warehouse(walberg) / "public/t").write_bytes(b"junk")
    assert "FAIL lake table public.t: " in walberg.call("check", *walberg.positional()).stdout
    state = warehouse(walberg) / f"_walberg/{database.name}.json"
    state.write_bytes(b"junk")
    assert "FAIL state object: " in walberg.call("check", *walberg.positional()).stdout


def test_metadata_on_a_bad_disk_concerns_one_table(database, walberg):
    database.execute(*TABLES)
    walberg.once()
    # reading it is EIO, which may pass
    with unreadable(warehouse(walberg) / "public/t/metadata/version-hint.text", "/proc/self/mem"):
        assert sql(walberg, "select count(*) from other").stdout.split() == ["count", "0"]
        assert "Input/output error" in sql(walberg, "select count(*) from t").stderr
        assert "FAIL lake table public.t: " in walberg.call("check", *walberg.positional()).stdout
        cleanup(walberg, "public.other", "--yes")
        assert not (warehouse(walberg) / "public/other").exists()
