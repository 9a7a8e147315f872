"""Torture: the nth fault point that is passed, whatever its name, fails or ends the process, for
n = 1, 2, 3, ... until a run passes untouched; and pairs, where one fails and a later one crashes.

After each the program is started again without a fault, and every table must be equal by value to
the source, and every file there that any snapshot needs. Unlike test_crash, which begins anew for
each point by its name, a scene lives on here: what one fault left behind is there at the next.
make check takes every 20th or so, from a random one on; make check-full takes all of them.
"""
import random

import pytest

from lib.env import FULL, SEED
from lib.scene import Scene

PAIRS = 60 if FULL else 6


def every(mode, stride, scene_of, change):
    """Faults 1, 1 + stride, ... until a run passes untouched. Returns how many there were."""
    n = random.Random(SEED).randint(1, stride)
    count = 0
    while True:
        scene = scene_of(count)
        change(scene)
        met = scene.suffer(f"{mode}:{n}")
        if not met or count % 20 == 0:
            scene.whole()
        if not met:
            return count
        count += 1
        n += stride


@pytest.mark.parametrize("mode", ["fail", "crash"])
def test_initial_copy(mode, postgres, tmp_path):
    """Each in a database and a lake of its own."""
    scenes = []

    def fresh(count):
        if scenes:
            postgres.drop_database(scenes[-1].database.name)
        scenes.append(Scene(postgres, tmp_path / f"{mode}{count}", SEED))
        return scenes[-1]

    assert every(mode, 1 if FULL else 30, fresh, lambda scene: None) > 0
    postgres.drop_database(scenes[-1].database.name)


STRIDES = {"rows": 25, "truncate": 30, "schema": 35, "resync": 35, "spill": 60}


@pytest.mark.parametrize("mode", ["fail", "crash"])
@pytest.mark.parametrize("kind", STRIDES)
def test_changes(kind, mode, postgres, tmp_path):
    scene = Scene(postgres, tmp_path / f"{kind}_{mode}", SEED)
    assert scene.run().returncode == 0
    assert every(mode, 1 if FULL else STRIDES[kind], lambda _: scene,
                 lambda _: getattr(scene, kind)()) > 0
    postgres.drop_database(scene.database.name)


def test_pairs(postgres, tmp_path):
    """One step fails, and a later one, perhaps of what the failure led to, ends the process."""
    scene = Scene(postgres, tmp_path / "pairs", SEED)
    assert scene.run().returncode == 0
    both = 0
    for _ in range(PAIRS):
        scene.everything()
        first = scene.dice.randint(1, 200)
        both += len(scene.suffer(f"fail:{first},crash:{first + scene.dice.randint(1, 80)}")) == 2
    scene.whole()
    assert both > 0
    postgres.drop_database(scene.database.name)
