"""The initial copy, disturbed: connections that are cut, tables that change, a store that is away."""
import threading
import time

import pytest

from lib.env import wait_for
from lib.oracle import compare

# Four tasks and more: 32 MB are the smallest range.
ROWS = 60_000
TABLE = ("create table t (id int primary key, body text)",
         "insert into t select n, repeat(md5(n::text), 60)"
         f" from generate_series(1, {ROWS}) n", "vacuum analyze t")


@pytest.mark.parametrize("rows", [8192, 16384])
def test_last_batch_is_full(rows, database, walberg, lake):
    """The number of rows is a multiple of a batch's, so that an empty one follows."""
    database.execute("create table t (id int primary key)",
                     f"insert into t select n from generate_series(1, {rows}) n")
    walberg.once()
    compare(database, lake, ["t"])


def test_values_of_many_megabytes(database, walberg, lake):
    """Copied, streamed, and left alone by an update; each much wider than the one before."""
    database.execute("create table t (id int primary key, n int, body text)",
                     "alter table t alter body set storage external",
                     "insert into t select n, 0, repeat(md5(n::text), (4 ^ n)::int)"
                     " from generate_series(1, 9) n")
    walberg.once(memory="64MB")
    database.execute("update t set n = 1", "insert into t select n + 10, 0, body || body"
                     " from t n(id2, n, body) where id2 > 5".replace("n + 10", "id2 + 10"))
    walberg.once(memory="64MB")
    database.execute("update t set n = n + 1 where id <> 3")
    walberg.once(memory="64MB")
    compare(database, lake, ["t"])
