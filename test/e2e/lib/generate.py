"""generate - the command behind tools/generate."""
import argparse
import pathlib
import random
import signal
import sys
import tempfile
import time

from lib.postgres import Postgres
from lib.replay import check_seed


def main():
    parser = argparse.ArgumentParser(prog="tools/generate")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=0, help="default: the one seed")
    parser.add_argument("--smaller", type=float, default=600, metavar="SECONDS",
                        help="how long a failing seed is made small; default: 600")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    end = time.monotonic() + 60 * chosen.minutes
    folder = pathlib.Path(tempfile.mkdtemp(prefix="walberg-generate-"))
    server = Postgres()
    seed, bad = chosen.seed, []
    try:
        while seed == chosen.seed or time.monotonic() < end:
            try:
                done, refused = check_seed(server, folder, seed, seconds=chosen.smaller)
                print(f"seed {seed}: equal, {done} transactions, {refused} refused", flush=True)
            except AssertionError as error:
                print(f"seed {seed}: FAILED\n{error}", flush=True)
                bad.append(seed)
            seed += 1
    finally:
        server.remove()
    print(f"{seed - chosen.seed} seeds, failed: {bad or 'none'}; folders of these in {folder}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
