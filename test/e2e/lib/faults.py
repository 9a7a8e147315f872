"""faults - what goes wrong around walberg while tools/soak runs it, and what people ask of it then.

Each is a function of a Soak; its name is what the log calls it. Those that the program is not alive
after leave it so: the soak starts it again.
"""
import os
import random
import shutil
import signal
import socket
import threading
import time

import psycopg

from lib.env import free_port, kill


class Proxy:
    """Passes bytes between a port of its own and a server's, until cut(). A thread for each
    direction of each connection, so that one that nobody reads holds up no other."""

    def __init__(self, port):
        self.target = port
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.lock = threading.Lock()
        self.ends = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return                            # end()
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self.lock:
                self.ends |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    def pass_on(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        with self.lock:
            self.ends -= {source, target}
        for end in (source, target):              # wakes the thread of the other direction
            self.shut(end)
        source.close()

    @staticmethod
    def shut(end):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def cut(self):
        """All connections, in the middle of whatever they carry."""
        with self.lock:
            ends = list(self.ends)
        for end in ends:
            self.shut(end)

    def end(self):
        self.shut(self.listener)
        self.listener.close()
        self.cut()


# --- the program -----------------------------------------------------------------------------


def sigkill(soak):
    soak.walberg.kill()


def sigterm(soak):
    code = soak.walberg.stop(90)
    if code not in (0, 3):
        soak.found("exit code after SIGTERM", code=code, log=soak.tail())


def sigstop(soak):
    soak.walberg.process.send_signal(signal.SIGSTOP)
    time.sleep(soak.dice.uniform(0.5, 5))
    soak.walberg.process.send_signal(signal.SIGCONT)


def query_child(soak):
    """SIGKILL of the process that answers queries."""
    with open(f"/proc/{soak.walberg.process.pid}/task/{soak.walberg.process.pid}/children",
              encoding="ascii") as file:
        children = file.read().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)


# --- its surroundings ------------------------------------------------------------------------


def walsender(soak):
    soak.database.rows("select pg_terminate_backend(active_pid) from pg_replication_slots"
                       " where active_pid is not null and database = current_database()")


def backends(soak):
    """Every connection that is not the load's."""
    soak.database.rows("select pg_terminate_backend(pid) from pg_stat_activity where"
                       " datname = current_database() and pid <> pg_backend_pid()"
                       " and application_name <> 'load'")


def connections(soak):
    soak.proxy.cut()


def postgres_fast(soak):
    soak.server.restart("fast")


def postgres_immediate(soak):
    soak.server.restart("immediate")


def postgres_away(soak):
    soak.server.stop("fast")
    time.sleep(soak.dice.uniform(1, 6))
    soak.server.start()


def s3_away(soak):
    if soak.s3:
        soak.s3.stop()
        time.sleep(soak.dice.uniform(0, 5))
        soak.s3.start()


def s3_trouble(soak):
    """For a while, a part of all requests goes wrong in one way or another."""
    soak.peer.noisy(soak.dice.random(), soak.dice.choice((0.05, 0.2, 0.5)))
    time.sleep(soak.dice.uniform(1, 8))
    soak.peer.quiet()


# --- its state folder ------------------------------------------------------------------------


def state_removed(soak):
    soak.walberg.kill()
    shutil.rmtree(soak.state, ignore_errors=True)


def state_of_old(soak):
    """A copy that was made earlier, as a backup would bring it."""
    soak.walberg.kill()
    if soak.copy.exists() and soak.dice.random() < 0.6:
        shutil.rmtree(soak.state, ignore_errors=True)
        shutil.copytree(soak.copy, soak.state)
    else:
        shutil.rmtree(soak.copy, ignore_errors=True)
        shutil.copytree(soak.state, soak.copy,
                        ignore=shutil.ignore_patterns("*.sock", "*.holds"))


def state_damaged(soak):
    """Some files of it, while the program is down: a byte, the end, or all of one."""
    soak.walberg.kill()
    files = sorted(path for path in soak.state.rglob("*")
                   if path.parent.name != "cache.holds" and path.is_file() and path.stat().st_size)
    for path in soak.dice.sample(files, min(len(files), 5)):
        damage(path, soak.dice)


def damage(path, dice):
    content = bytearray(path.read_bytes())
    kind = dice.choice(("byte", "end", "zeros"))
    if kind == "byte":
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    elif kind == "end":
        del content[dice.randrange(len(content)):]
    else:
        content[:] = bytes(len(content))
    path.write_bytes(content)


# --- transactions ----------------------------------------------------------------------------


def long_transaction(soak):
    """One that began long before others and ends long after them; nobody waits for it."""
    def work():
        try:
            with soak.connect() as conn:
                conn.execute("begin")
                conn.execute("insert into long select n, 'begun' from generate_series(1, 20) n"
                             " on conflict (id) do update set v = long.v || '.'")
                time.sleep(random.Random(soak.dice.random()).uniform(3, 12))
                conn.execute("delete from long where id > 15")
                conn.execute("commit")
        except psycopg.Error as error:
            soak.log("refused", error=str(error))
    soak.aside(work)


def large_transaction(soak):
    """Larger than the memory of the program."""
    def work():
        try:
            with soak.connect() as conn:
                conn.execute("begin")
                conn.execute("delete from bulk")
                conn.execute("insert into bulk select n, repeat(md5(n::text), 30)"
                             " from generate_series(1, 14000) n")
                conn.execute("update bulk set filler = 'short' where id % 100 = 0")
                conn.execute("delete from bulk where id % 100 = 1")
                conn.execute("commit" if soak.dice.random() < 0.8 else "rollback")
        except psycopg.Error as error:
            soak.log("refused", error=str(error))
    soak.aside(work)


# --- what people ask of it -------------------------------------------------------------------


def resync(soak):
    name = ".".join(soak.dice.choice(soak.workload.names))

    def work():
        done = soak.walberg.call("resync", *soak.walberg.positional(), name, timeout=300)
        soak.log("resync", table=name, code=done.returncode, says=done.stderr[-300:])
        if done.returncode not in (0, 1, 3):
            soak.found("exit code of resync", code=done.returncode, says=done.stderr[-2000:])
    soak.aside(work)


def verify(soak):
    def work():
        done = soak.walberg.call("verify", "--json", "--timeout", "60s",
                                 *soak.walberg.positional(), timeout=300)
        soak.verified(done)
    soak.aside(work)


ALL = [(sigkill, 6), (sigterm, 3), (sigstop, 3), (query_child, 1), (walsender, 4), (backends, 2),
       (connections, 4), (postgres_fast, 1), (postgres_immediate, 1), (postgres_away, 1),
       (s3_away, 3), (s3_trouble, 6), (state_removed, 2), (state_of_old, 3), (state_damaged, 3),
       (long_transaction, 3), (large_transaction, 2), (resync, 2), (verify, 2)]
OF_S3 = (s3_away, s3_trouble)


def choose(dice, s3):
    """A fault; that of a server there is none of is not chosen."""
    kinds, weights = zip(*((kind, weight) for kind, weight in ALL if s3 or kind not in OF_S3),
                         strict=True)
    return dice.choices(kinds, weights)[0]


def end(process):
    if process is not None and process.poll() is None:
        process.send_signal(signal.SIGCONT)
        kill(process)
