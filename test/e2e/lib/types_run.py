"""types_run - a pipeline with a table per type, whose values come by the copy and by the stream."""
import re

from lib import values
from lib.lake import Lake
from lib.storage import Storage
from lib.walberg import Walberg


def table_name(case):
    name = "char1" if case.sql == '"char"' else case.sql.replace("[]", " array")
    return "t_" + re.sub(r"\W+", "_", name).strip("_").lower()


class TypesRun:
    """One pipeline with a table per type (of a chosen few, or of cases whose types are there), run
    through copy and stream; `uri` is walberg's connection when it is another one than ours."""

    def __init__(self, database, folder, few=None, uri=None, cases=None):
        self.database = database
        self.storage = Storage(folder / "lake")
        self.lake = Lake(self.storage)
        with database.connect() as conn:
            self.cases = cases or [case for case in values.available(conn)
                                   if not few or case.sql in few]
            for case in self.cases:
                self.make(conn, case)
        walberg = Walberg(database, self.storage, folder)
        walberg.positional = lambda: [uri or database.uri, self.storage.uri]
        walberg.once()
        with database.connect() as conn:
            for case in self.cases:
                self.stream(conn, case)
        walberg.once()
        self.log = walberg.log()

    @staticmethod
    def all_values(case):
        return [None, *case.edges, *case.rejects]

    def make(self, conn, case):
        name = table_name(case)
        conn.execute(f"create table {name} (id int primary key, v {case.sql}, n int)")
        for i, value in enumerate(self.all_values(case)):
            conn.execute(f"insert into {name} values (%s, %s, 0)", [i, value])

    def stream(self, conn, case):
        """1000+: inserted; 2000+: inserted empty, then updated; 3000+: given another key; and every
        copied row is updated in a column that is not of this type."""
        name = table_name(case)
        for i, value in enumerate(self.all_values(case)):
            conn.execute(f"insert into {name} values (%s, %s, 0)", [1000 + i, value])
            conn.execute(f"insert into {name} values (%s, null, 0)", [2000 + i])
            conn.execute(f"update {name} set v = %s where id = %s", [value, 2000 + i])
            conn.execute(f"insert into {name} values (%s, %s, 0)", [-1 - i, value])
            conn.execute(f"update {name} set id = %s where id = %s", [3000 + i, -1 - i])
        conn.execute(f"update {name} set n = 1 where id < 1000")
