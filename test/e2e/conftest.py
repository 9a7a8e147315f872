"""Fixtures: one server of each kind per run, one database and one warehouse per test."""
import os
import pathlib
import re
import signal
import sys

import pytest

from lib.env import FULL, SEED
from lib.lake import Lake
from lib.postgres import Database, Postgres
from lib.storage import SeaweedFS, Storage, VersityGW
from lib.walberg import Walberg


def pytest_configure():
    # A run that is told to end takes its servers with it.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", 143))


def pytest_runtest_logreport(report):
    """A failure has its name at once: a run takes a while, and may be cut off."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid} ({report.when})", file=sys.__stderr__, flush=True)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"WALBERG_SEED={SEED} repeats the random workloads")


@pytest.fixture(scope="session")
def postgres():
    server = Postgres()
    yield server
    server.remove()


class S3:
    """A server, and a bucket for each test."""

    def __init__(self, server):
        self.server = server
        self.buckets = 0

    def warehouse(self):
        self.buckets += 1
        return Storage(f"s3://lake{self.buckets}/w", self.server)


@pytest.fixture(scope="session")
def seaweed():
    server = SeaweedFS()
    yield S3(server)
    server.remove()


@pytest.fixture(scope="session")
def versitygw():
    server = VersityGW()
    yield S3(server)
    server.remove()


@pytest.fixture
def s3(seaweed):
    return seaweed


def storage_kinds():
    """fs and S3 always; the strict S3 server in the full run."""
    return ["fs", "seaweed"] + (["versitygw"] if FULL else [])


@pytest.fixture(params=storage_kinds())
def storage(request, tmp_path):
    if request.param == "fs":
        return Storage(tmp_path / "lake")
    return request.getfixturevalue(request.param).warehouse()


@pytest.fixture
def database(postgres, request):
    name = re.sub(r"[^a-z0-9]+", "_", request.node.name.lower())[:40].strip("_")
    yield Database(postgres, name)
    postgres.drop_database(name)


@pytest.fixture
def walberg(database, tmp_path):
    """The program on this test's database and a lake in a folder, not started yet."""
    program = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
    yield program
    program.kill()


@pytest.fixture
def lake(walberg):
    return Lake(walberg.storage)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows the end of what the program said."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for folder in {getattr(v, "folder", None) for v in item.funcargs.values()
                       if isinstance(v, Walberg)} - {None}:
            for log in sorted(pathlib.Path(folder).glob("walberg*.log")):
                report.sections.append((log.name, log.read_text(errors="replace")[-6000:]))
