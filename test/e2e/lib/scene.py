"""scene - four tables of different kinds in one pipeline that lives through many faults: what one
left behind is there at the next.
"""
import io
import random
import re

import fastavro

from lib.env import SEED
from lib.lake import Lake
from lib.oracle import compare
from lib.postgres import Database, drop_slot
from lib.storage import Storage
from lib.walberg import Walberg

LEFT_BEHIND = "was left behind by an earlier start"
KILLED = 137                                      # 128 + SIGKILL: what a fault point exits with
TABLES = ["accounts", "notes", "ledger", "big"]
SPILLED = 14000                                   # rows of 1 kB: beyond a fifth of memory=64MB


class Scene:
    """Each kind of change is something to do for the next run. Files are looked at in `storage`;
    the program may get there by another way."""

    def __init__(self, server, folder, seed, storage=None, **settings):
        folder.mkdir(exist_ok=True)
        self.dice = random.Random(seed)
        self.rounds = 0
        self.shape = 0
        self.database = Database(server, f"torture_{folder.name}")
        self.storage = storage or Storage(folder / "lake")
        self.lake = Lake(self.storage)
        self.walberg = Walberg(self.database, self.storage, folder, memory="64MB", **settings)
        self.sound = set()                        # manifests whose files were all there
        self.history = []
        self.execute(
            "create table accounts (id int primary key, balance numeric(12,2), memo text)",
            "alter table accounts alter column memo set storage external",
            "create table notes (id int, body text)",
            "alter table notes replica identity full",
            "create table ledger (day date, line int, total bigint, primary key (day, line))"
            " partition by range (day)",
            "create table ledger_old partition of ledger for values from (minvalue) to"
            " ('2024-01-01')",
            "create table ledger_new partition of ledger for values from ('2024-01-01') to"
            " (maxvalue)",
            "create table big (id int primary key, filler text)",
            "insert into accounts select n, n, repeat('m', 3000) from generate_series(1, 60) n",
            "insert into notes select n / 2, 'note' from generate_series(1, 20) n",
            "insert into ledger select date '2023-12-25' + n, n, n from generate_series(1, 20) n")

    def execute(self, *statements):
        self.database.execute(*statements)

    # --- what happens in the source --------------------------------------------------------

    def rows(self):
        self.rounds += 1
        n = self.rounds
        with self.database.connect(autocommit=False) as conn:
            conn.execute("update accounts set balance = balance + 1 where id %% 3 = %s", [n % 3])
            conn.execute("delete from accounts where id = (select max(id) from accounts)")
            conn.execute("insert into accounts select max(id) + 1, 0, repeat('n', 2500)"
                         " from accounts")
            conn.execute("update accounts set id = %s where id = (select min(id) from accounts"
                         " where id > 0)", [-n])
            conn.execute("delete from notes where id = 1")
            conn.execute("update ledger set day = day + 1, total = total + 1 where line = %s",
                         [n % 20 + 1])
            conn.commit()
        self.execute("insert into notes values (1, 'twin'), (1, 'twin')",
                     "insert into accounts select n, n, repeat('m', 3000)"
                     " from generate_series(1, 60) n on conflict do nothing")

    def truncate(self):
        self.rows()
        self.execute("begin; insert into notes values (5, 'gone'); truncate notes, ledger;"
                     " insert into ledger values ('2024-02-02', 1, 1); commit",
                     "insert into notes select n, 'after' from generate_series(1, 9) n",
                     "insert into ledger select date '2023-12-25' + n, n, n"
                     " from generate_series(1, 20) n")

    def schema(self):
        """What one change does, the next one takes back: columns come and go, and change names."""
        self.rows()
        if self.shape == 0:
            self.execute("alter table accounts add column extra int",
                         "update accounts set extra = id where id % 2 = 0",
                         "alter table notes rename column body to content",
                         "insert into notes values (7, 'renamed')",
                         "alter table ledger add column note text default 'x'")
        else:
            self.execute("alter table accounts drop column extra",
                         "update accounts set balance = 0 where id % 5 = 0",
                         "alter table notes rename column content to body",
                         "insert into notes values (8, 'again')",
                         "alter table ledger drop column note")
        self.execute("update ledger set total = 1 where line = 3")
        self.shape = 1 - self.shape

    def resync(self):
        self.rows()
        names = ["public.accounts", "public.notes", "ledger"]
        done = self.walberg.call("resync", *self.walberg.positional(),
                                 *self.dice.sample(names, 2))
        assert done.returncode == 0, done.stderr

    def spill(self):
        """One transaction larger than the memory, of new rows, changed ones and removed ones."""
        self.rows()
        self.execute("begin; delete from big; insert into big select n, repeat(md5(n::text), 30)"
                     f" from generate_series(1, {SPILLED}) n;"
                     " update big set filler = 'short' where id % 100 = 0;"
                     " delete from big where id % 100 = 1;"
                     " update accounts set balance = 1; commit")

    def everything(self):
        for kind in self.dice.sample(["rows", "truncate", "schema", "resync", "spill"], 3):
            getattr(self, kind)()

    # --- the program -----------------------------------------------------------------------

    def run(self, fault=None, timeout=120, **environment):
        self.walberg.extra_environment = {**environment,
                                          **({"WALBERG_FAULT": fault} if fault else {})}
        return self.walberg.call("run", "--once", *self.walberg.positional(), timeout=timeout)

    def suffer(self, fault):
        """A run with the fault and one without: the names of the points that were met."""
        done = self.run(fault)
        met = re.findall(r"^fault at (\S+):", done.stderr, re.M)
        self.history.append((fault, met))
        story = f"WALBERG_SEED={SEED} {self.history[-3:]}"
        wanted = (KILLED,) if "crash" in fault and len(met) == fault.count(":") else (0, 3)
        assert done.returncode in (wanted if met else (0,)), \
            f"{story}: exit {done.returncode}: {done.stderr[-3000:]}"
        again = self.run()
        if LEFT_BEHIND in again.stderr:  # it died between the slot and the word that it is ours
            with self.database.connect() as conn:
                drop_slot(conn, self.walberg.slot()[0])
            again = self.run()
        assert again.returncode == 0, f"{story}: afterwards: {again.stderr[-3000:]}"
        try:
            self.equal()
        except AssertionError as error:
            raise AssertionError(f"{story}: {error}") from error
        return met

    def equal(self):
        compare(self.database, self.lake, TABLES, readers=["duckdb"], check=False)

    def whole(self):
        """Equal, true by the letter of the spec, and nothing lost that an older snapshot needs."""
        compare(self.database, self.lake, TABLES, readers=["duckdb"])
        there = {self.storage.key(f"{self.storage.uri}/{path}") for path in self.storage.list()}
        lost = []
        for table in self.lake.tables().values():
            for snapshot in table.metadata.get("snapshots") or []:
                lost += self.missing(snapshot["manifest-list"], there)
        assert not lost, f"{self.history[-10:]}: gone: {lost[:10]}"

    def missing(self, manifest_list, there):
        if self.storage.key(manifest_list) not in there:
            return [manifest_list]
        lost = []
        for manifest in self.avro(manifest_list):
            path = manifest["manifest_path"]
            if path in self.sound:
                continue
            if self.storage.key(path) not in there:
                lost.append(path)
                continue
            files = [e["data_file"]["file_path"] for e in self.avro(path) if e["status"] != 2]
            gone = [f for f in files if self.storage.key(f) not in there]
            lost += gone
            if not gone:
                self.sound.add(path)
        return lost

    def avro(self, location):
        return list(fastavro.reader(io.BytesIO(self.storage.read(location))))
