"""Mistakes of the person who types: one line that names the place, a hint, the right exit code."""
import subprocess

import pytest

from lib.env import PROGRAM
from lib.postgres import Database, Postgres
from lib.walberg import environment

YAML_MISTAKES = {
    "unknown key": ("commit:\n  intreval: 1s\n",
                    'walberg.yaml:2:3: unknown setting "commit.intreval"',
                    'hint: did you mean "commit.interval"?'),
    "unknown section": ("sinc:\n  iceberg: {}\n", "walberg.yaml:1:1: unknown setting", "sink"),
    "wrong type": ("commit: {rows: many}\n", "walberg.yaml:1:", "commit.rows"),
    "out of range": ("commit: {interval: 1ms}\n", "walberg.yaml:1:", "100ms"),
    "bad unit": ("memory: 12 bananas\n", "walberg.yaml:1:", "memory"),
    "bad choice": ("on_reject: ignore\n", "walberg.yaml:1:", "record"),
    "not yaml": ("commit: {interval: 1s\n", "walberg.yaml:", ""),
    "twice": ("memory: 64MB\nmemory: 128MB\n", "walberg.yaml:2:", "memory"),
}


def run(folder, *args, **variables):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=30, cwd=folder,
                          env=environment(**variables), stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize("mistake", YAML_MISTAKES)
def test_mistake_in_the_file(mistake, tmp_path):
    text, place, word = YAML_MISTAKES[mistake]
    (tmp_path / "walberg.yaml").write_text(text)
    done = run(tmp_path, "run")
    assert done.returncode == 2, done.stderr
    assert place in done.stderr and word in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 3


def test_mistake_in_a_variable(tmp_path):
    done = run(tmp_path, "run", "postgres://x/y", "lake", WALBERG_COMMIT_INTERVAL="soon")
    assert done.returncode == 2
    assert "WALBERG_COMMIT_INTERVAL" in done.stderr


def test_mistake_in_an_option(tmp_path):
    done = run(tmp_path, "run", "--set", "comit.interval=1s", "postgres://x/y", "lake")
    assert done.returncode == 2
    assert "comit.interval" in done.stderr and "commit.interval" in done.stderr


@pytest.mark.parametrize("args", [["rum"], ["run", "--onse"], ["run", "a", "b", "c"],
                                  ["run", "--config", "absent.yaml"], ["sql"]])
def test_wrong_usage(args, tmp_path):
    done = run(tmp_path, *args)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") <= 4 and done.stderr


def test_no_source_given(tmp_path):
    done = run(tmp_path, "run")
    assert done.returncode == 2
    assert "source" in done.stderr and "hint: " in done.stderr


def test_server_that_is_not_there(tmp_path):
    done = run(tmp_path, "run", "--once", "postgres://127.0.0.1:1/none", str(tmp_path / "lake"))
    assert done.returncode == 3, done.stderr
    assert "127.0.0.1" in done.stderr


def test_password_is_never_printed(tmp_path):
    done = run(tmp_path, "run", "--once", "-v", "postgres://me:s3cr3t@127.0.0.1:1/none",
               str(tmp_path / "lake"))
    assert done.returncode != 0
    assert "s3cr3t" not in done.stderr + done.stdout


def test_wal_level_that_cannot_work(tmp_path):
    server = Postgres(settings={"wal_level": "replica"})
    try:
        done = run(tmp_path, "run", "--once", Database(server, "x").uri, str(tmp_path / "lake"))
        assert done.returncode == 1
        assert "wal_level" in done.stderr and "hint: " in done.stderr
    finally:
        server.remove()


def test_warehouse_that_cannot_be_written(database, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run(tmp_path, "run", "--once", database.uri, str(tmp_path / "file"))
    assert done.returncode == 1, done.stderr
    assert "file" in done.stderr


def test_version_and_help(tmp_path):
    done = run(tmp_path, "version")
    assert done.returncode == 0 and done.stdout.startswith("walberg ")
    done = run(tmp_path, "help")
    assert done.returncode == 0
    for command in ("run", "check", "status", "query", "sql", "init"):
        assert command in done.stdout
    done = run(tmp_path, "help", "settings")
    assert done.returncode == 0 and "commit.interval" in done.stdout


def test_init_writes_settings_that_are_accepted(database, tmp_path):
    done = run(tmp_path, "init")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "walberg.yaml").read_text()
    assert "commit" in text and "#" in text
    database.execute("create table t (id int primary key)")
    done = run(tmp_path, "run", "--once", database.uri, str(tmp_path / "lake"))
    assert done.returncode == 0, done.stderr
