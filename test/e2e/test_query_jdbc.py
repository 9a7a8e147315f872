"""The query server through pgjdbc: what most tools that are not Python use."""
import subprocess

import pytest
from lib.env import CACHE, ROOT
from test_query import lake, serve, things  # noqa: F401 (fixtures)

DRIVER = "42.7.4"


@pytest.fixture(scope="session")
def driver():
    jar = CACHE / "jdbc" / f"postgresql-{DRIVER}.jar"
    if not jar.exists():
        subprocess.run(["mvn", "-B", "-q", "dependency:copy", f"-DoutputDirectory={jar.parent}",
                        f"-Dartifact=org.postgresql:postgresql:{DRIVER}"], check=True, timeout=300)
    return jar


def test_jdbc(things, driver):  # noqa: F811
    done = subprocess.run(["java", "-cp", str(driver), str(ROOT / "test/java/Jdbc.java"),
                           str(things.port)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {}
    for line in done.stdout.strip().split("\n"):
        name, _, value = line.partition(": ")
        said.setdefault(name, []).append(value)
    assert said["types"] == ["int8 bool int4 float4 float8 numeric date timestamptz text bytea uuid "
                             "_text"]
    # the same from text and from binary values; what foreign.rows() has
    assert said["row"] == ["1|true|-2|0.1|-0.0|1234567890.10|0001-01-01|"
                           "2026-01-01T12:00:00.000001Z|h\u00e9\u2028llo\\n|bytes[0, -1]|"
                           "00000000-0000-0000-0000-000000000005|[a, null, ]"]
    assert said["found"] == ["1"] * 8
    assert said["pieces"] == ["5000 25005000"]
    assert said["limited"] == ["3"]
    assert said["version"] == ["16"]
    assert said["table"] == ["public.things"]
    assert said["column"] == ["price numeric 12 2"]
    assert "public" in said["schema"]
    assert said["error"] == ["42601", "42P01", "25006", "57014"]
    assert said["alive"] == ["true"]
