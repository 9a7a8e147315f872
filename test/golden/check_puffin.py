#!/usr/bin/env python3
"""Have PyIceberg and the reference Java library read a Puffin file that we wrote.

usage: WALBERG_KEEP=FOLDER build/test/unit_puffin; check_puffin.py FOLDER [JAVA_CLASS_PATH]

JAVA_CLASS_PATH is that of Iceberg's jars and may be left out; needs pyiceberg[pyarrow] and
pyroaring. Prints one line per check; exits 1 when one fails.
"""
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap

FAILED = []

JAVA = """
import java.util.List;
import org.apache.iceberg.Files;
import org.apache.iceberg.puffin.*;

public class Dump {
  public static void main(String[] args) throws Exception {
    try (PuffinReader reader = Puffin.read(Files.localInput(args[0])).build()) {
      for (BlobMetadata blob : reader.fileMetadata().blobs())
        System.out.println(blob.type() + " " + blob.offset() + " " + blob.length() + " "
            + blob.properties().get("cardinality") + " " + blob.inputFields() + " "
            + blob.snapshotId() + " " + blob.sequenceNumber() + " " + blob.compressionCodec() + " "
            + blob.properties().get("referenced-data-file"));
    }
  }
}
"""


def check(name, ok, detail=""):
    print("%s %s%s" % ("ok  " if ok else "FAIL", name, "" if ok else ": %s" % (detail,)))
    if not ok:
        FAILED.append(name)


def expected(folder):
    vectors, rows = [], defaultdict(list)
    for line in (folder / "vectors.puffin.txt").read_text().splitlines():
        kind, rest = line.split(" ", 1)
        if kind == "vector":
            offset, length, cardinality, name = rest.split(" ", 3)
            vectors.append((int(offset), int(length), int(cardinality), name))
        else:
            row, name = rest.split(" ", 1)
            rows[name].append(int(row))
    return vectors, rows


def main():
    folder = Path(sys.argv[1])
    content = (folder / "vectors.puffin").read_bytes()
    vectors, rows = expected(folder)
    puffin = PuffinFile(content)
    places = [(b.offset, b.length, b.properties["referenced-data-file"])
              for b in puffin.footer.blobs]
    check("pyiceberg footer", places == [(o, n, f) for o, n, _, f in vectors])
    read = {name: chunked.to_pylist() for name, chunked in puffin.to_vector().items()}
    for offset, length, cardinality, name in vectors:
        check("cardinality " + name, cardinality == len(rows[name]))
        check("pyiceberg " + name, sorted(read.get(name, [])) == rows[name])
        blob = content[offset:offset + length]
        count, = struct.unpack_from("<q", blob, 8)
        found = list(BitMap.deserialize(blob[20:-4])) if count else []
        check("pyroaring " + name, found == rows[name])
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory() as work:
            source = Path(work, "Dump.java")
            source.write_text(JAVA)
            done = subprocess.run(["java", "-cp", sys.argv[2], source, folder / "vectors.puffin"],
                                  capture_output=True, text=True, check=False)
        check("java footer", done.stdout.splitlines() == [
            f"deletion-vector-v1 {o} {n} {c} [2147483645] -1 -1 null {f}"
            for o, n, c, f in vectors], done.stdout + done.stderr[-400:])
    print("%d failed" % len(FAILED))
    sys.exit(1 if FAILED else 0)


main()
