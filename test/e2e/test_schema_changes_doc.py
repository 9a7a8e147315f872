"""docs/schema-changes.md says what each statement does; here it does it."""
import re

import pytest

from lib.env import FORMAT_VERSION, ROOT
from lib.oracle import compare

PAGE = (ROOT / "docs" / "schema-changes.md").read_text()
SETUP = re.search(r"```sql\n(.*?)```", PAGE, re.S).group(1)
ROWS = re.findall(r"^\| `(.+?)` \| (.+?) \| (in place|copied again) \|$", PAGE, re.M)
FILL = ["insert into t select n, n, n, n, 's' || n, 'good', row(n, n)::pair, 2000 + n"
        " from generate_series(1, 9) n",
        "insert into parent select n, date '2020-06-01' + 100 * n from generate_series(1, 5) n"]
BEFORE = ["delete from t where id = 1", "insert into t (id, s) values (11, 'x')"]
AFTER = ["delete from {t} where id in (2, 11)", "insert into {t} (id, s) values (12, 'y')",
         "insert into parent values (9, '2021-02-03')"]
# The lake's table keeps its name, and is compared with the one of that name.
BACK = {"u": "alter table u rename to t", "other.t": "alter table other.t set schema public"}


def test_every_statement_of_the_page_is_here():
    assert len(ROWS) == len(re.findall(r"^\| `", PAGE, re.M)) > 30


@pytest.mark.parametrize("statement, how", [(row[0], row[2]) for row in ROWS],
                         ids=[row[0] for row in ROWS])
def test_statement(statement, how, database, walberg, lake):
    database.execute(*SETUP.split(";\n")[:-1], *FILL)
    walberg.once()
    name = "u" if "rename to" in statement else "other.t" if "set schema" in statement else "t"
    database.execute(*BEFORE, *statement.split("; "), *(line.format(t=name) for line in AFTER))
    walberg.once()
    copied = "copied again" in walberg.log()
    if FORMAT_VERSION == 2 or "default 7" not in statement:
        assert copied == (how == "copied again"), walberg.log()
    if name in BACK:
        database.execute(BACK[name])
    compare(database, lake, ["t", "parent"], readers=["duckdb", "pyiceberg"])
