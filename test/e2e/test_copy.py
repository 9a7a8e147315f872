"""The initial copy, disturbed: connections that are cut, tables that change, a store that is away."""
import pytest

from lib.oracle import compare


@pytest.mark.parametrize("rows", [8192, 16384])
def test_last_batch_is_full(rows, database, walberg, lake):
    """The number of rows is a multiple of a batch's, so that an empty one follows."""
    database.execute("create table t (id int primary key)",
                     f"insert into t select n from generate_series(1, {rows}) n")
    walberg.once()
    compare(database, lake, ["t"])
