"""storage - where a lake lies: a folder, or a bucket of a real S3 server started here.

SeaweedFS (PyPI) is the everyday server; versitygw (test/setup versitygw) is the strict one: it
refuses a wrong signature, region, body hash or checksum.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pyarrow.fs

from lib.env import CACHE, ROOT, free_port, kill, listening, wait_for

KEY = "walberg"
SECRET = "walberg-secret/+x"
REGION = "us-east-1"


class S3Server:
    """Base of the two servers: self.command(port) starts it, in self.folder."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="walberg-s3-"))
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        # a bucket is a collection, which SeaweedFS begins with seven of all volumes that may be
        environment = {**os.environ, "AWS_EC2_METADATA_DISABLED": "true",
                       "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=environment, cwd=self.folder)
        wait_for("S3 server", self.ready, 60)

    def ready(self):
        log = (self.folder / "log").read_text(errors="replace")
        assert self.process.poll() is None, log[-3000:]
        if not listening(self.port):
            return False
        try:
            self.filesystem().create_dir("probe")
            return True
        except OSError:
            return False

    def stop(self):
        kill(self.process)  # SIGTERM takes SeaweedFS up to half a minute

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def filesystem(self):
        return pyarrow.fs.S3FileSystem(access_key=KEY, secret_key=SECRET, region=REGION,
                                       endpoint_override=f"127.0.0.1:{self.port}", scheme="http",
                                       allow_bucket_creation=True, connect_timeout=2,
                                       request_timeout=20)

    def environment(self):
        """What an S3 client finds the server with. The endpoint is always given: without it and
        the last line some clients hang on AWS' own hosts."""
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ENDPOINT_URL_S3": self.endpoint,
                "S3_ENDPOINT": self.endpoint, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}


class SeaweedFS(S3Server):
    def command(self):
        identity = {"name": "admin", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                    "actions": ["Admin", "Read", "List", "Tagging", "Write"]}
        config = self.folder / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        (self.folder / "data").mkdir(exist_ok=True)
        master, volume, filer = free_port(), free_port(), free_port()
        return [CACHE / "venv" / "bin" / "weed", "-logtostderr=true", "server",
                f"-dir={self.folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                "-master.telemetry=false", f"-master.port={master}",
                f"-master.port.grpc={free_port()}", f"-volume.port={volume}",
                f"-volume.port.grpc={free_port()}", "-filer", f"-filer.port={filer}",
                f"-filer.port.grpc={free_port()}", "-master.volumeSizeLimitMB=256",
                "-volume.max=0", "-volume.minFreeSpace=1", "-s3", f"-s3.port={self.port}",
                f"-s3.port.grpc={free_port()}", "-s3.port.iceberg=0", "-s3.port.lance=0",
                f"-s3.config={config}", "-s3.autoCreateBucket=false"]


class VersityGW(S3Server):
    def command(self):
        subprocess.run([ROOT / "test" / "setup", "versitygw"], check=True)
        for part in ("data", "iam", "sidecar"):
            (self.folder / part).mkdir(exist_ok=True)
        return [CACHE / "bin" / "versitygw", "-a", KEY, "-s", SECRET, "-p",
                f"127.0.0.1:{self.port}", "--iam-dir", self.folder / "iam", "-q", "posix",
                "--sidecar", self.folder / "sidecar", self.folder / "data"]


class Storage:
    """One warehouse: a URI for the program and for readers, and its objects for the checks."""

    def __init__(self, uri, server=None):
        self.uri = str(uri)
        self.server = server
        if server:
            self.filesystem = server.filesystem()
            self.filesystem.create_dir(self.key(self.uri).split("/")[0])
        else:
            self.filesystem = pyarrow.fs.LocalFileSystem()

    @staticmethod
    def key(location):
        """Location as pyarrow's file system spells it: no scheme."""
        for scheme in ("s3://", "s3a://", "file://", "file:"):
            if location.startswith(scheme):
                return location[len(scheme):]
        return location

    def read(self, location):
        with self.filesystem.open_input_file(self.key(location)) as file:
            return file.read()

    def write(self, location, content):
        with self.filesystem.open_output_stream(self.key(location)) as file:
            file.write(content)

    def size(self, location):
        return self.filesystem.get_file_info(self.key(location)).size

    def exists(self, location):
        found = self.filesystem.get_file_info(self.key(location))
        return found.type != pyarrow.fs.FileType.NotFound

    def list(self, location=None):
        """Every file below, as paths relative to the location."""
        base = self.key(location or self.uri).rstrip("/")
        chosen = pyarrow.fs.FileSelector(base, recursive=True, allow_not_found=True)
        return {info.path[len(base) + 1:]: info.size
                for info in self.filesystem.get_file_info(chosen)
                if info.type == pyarrow.fs.FileType.File}

    def environment(self):
        return self.server.environment() if self.server else {}
