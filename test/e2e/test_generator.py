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


def test_seeds_that_failed_once(postgres, tmp_path):
    for seed in KNOWN:
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
    """TRUNCATE of a single partition, which Postgres does not send (README), among other things."""
    script = script_of(postgres, 8, transactions=10, runs=1, count=2)
    made = Statement("create table roots (id int primary key, v text) partition by range (id);"
                     " create table leaf partition of roots for values from (0) to (100);"
                     " insert into roots select n, 'v' from generate_series(1, 9) n",
                     (("public", "roots"),))
    lost = Statement("truncate leaf", (("public", "roots"),))
    script.tables.append(("public", "roots"))
    script.steps.insert(3, Transaction([made]))
    script.steps.insert(-4, Transaction([lost]))
    replay = Replay(postgres, tmp_path, "made_small")
    with pytest.raises(Failure) as failure:
        replay.run(script)
    assert failure.value.kind == "differs: not in the source"
    small = Smaller(replay, script, failure.value, 120).run()
    assert [step for step in small.steps if isinstance(step, Transaction)] == [
        Transaction([made]), Transaction([lost])]
    assert small.text().count("run --once") == 2
