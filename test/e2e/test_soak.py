"""Three minutes of tools/soak: random faults of all kinds while a random workload runs."""
import os
import random
import subprocess

from lib.env import FULL, ROOT, SEED, port_range

MINUTES = 30 if FULL else 3


def test_soak():
    seed = random.Random(SEED).randrange(10**6)
    low, high = port_range()
    done = subprocess.run([ROOT / "tools" / "soak", "--seed", str(seed), "--minutes",
                           str(MINUTES)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60 * MINUTES + 600, check=False,
                          env={**{k: v for k, v in os.environ.items()
                                  if not k.startswith("PYTEST_XDIST")},
                               "WALBERG_TEST_PORTS": f"{low}-{high}"})
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-6000:]
