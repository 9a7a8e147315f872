"""The proof: a random workload, the program killed at random moments, every table equal at the end.

Seeds are printed in the header of the run and in a failure; WALBERG_SEED=n repeats the same
transactions (the moments of the kills come from the seed too, the machine's pace does not).
"""
import random
import time

import pytest

from lib.env import FULL, SEED, wait_for
from lib.lake import Lake
from lib.oracle import compare, is_equal
from lib.walberg import Walberg
from lib.workload import Load, Workload

SECONDS = 120 if FULL else 20
KILLS = 20 if FULL else 5


@pytest.mark.parametrize("alters", [False, True], ids=["rows", "rows and shapes"])
@pytest.mark.parametrize("round_", range(4 if FULL else 1))
def test_every_table_is_equal_after_kills(round_, alters, database, storage, tmp_path):
    seed = SEED + round_
    dice = random.Random(seed)
    with database.connect() as conn:
        workload = Workload(conn, seed, 0.01 if alters else 0)
        walberg = Walberg(database, storage, tmp_path, **workload.settings,
                          memory="64MB", commit__interval=dice.choice(["100ms", "300ms", "1s"]))
        workload.fill(200)
        load = Load(workload, rate=100)
        walberg.start()
        load.start()
        try:
            for _ in range(KILLS):
                time.sleep(dice.uniform(0.05, 2 * SECONDS / KILLS))
                walberg.kill()
                walberg.start()
        finally:
            load.stop()
        walberg.wait_caught_up()
        assert load.count > 100
    if alters:                                    # what only the catalog tells is seen by looking
        wait_for("all tables to be as in the catalog",
                 lambda: is_equal(database, Lake(storage), workload.names), 60, pause=2)
    compare(database, Lake(storage), workload.names)
    assert walberg.stop() == 0
