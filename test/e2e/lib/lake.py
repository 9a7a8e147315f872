"""lake - the tables of a warehouse, found without the program: folders with version-hint.text."""
import gzip
import json
import re


class LakeTable:
    def __init__(self, storage, folder, metadata_path):
        self.storage = storage
        self.folder = folder                  # relative to the warehouse
        self.location = f"{storage.uri.rstrip('/')}/{metadata_path}"
        raw = storage.read(self.location)
        self.metadata = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)

    @property
    def uri(self):
        """Location of the metadata with a scheme, which some readers insist on."""
        return self.location if "://" in self.location else "file://" + self.location

    @property
    def schema(self):
        wanted = self.metadata["current-schema-id"]
        return next(s for s in self.metadata["schemas"] if s["schema-id"] == wanted)

    @property
    def columns(self):
        return [field["name"] for field in self.schema["fields"]]

    def field(self, name):
        return next(field for field in self.schema["fields"] if field["name"] == name)

    @property
    def snapshot(self):
        current = self.metadata.get("current-snapshot-id")
        for snapshot in self.metadata.get("snapshots") or []:
            if snapshot["snapshot-id"] == current:
                return snapshot
        return None

    @property
    def summary(self):
        return self.snapshot["summary"] if self.snapshot else {}

    @property
    def position(self):
        return self.metadata["properties"].get("cdc.position")


def unescaped(folder):
    """(namespace, name) of a table's folder: ~XX stands for a byte that a path cannot hold."""
    def byte(match):
        return bytes.fromhex(match.group(1).decode())
    return tuple(re.sub(rb"~([0-9A-F]{2})", byte, part.encode()).decode()
                 for part in folder.split("/"))


class Lake:
    def __init__(self, storage):
        self.storage = storage

    def table_folders(self):
        found = {}
        for path in self.storage.list():
            match = re.fullmatch(r"(.+)/metadata/(v(\d+)\.(?:gz\.)?metadata\.json)", path)
            if match:
                folder, _, version = match.groups()
                found[folder] = max(found.get(folder, (0, "")), (int(version), path))
        return found

    def tables(self):
        """{(namespace, name): LakeTable}; the newest version of each, whatever the hint says: the
        hint may lag behind after a crash."""
        result = {}
        for folder, (_, path) in self.table_folders().items():
            result[unescaped(folder)] = LakeTable(self.storage, folder, path)
        return result

    def table(self, name, schema="public"):
        tables = self.tables()
        assert (schema, name) in tables, f"no {schema}.{name} in the lake, only {list(tables)}"
        return tables[schema, name]

    def has(self, name, schema="public"):
        return (schema, name) in map(unescaped, self.table_folders())

    def hint(self, table):
        """The number in version-hint.text."""
        path = f"{self.storage.uri.rstrip('/')}/{table.folder}/metadata/version-hint.text"
        return int(self.storage.read(path))
