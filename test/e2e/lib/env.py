"""env - where things are, and the small needs of everything here: ports, waiting, processes."""
import collections
import os
import pathlib
import random
import signal
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("WALBERG_TEST_CACHE") or "~/.cache/walberg-test").expanduser()
PROGRAM = pathlib.Path(os.environ.get("WALBERG") or ROOT / "build" / "walberg")
FULL = bool(os.environ.get("WALBERG_FULL"))
POSTGRES = int(os.environ.get("WALBERG_POSTGRES") or 15)  # major version that tests run against
FORMAT_VERSION = int(os.environ.get("WALBERG_FORMAT_VERSION") or 2)  # of Iceberg
SEED = int(os.environ.get("WALBERG_SEED") or random.SystemRandom().randrange(1, 10**6))


def since(major):
    """Mark of a test whose subject came with this major version of Postgres."""
    return pytest.mark.skipif(POSTGRES < major, reason=f"came with Postgres {major}")


def port_range():
    """Of this process: tests that run side by side (pytest-xdist) each have a part of the whole."""
    first, last = map(int, (os.environ.get("WALBERG_TEST_PORTS") or "20000-29999").split("-"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT") or 1)
    worker = int((os.environ.get("PYTEST_XDIST_WORKER") or "gw0").removeprefix("gw"))
    part = (last - first + 1) // workers
    return first + worker * part, first + (worker + 1) * part - 1


handed_out = collections.deque()  # ports, the latest last


def free_port(start=None, end=None):
    """A port nobody listens on, and none that was handed out lately: who asks for several binds
    them all later. WALBERG_TEST_PORTS=21600-21999 keeps to a range."""
    first, last = port_range()
    wanted = range(start or int(first), (end or int(last)) + 1)
    while len(handed_out) > len(wanted) // 2:
        handed_out.popleft()
    for port in random.SystemRandom().sample(wanted, len(wanted)):
        if port in handed_out:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            handed_out.append(port)
            return port
    raise RuntimeError("no free port")


def wait_for(what, condition, seconds=60, pause=0.1):
    """Poll condition() until it is true; its value. An assertion names what did not come."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(pause)


def listening(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def kill(process, sig=signal.SIGKILL, seconds=30):
    """End a process that was started here, and wait for it. Returns its exit code."""
    if process.poll() is None:
        process.send_signal(sig)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.wait()
        raise AssertionError(f"pid {process.pid}: alive {seconds} s after signal {sig}") from late
