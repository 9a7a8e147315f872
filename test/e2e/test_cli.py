"""The command line as a user meets it: exit codes, where output goes, hints, init, help.

Runs the program itself: $WALBERG, or build/walberg.
"""

import json
import os
import pathlib
import re
import stat
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WALBERG = pathlib.Path(os.environ.get("WALBERG", ROOT / "build" / "walberg")).resolve()


@pytest.fixture
def walberg(tmp_path):
    """Call walberg in an empty folder, with an environment without settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WALBERG_", "AWS_", "PG"))}
    env["HOME"] = str(tmp_path)

    def call(*args, stdout=subprocess.PIPE, **more_env):
        return subprocess.run(
            [WALBERG, *args], cwd=tmp_path, env={**env, **more_env}, text=True,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=60,
        )

    call.folder = tmp_path
    return call


def commands(walberg):
    """Names in the command list of `walberg help`."""
    listing = walberg("help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listing.splitlines()]


def test_without_arguments_it_explains_itself_on_stderr(walberg):
    done = walberg()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Usage: walberg COMMAND" in done.stderr


@pytest.mark.parametrize("args", [["help"], ["--help"], ["-h"]])
def test_help_goes_to_stdout(walberg, args):
    done = walberg(*args)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: walberg COMMAND" in done.stdout


def test_every_command_has_help_in_three_forms(walberg):
    names = commands(walberg)
    assert {"init", "help", "version"} <= set(names)
    for name in names:
        text = walberg("help", name).stdout
        assert text.startswith(f"Usage: walberg {name}")
        assert walberg(name, "--help").stdout == text
        assert walberg("--help", name).stdout == text


def test_help_lines_fit_a_terminal(walberg):
    for topic in [[], ["settings"], *[[name] for name in commands(walberg)]]:
        for line in walberg("help", *topic).stdout.splitlines():
            assert len(line) <= 100, line


def test_version(walberg):
    for args in (["version"], ["--version"], ["-V"]):
        done = walberg(*args)
        assert done.returncode == 0
        assert re.match(r"walberg \d+\.\d+\.\d+\nDuckDB \d+\.\d+\.\d+\nlibpq \d+\.\d+\n",
                        done.stdout)
    shown = json.loads(walberg("version", "--json").stdout)
    assert list(shown) == ["walberg", "duckdb", "libpq"]
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in shown.values()), shown


@pytest.mark.parametrize(
    "args, message",
    [
        (["hlep"], 'walberg: unknown command "hlep"\nhint: did you mean "help"?\n'),
        (["frobnicate"], 'walberg: unknown command "frobnicate"\nhint: walberg help lists them\n'),
        (["help", "--jsno"], 'walberg: unknown option "--jsno"\nhint: did you mean --json?\n'),
        (["help", "-x"], 'walberg: unknown option "-x"\nhint: walberg help lists them\n'),
        (["help", "-c"], 'walberg: the option "-c" wants an argument\n'),
        (["help", "--set"], 'walberg: the option "--set" wants an argument\n'),
        (["init", "--once"], "walberg: walberg init takes no option --once\n"),
        (["init", "a", "b"], "walberg: wrong number of arguments\nhint: walberg init [FILE]\n"),
        (["version", "x"], "walberg: wrong number of arguments\nhint: walberg version\n"),
        (["help", "--format", "pdf"],
         'walberg: help has no format "pdf"\nhint: text or markdown\n'),
        (
            ["help", "me"],
            'walberg: no help on "me"\n'
            "hint: walberg help lists the commands; there are also walberg help settings and"
            " walberg help types\n",
        ),
    ],
)
def test_wrong_usage_is_exit_2_with_a_hint(walberg, args, message):
    done = walberg(*args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_init_writes_once(walberg):
    done = walberg("init")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    file = walberg.folder / "walberg.yaml"
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "interval: 10s" in text
    assert "\n  postgres: postgres://" in text

    done = walberg("init")
    assert done.returncode == 1
    assert done.stderr.startswith("walberg: walberg.yaml exists\nhint: ")
    assert file.read_text() == text

    assert walberg("init", "-").stdout == text
    assert walberg("init", "other.yaml").returncode == 0
    assert (walberg.folder / "other.yaml").read_text() == text
    assert walberg("init", "no/such/folder.yaml").returncode == 1


@pytest.mark.parametrize("args", [["help"], ["init", "-"], ["version", "--json"]])
def test_a_full_disk_behind_stdout_is_noticed(walberg, args):
    with open("/dev/full", "w") as full:
        done = walberg(*args, stdout=full)
    assert done.returncode == 1
    assert "walberg: cannot write to standard output: No space left on device" in done.stderr


def test_a_reader_that_left_is_noticed(walberg):
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = walberg("help", "settings", stdout=write_end)
    finally:
        os.close(write_end)
    assert done.returncode == 1
    assert "Broken pipe" in done.stderr


def test_help_settings_lists_every_key(walberg):
    text = walberg("help", "settings").stdout
    for key in ("pipeline", "source.postgres", "sink.iceberg.s3.secret_access_key",
                "commit.interval", "tables.PATTERN.key"):
        assert re.search(rf"^{re.escape(key)} \(", text, re.M), key
    assert "commit.interval (duration, 100ms to 1h; default 10s)" in text


def test_documents_are_what_the_program_prints(walberg):
    commands = walberg("help", "commands", "--format", "markdown").stdout
    assert (ROOT / "docs" / "commands.md").read_text() == commands
    settings = walberg("help", "settings", "--format", "markdown").stdout
    assert (ROOT / "docs" / "settings.md").read_text() == settings


# Settings are read by commands that need them: `status` is the cheapest of these.
needs_status = pytest.mark.skipif(
    "  status" not in subprocess.run([WALBERG, "help"], capture_output=True, text=True).stdout,
    reason="no command that reads settings yet",
)


@needs_status
@pytest.mark.parametrize(
    "args, env, message",
    [
        (["-s", "comit.interval=1s"], {},
         'walberg: --set comit.interval: unknown setting\n'
         'hint: did you mean "commit.interval"?\n'),
        (["-s", "commit.interval=5ms"], {},
         "walberg: --set commit.interval: 5ms is less than the minimum 100ms\n"),
        ([], {"WALBERG_COMMIT_INTERVAL": "5"},
         "walberg: WALBERG_COMMIT_INTERVAL: 5 has no unit\n"
         "hint: durations are written 500ms, 10s, 5m or 1h\n"),
        (["-c", "none.yaml"], {},
         "walberg: cannot read none.yaml: No such file or directory\n"),
    ],
)
def test_wrong_settings_are_exit_2(walberg, args, env, message):
    done = walberg("status", *args, **env)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@needs_status
def test_wrong_settings_in_the_file_have_their_place(walberg):
    (walberg.folder / "walberg.yaml").write_text("source:\n  slot: a\n\ncomit:\n  interval: 1s\n")
    done = walberg("status")
    assert done.returncode == 2
    assert done.stderr == (
        'walberg: walberg.yaml:5:3: unknown setting "comit.interval"\n'
        'hint: did you mean "commit.interval"?\n'
    )
