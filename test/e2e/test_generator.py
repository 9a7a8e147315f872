"""Random databases and random changes, from seeds: every table equal, by value and every reader.

A seed is a script (lib/replay): tables of random shapes, half of their rows there before the first
run, random transactions, and run --once between them. Odd seeds change shapes, too. A seed that
fails is made small and printed as SQL. Those of seeds.txt failed once.
"""
import random
import time

import pytest

from lib.env import FULL, ROOT, SEED
from lib.replay import Failure, Replay, Smaller, check_seed, script_of
from lib.workload import Statement, Transaction

KNOWN = [int(line.split()[0]) for line in (ROOT / "test/e2e/seeds.txt").read_text().splitlines()
         if line.strip() and not line.startswith("#")]
SECONDS = 600 if FULL else 45                     # of new seeds


@pytest.mark.parametrize("seed", KNOWN)
def test_seed_that_failed_once(seed, postgres, tmp_path):
    check_seed(postgres, tmp_path, seed)


def test_new_seeds(postgres, tmp_path):
    """Until the time is over, at least two: one that changes shapes and one that does not."""
    end = time.monotonic() + SECONDS
    first = random.Random(SEED).randrange(10**6)
    done = failed = count = 0
    while count < 2 or time.monotonic() < end:
        transactions, refused = check_seed(postgres, tmp_path, first + count)
        done += transactions
        failed += refused
        count += 1
    assert failed < done / 10, f"{failed} of {done} transactions were refused by Postgres"


def test_a_seed_is_the_same_script_again(postgres):
    assert script_of(postgres, 7).text() == script_of(postgres, 7).text()


def test_a_fault_is_found_and_made_small(postgres, tmp_path):
    """A default that old rows do not get, as the setting says: not equal, among other things."""
    script = script_of(postgres, 8, transactions=10, runs=1, count=2)
    script.settings["on_add_default"] = "ignore"
    made = Statement("create table planted (id int primary key);"
                     " insert into planted select generate_series(1, 9)", (("public", "planted"),))
    lost = Statement("alter table planted add column v int default 7", (("public", "planted"),))
    script.tables.append(("public", "planted"))
    script.steps.insert(3, Transaction([made]))
    script.steps.insert(-4, Transaction([lost]))
    replay = Replay(postgres, tmp_path, "made_small")
    with pytest.raises(Failure) as failure:
        replay.run(script)
    assert failure.value.kind == "differs: source "
    small = Smaller(replay, script, failure.value, 120).run()
    assert [step for step in small.steps if isinstance(step, Transaction)] == [
        Transaction([made]), Transaction([lost])]
    assert small.text().count("run --once") == 2
