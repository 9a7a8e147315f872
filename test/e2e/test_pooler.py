"""A connection pool in front of Postgres (PgBouncer) is refused with what to do, however much of
what walberg asks for it swallows."""
import os
import pathlib
import subprocess
import tempfile

import pytest

from lib.env import free_port, kill, listening, wait_for
from lib.postgres import server_user
from lib.storage import Storage
from lib.walberg import Walberg

SWALLOWS = {"nothing": "", "options": "options",
            "all of it": "options,replication,extra_float_digits,datestyle,intervalstyle"}


@pytest.fixture(params=["session", "transaction"])
def mode(request):
    return request.param


@pytest.fixture(params=SWALLOWS.values(), ids=SWALLOWS)
def pooler(request, mode, postgres):
    """Its port."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="walberg-pooler-") as folder:
        settings = pathlib.Path(folder) / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={postgres.port} user=postgres\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = {mode}\nignore_startup_parameters = {request.param}\n")
        os.chmod(folder, 0o755)
        user = server_user()
        with subprocess.Popen(["/usr/sbin/pgbouncer", "-q", settings],
                              user=user and user.pw_uid, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            try:
                wait_for("the pooler", lambda: listening(port))
                yield port
            finally:
                kill(process)


@pytest.mark.parametrize("command", ["check", "run"])
def test_it_is_refused_with_a_hint(command, pooler, database, tmp_path):
    database.execute("create table t (id int primary key)")
    walberg = Walberg(database, Storage(tmp_path / "lake"), tmp_path)
    done = walberg.call(command, f"postgres://postgres@127.0.0.1:{pooler}/{database.name}",
                        walberg.storage.uri)
    assert done.returncode == 1, done.stderr
    said = done.stdout + done.stderr
    assert "hint: this looks like a connection pooler; give walberg the address of Postgres" in said
    assert walberg.slot() is None and not walberg.storage.list()
