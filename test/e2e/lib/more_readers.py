"""more_readers - further engines for the full run: Spark, Trino, iceberg-go and Polars.

Each gives the same canonical rows as lib/readers, from a table in a folder. Installed by
`test/setup full`.
"""
import atexit
import base64
import datetime
import json
import os
import re
import subprocess
import tempfile
import urllib.request
import uuid

import pyarrow as pa

from lib.env import CACHE, free_port, kill, wait_for
from lib.readers import canonical_float, sort_map, table_rows

# --- Spark -----------------------------------------------------------------------------------

SPARK = {}


def spark(table):
    """Through the metadata file; Spark's own Arrow conversion keeps every microsecond."""
    frame = spark_session().read.format("iceberg").load(table.uri)
    return table_rows(frame.toArrow())


def spark_session():
    if "session" not in SPARK:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession
        jars = ":".join(str(jar) for jar in sorted((CACHE / "spark").glob("*.jar")))
        builder = SparkSession.builder.master("local[1]").appName("walberg-test")
        for key, value in {
            "spark.driver.extraClassPath": jars, "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1",
            "spark.sql.extensions":
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        }.items():
            builder = builder.config(key, value)
        SPARK["session"] = builder.getOrCreate()
        SPARK["session"].sparkContext.setLogLevel("ERROR")
    return SPARK["session"]


# --- Polars, iceberg-go ------------------------------------------------------------------------


def polars(table):
    os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
    import polars as pl
    frame = pl.scan_iceberg(table.uri, reader_override="native").collect()
    names, rows = table_rows(frame.to_arrow())
    kinds = [field["type"] for field in table.schema["fields"]]
    return names, [tuple(map(uuid_text, kinds, row)) for row in rows]


def uuid_text(kind, value):
    """Polars hands out a uuid as sixteen bytes, also inside of a list."""
    if kind == "uuid" and value is not None:
        return str(uuid.UUID(hex=value))
    if isinstance(kind, dict) and kind["type"] == "list" and value is not None:
        return [uuid_text(kind["element"], element) for element in value]
    return value


def iceberg_go(table):
    done = subprocess.run([CACHE / "bin" / "igscan", table.uri], capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return table_rows(pa.ipc.open_stream(done.stdout).read_all())


# --- Trino -----------------------------------------------------------------------------------

EPOCH = datetime.datetime(1970, 1, 1)


class Trino:
    """An embedded coordinator; tables are registered by the folder they lie in."""

    server = None

    def __init__(self):
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="walberg-trino-")
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen(
                [CACHE / "trino" / "java" / "bin" / "java", "-Xmx1g", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC",
                 "--sun-misc-unsafe-memory-access=allow",
                 "--enable-native-access=ALL-UNNAMED", "--add-modules=jdk.incubator.vector",
                 "-cp", f"{CACHE}/trino/classes:{CACHE}/trino/lib/*", "Trino", str(self.port),
                 "iceberg.catalog.type=TESTING_FILE_METASTORE",
                 f"hive.metastore.catalog.dir=local://{self.folder}/metastore"],
                stdout=log, stderr=log)
        atexit.register(kill, self.process)
        wait_for("Trino", self.ready, 120)
        self.run("create schema if not exists ice.lake")
        self.count = 0

    def ready(self):
        with open(f"{self.folder}/log", errors="replace", encoding="utf-8") as log:
            said = log.read()
        assert self.process.poll() is None, said[-3000:]
        return "READY http" in said

    def run(self, statement):
        """(columns, rows) as the protocol has them."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/statement", statement.encode(), method="POST",
            headers={"X-Trino-User": "test", "X-Trino-Catalog": "ice", "X-Trino-Time-Zone": "UTC",
                     # Without it timestamps are cut to milliseconds.
                     "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME"})
        columns, rows = [], []
        while True:
            with urllib.request.urlopen(request) as answer:
                page = json.load(answer)
            if "error" in page:
                raise RuntimeError(f"{statement}: {page['error']['message']}")
            columns = page.get("columns", columns)
            rows += page.get("data", [])
            if "nextUri" not in page:
                return columns, rows
            request = page["nextUri"]


def trino(table, without=()):
    """All columns but these."""
    if Trino.server is None:
        Trino.server = Trino()
    server = Trino.server
    server.count += 1
    folder, file = table.uri.rsplit("/metadata/", 1)
    server.run(f"call ice.system.register_table('lake', 't{server.count}', '{folder}', '{file}')")
    chosen = ", ".join('"{}"'.format(name.replace('"', '""')) for name in table.columns
                       if name not in without)
    columns, rows = server.run(f"select {chosen} from ice.lake.t{server.count}")
    kinds = [column["typeSignature"] for column in columns]
    return ([column["name"] for column in columns],
            [tuple(map(trino_value, kinds, row)) for row in rows])


def trino_value(kind, value):
    if value is None:
        return None
    name, arguments = kind["rawType"], [a["value"] for a in kind["arguments"]]
    if name in ("real", "double"):
        return canonical_float(pa.scalar(float(value), pa.float32()).as_py()
                               if name == "real" else value)
    if name == "varbinary":
        return base64.b64decode(value).hex()
    if name == "date":
        return trino_days(value)
    if name.startswith("timestamp"):
        return trino_micros(value)
    if name == "array":
        return [trino_value(arguments[0], element) for element in value]
    if name == "map":
        return sort_map([[k, trino_value(arguments[1], v)] for k, v in value.items()])
    if name == "row":
        return {part["fieldName"]["name"]: trino_value(part["typeSignature"], member)
                for part, member in zip(arguments, value, strict=True)}
    return value


def trino_days(text):
    """Days since 1970 of a date in any year: years of 400 are all 146,097 days long."""
    sign, year, month, day = re.fullmatch(r"([+-]?)(\d+)-(\d\d)-(\d\d)", text).groups()
    year = -int(year) if sign == "-" else int(year)
    cycles, year = divmod(year - 2000, 400)
    date = datetime.datetime(2000 + year, int(month), int(day))
    return cycles * 146097 + (date - EPOCH).days


def trino_micros(text):
    date, time = re.sub(r" UTC$", "", text).split(" ")
    hour, minute, second = time.split(":")
    whole, fraction = second.split(".")
    seconds = (trino_days(date) * 24 + int(hour)) * 3600 + int(minute) * 60 + int(whole)
    return seconds * 1000000 + int(fraction.ljust(6, "0")[:6])


def has_trino():
    """Trino needs a JDK 25, which not every machine has."""
    return (CACHE / "trino.made").exists()


MORE_READERS = {"spark": spark, "trino": trino, "iceberg-go": iceberg_go, "polars": polars}
