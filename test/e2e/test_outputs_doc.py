"""docs/outputs.md says what programs may rely on; here that is compared with what walberg writes.

Keys, columns and properties are those of a real run. Events are read from the source, because most
need an accident."""
import re

import pytest

from lib.env import ROOT, wait_for

PAGE = (ROOT / "docs" / "outputs.md").read_text()
SOURCES = {p: p.read_text() for p in (ROOT / "src").rglob("*.[ch]")}


def table(after):
    """The first cells of the first table that follows this text."""
    text = PAGE.split(after, 1)[1]
    rows = re.search(r"(?:^\|.*\n)+", text, re.M).group(0).splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def keys(after):
    found = [key for row in table(after) for key in re.findall(r"`(.+?)`", row[0])]
    assert found and len(found) == len(set(found))
    return set(found)


def check_status(status, but):
    assert set(status) == keys("## status --json") - but
    assert set(status["source"]) == keys("`source`, each null") - {"error"}
    for shown in status["tables"]:
        assert set(shown) == keys("`tables`, one object each"), shown


def test_status_and_the_lake(database, walberg, lake):
    """Running and stopped, a table that streams and one that is gone; every property there is."""
    database.execute("create table t (id int primary key, n numeric, m numeric(6, 2), day date)",
                     "create table gone (id int primary key)",
                     "insert into t values (1, 1.5, 'NaN', '2026-01-01')")
    settings = {"tables.public.t.partition": '["month(day)"]', "tables.public.t.sort": '["id"]'}
    walberg.start(**settings).wait_streaming()
    database.execute("insert into t values (2, 1.5, 'NaN', '2026-01-01')", "drop table gone")
    walberg.wait_caught_up()
    wait_for("the loss", lambda: "dropped" in [t["state"] for t in walberg.status()["tables"]], 20)
    check_status(walberg.status(), set())
    assert walberg.stop() == 0
    check_status(walberg.status(), {"pid"})
    with pytest.raises(AssertionError):
        check_status(walberg.status(), set())

    t, rejects = lake.table("t"), lake.table("rejects", "_walberg")
    uuid = t.metadata["table-uuid"]
    known = keys("## Table properties")
    names = {"COLUMN": "n", "UUID": uuid}
    expected = {re.sub("COLUMN|UUID", lambda m: names[m.group(0)], key) for key in known}
    assert set(t.metadata["properties"]) | set(rejects.metadata["properties"]) == expected

    ours = {key for one in (t, rejects) for snapshot in one.metadata["snapshots"]
            for key in snapshot["summary"] if key.startswith(("cdc.", "engine-", "walberg."))}
    assert ours == keys("## Snapshots")
    assert {row[0].strip("`"): row[1] for row in table("## `_walberg.rejects`")} \
        == {field["name"]: field["type"] for field in rejects.schema["fields"]}


def test_every_property_of_the_source_is_there():
    """What it writes only at times, too."""
    written = {name for text in SOURCES.values()
               for name in re.findall(r'"((?:cdc|walberg)\.[a-z-]+)(?:\.(?:%[^"]*)?)?"', text)}
    written -= {"walberg.yaml"}
    page = {re.sub(r"\.(COLUMN|UUID)", "", key)
            for key in keys("## Table properties") | keys("## Snapshots")}
    assert written == {key for key in page if key.startswith(("cdc.", "walberg."))}


# Whose text becomes the event of a warning, by itself or after the others that lead to it.
TELLERS = "status_retry|retry_again|writer_try_again|look_later|reconnect"
STRING = r'"((?:[^"\\]|\\.)*)"'
QUOTED = STRING.replace("((", "(?:(")


def events():
    found = set()
    for path, text in SOURCES.items():
        if path.name == "log.h":
            continue
        for level, arguments in re.findall(
                rf"\blog_(info|warn|error)\(((?:[^;\"]|{QUOTED})*?)(?=,\s*LOG_|\);)", text):
            found |= {(level, event) for event in re.findall(STRING, arguments)}
        for arguments in re.findall(rf"\b(?:{TELLERS})\(([^;{{]*?), err\)", text):
            found |= {("warn", event) for event in re.findall(STRING, arguments)}
    return found


def test_every_event_of_the_source_is_there():
    assert events() == {(row[0], row[1].strip("`")) for row in table("## The log")}
    assert len(events()) > 70
