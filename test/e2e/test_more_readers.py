"""Engines that people use and that the everyday run has no time for (make check-full)."""
import pytest

from lib import foreign
from lib.env import FULL
from lib.lake import Lake
from lib.more_readers import MORE_READERS, has_trino, polars, trino
from lib.oracle import Truth, differences
from lib.postgres import Database
from lib.storage import Storage
from lib.walberg import Walberg
from lib.workload import Workload
from test_harness import expected_rows

pytestmark = pytest.mark.skipif(not FULL, reason="make check-full")


@pytest.fixture(params=MORE_READERS, name="reader")
def further_reader(request):
    if request.param == "trino" and not has_trino():
        pytest.skip("no JDK 25 for Trino")
    return MORE_READERS[request.param]


def test_reader_gives_canonical_rows(reader, tmp_path):
    """The reader and its conversion, on a table that is not ours."""
    table = foreign.with_position_deletes(foreign.write(Storage(tmp_path)), [1])
    names, rows = reader(table)
    assert names == table.columns
    assert sorted(rows) == [row for row in expected_rows() if row[0] != 2]


@pytest.fixture(scope="module", params=[2, 3], name="lived")
def lived_in_lake(request, postgres, tmp_path_factory):
    """A lake that a random workload has been through, under each format version."""
    folder = tmp_path_factory.mktemp("more")
    database = Database(postgres, f"more_readers_{request.param}")
    walberg = Walberg(database, Storage(folder / "lake"), folder,
                      sink__iceberg__format_version=request.param)
    with database.connect() as conn:
        workload = Workload(conn, 11)
        workload.fill(100)
        walberg.once()
        for _ in range(500):
            workload.transaction()
    walberg.once()
    yield database, Lake(walberg.storage), workload.names
    postgres.drop_database(database.name)


def test_reader_agrees_with_the_source(reader, lived):
    database, lake, tables = lived
    if reader is polars and lake.tables()[tables[0]].metadata["format-version"] == 2:
        pytest.skip("Polars refuses position delete files that concern several data files")
    complaints = []
    for name in tables:
        with database.connect() as conn:
            truth = Truth(conn, name)
        options = {}
        if reader is trino:
            # Trino packs milliseconds and zone into 64 bits, which ends in the year 73326: it reads
            # no row of a table whose timestamptz goes beyond, as the workload's do.
            zoned = [c.name for c in truth.columns if "timestamptz" in str(c.kind)]
            truth, options = truth.without(zoned), {"without": zoned}
        complaints += [f"{name}: {line}" for line
                       in differences(truth, *reader(lake.tables()[name], **options))]
    assert not complaints, "\n".join(complaints)
