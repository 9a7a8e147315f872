"""A disk that fails below the program (test/lib/disk_trouble.c), for the lake in a folder and for
the state folder: full, full in the middle of a block, unreadable, and a failed writing back that
loses what was written. A run may end for it, and says why; the next one makes it equal."""
import errno

import pytest

from lib.env import FULL, PROGRAM, SEED
from lib.scene import Scene

SHIM = PROGRAM.parent / "test" / "libdisk_trouble.so"
TROUBLE = [("open", errno.EIO), ("write", errno.ENOSPC), ("short", errno.ENOSPC),
           ("write", errno.EIO), ("sync", errno.EIO), ("name", errno.EIO), ("read", errno.EIO)]
FOR_EVER = 1 << 30
# The last call that may be the first to fail, and how many do. There may be few.
CASES = [(1, 1), (80, 6), (1, 6), (12, 1), (200, 1)]
FULL_CASES = 10 * CASES + [(20, FOR_EVER), (80, FOR_EVER)]
ENDS = (0, 1, 3)                                  # never 4, and no signal


@pytest.mark.parametrize("operation, error, where", [
    (operation, error, where) for where in ("lake", "state") for operation, error in TROUBLE
    if (operation, where) != ("sync", "state")],  # nothing there is synced: it may be lost
                         ids=lambda v: v if isinstance(v, str) else errno.errorcode[v])
def test_a_disk_that_fails(operation, error, where, postgres, tmp_path):
    """At random calls, once and several times in a row; first in the copy, then in changes."""
    scene = Scene(postgres, tmp_path / f"{operation}_{errno.errorcode[error]}_{where}", SEED)
    folder = scene.walberg.folder / where
    met = 0
    for most, count in FULL_CASES if FULL else CASES:
        first = scene.dice.randint(1, most)
        done = scene.run(timeout=600, LD_PRELOAD=str(SHIM),  # it is patient
                         DISK_TROUBLE=f"{operation} {error} {first} {count} {folder}")
        story = f"WALBERG_SEED={SEED} {operation} {first} {count} {where}"
        assert done.returncode in ENDS, f"{story}: exit {done.returncode}: {done.stderr[-3000:]}"
        assert done.returncode == 0 or "walberg: " in done.stderr, story
        met += "\ndisk: " in done.stderr
        again = scene.run()
        assert again.returncode == 0, f"{story}: afterwards: {again.stderr[-3000:]}"
        try:
            scene.equal()
        except AssertionError as wrong:
            raise AssertionError(f"{story}: {wrong}\n{done.stderr[-3000:]}") from wrong
        scene.everything()
    assert scene.run().returncode == 0
    scene.whole()
    assert met > 0
    postgres.drop_database(scene.database.name)
