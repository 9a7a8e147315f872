"""iceberg_check_v3 - what format version 3 adds: row lineage and deletion vectors, by the letter of
the Iceberg and Puffin specs. Vectors are read with pyroaring. Part of iceberg_check.

* every snapshot of version 3 takes its row ids behind those before, and next-row-id is above all,
* data manifests have a first_row_id, delete manifests none; resolved row ids never overlap,
* a data file has at most one deletion vector; blob, footer and manifest entry say the same; its
  rows exist; its spec and partition are the data file's,
* all vectors that a commit adds are in one Puffin file, and it adds no position delete files,
* the summary counts what the commit added and removed.
"""
import json
import struct
import zlib

import pyroaring

ADDED, DELETED = 1, 2
DATA = 0
MAGIC = b"PFA1"
VECTOR_MAGIC = bytes.fromhex("d1d33964")
ROW_POSITION = 2147483645                        # reserved id of _pos


def check_row_lineage(check, metadata):
    """Spec, "Row Lineage": of the table and its snapshots."""
    next_row_id = metadata.get("next-row-id")
    if not check.expect(isinstance(next_row_id, int), "no next-row-id"):
        return
    end = 0
    for snapshot in metadata.get("snapshots") or []:
        if "first-row-id" not in snapshot:       # from the time as version 2
            check.equal("row ids begin with version 3", end, 0)
            continue
        check.expect(snapshot["first-row-id"] >= end,
                     f"snapshot {snapshot['snapshot-id']}: first-row-id is in the one before")
        check.expect(snapshot["added-rows"] >= 0, "added-rows is negative")
        end = snapshot["first-row-id"] + snapshot["added-rows"]
    check.expect(end <= next_row_id, "next-row-id is behind a snapshot")


def check_row_ids(check, snapshot, manifests, entries):
    """Row ids of live files: first_row_id, inherited where it is null, and no two the same."""
    if "first-row-id" not in snapshot:
        return
    for manifest in manifests:
        where = "manifest " + manifest["manifest_path"].rsplit("/", 1)[-1]
        check.equal(f"{where}: has row ids", manifest["first_row_id"] is not None,
                    manifest["content"] == DATA)
        running = manifest["first_row_id"]
        for entry in entries[manifest["manifest_path"]]:
            file = entry["data_file"]
            if file["content"] != DATA:
                check.equal(f"{where}: first_row_id of a delete file",
                            file.get("first_row_id"), None)
            elif entry["status"] != DELETED and file.get("first_row_id") is None:
                file["first_row_id"] = running
                running += file["record_count"]
    files = sorted((e["data_file"]["first_row_id"], e["data_file"]["record_count"])
                   for manifest in entries.values() for e in manifest
                   if e["status"] != DELETED and e["data_file"]["content"] == DATA)
    end = 0
    for first, count in files:
        check.expect(first >= end, f"row ids overlap at {first}")
        end = first + count
    check.expect(end <= check.metadata["next-row-id"], "a row id is not below next-row-id")


def check_vectors(check, deletes, data):
    """{data file: its deleted rows} of all deletion vectors, each looked into."""
    deleted = {}
    puffins = {}
    for entry in deletes:
        file = entry["data_file"]
        if file["file_format"].lower() != "puffin":
            continue
        target = file["referenced_data_file"]
        check.expect(target not in deleted, f"{target} has two deletion vectors")
        puffins.setdefault(entry["snapshot_id"], set()).add(file["file_path"])
        deleted[target] = read_vector(check, entry)
        check_target(check, entry, data.get(target), deleted[target])
    for number, paths in puffins.items():
        check.equal(f"Puffin files of snapshot {number}", len(paths), 1)
    return deleted


def check_target(check, entry, target, rows):
    where = f"vector of {entry['data_file']['referenced_data_file'].rsplit('/', 1)[-1]}"
    if not check.expect(target is not None, f"{where}: no live data file"):
        return
    check.expect(not rows or max(rows) < target["data_file"]["record_count"],
                 f"{where}: a row beyond the file's end")
    check.expect(target["sequence_number"] <= entry["sequence_number"],
                 f"{where}: older than the data file")
    check.equal(f"{where}: spec and partition",
                (entry["spec_id"], repr(list(entry["data_file"]["partition"].values()))),
                (target["spec_id"], repr(list(target["data_file"]["partition"].values()))))


def read_vector(check, entry):
    """Spec, "Deletion Vectors"; Puffin spec, "File structure" and "deletion-vector-v1"."""
    file = entry["data_file"]
    where = f"{file['file_path'].rsplit('/', 1)[-1]} at {file['content_offset']}"
    puffin = check.storage.read(file["file_path"])
    check.equal(f"{where}: size of the file", len(puffin), file["file_size_in_bytes"])
    for key in ("sort_order_id", "equality_ids", "lower_bounds", "upper_bounds", "value_counts"):
        check.expect(file.get(key) is None, f"{where}: has {key}")
    for blob in footer(check, where, puffin):
        if blob["offset"] == file["content_offset"]:
            check_blob(check, where, blob, file)
            break
    else:
        check.expect(False, f"{where}: no such blob in the footer")
    raw = puffin[file["content_offset"]:][:file["content_size_in_bytes"]]
    (length,) = struct.unpack(">i", raw[:4])
    check.equal(f"{where}: length of the vector", length, len(raw) - 8)
    check.equal(f"{where}: magic of the vector", raw[4:8], VECTOR_MAGIC)
    check.equal(f"{where}: checksum", struct.unpack(">I", raw[-4:])[0], zlib.crc32(raw[4:-4]))
    rows = decode_bitmaps(raw[8:-4])
    check.equal(f"{where}: cardinality", len(rows), file["record_count"])
    return rows


def footer(check, where, puffin):
    check.equal(f"{where}: begin and end", (puffin[:4], puffin[-4:]), (MAGIC, MAGIC))
    size, flags = struct.unpack("<i4s", puffin[-12:-4])
    check.equal(f"{where}: flags", flags, b"\x00" * 4)
    check.equal(f"{where}: begin of the footer", puffin[-16 - size:-12 - size], MAGIC)
    return json.loads(puffin[-12 - size:-12])["blobs"]


def check_blob(check, where, blob, file):
    wanted = {"type": "deletion-vector-v1", "fields": [ROW_POSITION], "snapshot-id": -1,
              "sequence-number": -1, "offset": file["content_offset"],
              "length": file["content_size_in_bytes"],
              "properties": {"referenced-data-file": file["referenced_data_file"],
                             "cardinality": str(file["record_count"])}}
    check.equal(f"{where}: footer", blob, wanted)


def decode_bitmaps(raw):
    (count,) = struct.unpack("<Q", raw[:8])
    rows = set()
    raw = raw[8:]
    for _ in range(count):
        (high,) = struct.unpack("<I", raw[:4])
        bitmap = pyroaring.BitMap.deserialize(raw[4:])
        rows |= {(high << 32) + low for low in bitmap}
        raw = raw[4 + len(bitmap.serialize()):]
    return rows


def check_changes(check, snapshot, entries):
    """What this commit did: no position delete files, and a summary that counts it."""
    if "first-row-id" not in snapshot:
        return
    mine = [e for e in entries if e["snapshot_id"] == snapshot["snapshot-id"]]
    added = [e["data_file"] for e in mine if e["status"] == ADDED]
    removed = [e["data_file"] for e in mine if e["status"] == DELETED]
    check.expect(not [f for f in added if f["content"] != DATA and not is_vector(f)],
                 "a commit under version 3 added position delete files")
    for word, verb, files in (("added", "added", added), ("deleted", "removed", removed)):
        deletes = [f for f in files if f["content"] != DATA]
        vectors = [f for f in deletes if is_vector(f)]
        wanted = {
            f"{word}-data-files": len(files) - len(deletes),
            f"{word}-records": sum(f["record_count"] for f in files if f["content"] == DATA),
            f"{verb}-delete-files": len(deletes),
            f"{verb}-dvs": len(vectors),
            f"{verb}-position-delete-files": len(deletes) - len(vectors),
            f"{verb}-position-deletes": sum(f["record_count"] for f in deletes),
            f"{verb}-files-size": sum(
                f["content_size_in_bytes"] if is_vector(f) else f["file_size_in_bytes"]
                for f in files),
        }
        for key, value in wanted.items():
            check.equal(f"summary {key}", int(snapshot["summary"].get(key, 0)), value)


def is_vector(file):
    return file["file_format"].lower() == "puffin"
