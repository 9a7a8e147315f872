/* options.h - every setting, once. Included with OPTION() defined by the struct (config.h), the
 * parser, `help settings`, `init`, the documentation and the tests that compare them.
 *
 *   OPTION(key, field, type, default, min, max, secret, doc)
 *
 * key      as in walberg.yaml, dots for nesting; WALBERG_COMMIT_INTERVAL in the environment
 * type     STRING   const char *, NULL when unset        LIST  StrList of strings
 *          INT      int64_t                              BOOL  bool
 *          DURATION int64_t milliseconds ("500ms 10s 5m 1h")
 *          SIZE     int64_t bytes ("64kB 128MB 1GB", Postgres' units: 1024)
 *          ENUM     const char *, one of the words in min ("a|b|c")
 * default  text as in the file; NULL = unset
 * min, max text in the same units, NULL = unbounded (ENUM: min lists the words)
 * secret   1: never printed; the value may be env:NAME or file:PATH (any STRING may) */
OPTION("pipeline", pipeline, STRING, NULL, NULL, NULL, 0,
       "name of the pipeline; default: the database's name. Names slot and publication when they "
       "are not set")
OPTION("source.postgres", source_postgres, STRING, NULL, NULL, NULL, 1,
       "libpq connection string or URI; PG* variables and ~/.pgpass work")
OPTION("source.slot", source_slot, STRING, NULL, NULL, NULL, 0,
       "replication slot; default: walberg_<pipeline>")
OPTION("source.failover", source_failover, BOOL, "false", NULL, NULL, 0,
       "standbys keep the slot in sync (sync_replication_slots), and walberg goes on from one that "
       "is promoted; Postgres 17 and newer")
OPTION("source.publication", source_publication, STRING, NULL, NULL, NULL, 0,
       "publication; default: walberg_<pipeline>. Made when missing and allowed; an existing one "
       "is used as it is")
OPTION("source.tables", source_tables, LIST, "*.*", NULL, NULL, 0,
       "patterns schema.table; '!' excludes: [\"public.*\", \"!public.audit_*\"]")
OPTION("sink.iceberg.warehouse", warehouse, STRING, NULL, NULL, NULL, 0,
       "where the lake is: a path or s3://bucket/prefix")
OPTION("sink.iceberg.namespace", iceberg_namespace, STRING, "{schema}", NULL, NULL, 0,
       "Iceberg namespace of a table; {schema}, {database} and {pipeline} are replaced")
OPTION("sink.iceberg.format_version", iceberg_format_version, INT, "2", "2", "3", 0,
       "Iceberg format version. 3: deletion vectors, column defaults, row lineage; a table of "
       "version 2 is raised with its next commit, and never goes back")
OPTION("sink.iceberg.catalog.type", catalog_type, ENUM, "file", "file", NULL, 0,
       "where a table's current metadata is found")
OPTION(
    "sink.iceberg.s3.endpoint", s3_endpoint, STRING, NULL, NULL, NULL, 0,
    "URL of the S3 service; default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS in the region")
OPTION("sink.iceberg.s3.region", s3_region, STRING, NULL, NULL, NULL, 0,
       "region; default: AWS_REGION, AWS_DEFAULT_REGION, us-east-1")
OPTION("sink.iceberg.s3.path_style", s3_path_style, BOOL, "true", NULL, NULL, 0,
       "endpoint/bucket/key instead of bucket.endpoint/key")
OPTION("sink.iceberg.s3.access_key_id", s3_access_key_id, STRING, NULL, NULL, NULL, 0,
       "default: AWS_ACCESS_KEY_ID")
OPTION("sink.iceberg.s3.secret_access_key", s3_secret_access_key, STRING, NULL, NULL, NULL, 1,
       "default: AWS_SECRET_ACCESS_KEY")
OPTION("sink.iceberg.s3.session_token", s3_session_token, STRING, NULL, NULL, NULL, 1,
       "default: AWS_SESSION_TOKEN")
OPTION("sink.iceberg.s3.ca_file", s3_ca_file, STRING, NULL, NULL, NULL, 0,
       "certificates to trust for the endpoint; default: the system's")
OPTION(
    "history.all", history_all_ms, DURATION, "1h", "0s", NULL, 0,
    "snapshots of a lake table younger than this are kept, of them the last 500. The last 10 stay "
    "whatever their age, and so does what a tag or a branch holds")
OPTION("history.hourly", history_hourly_ms, DURATION, "120h", "0s", NULL, 0,
       "of those that are older, the last one of each hour is kept up to this age")
OPTION("commit.interval", commit_interval_ms, DURATION, "10s", "100ms", "1h", 0,
       "an epoch is committed this long after its first change")
OPTION("commit.rows", commit_rows, INT, "1000000", "1", NULL, 0,
       "an epoch is committed when it has this many changes")
OPTION("commit.bytes", commit_bytes, SIZE, "128MB", "1MB", NULL, 0,
       "an epoch is committed when it has this many bytes")
OPTION("copy.workers", copy_workers, INT, "4", "1", "64", 0, "connections of the initial copy")
OPTION("on_reject", on_reject, ENUM, "record", "record|park", NULL, 0,
       "a value that its column cannot hold: record it in _walberg.rejects, or park the table; in "
       "a key column it always parks the table")
OPTION(
    "value_limit", value_limit, SIZE, "1GB", "1MB", NULL, 0,
    "a value that is longer as text (bytea: two digits a byte) does not arrive: as on_reject says "
    "it is recorded by its first 1000 bytes. Postgres has none beyond 1GB")
OPTION("on_add_default", on_add_default, ENUM, "rewrite", "rewrite|ignore", NULL, 0,
       "a column added with a default: rewrite the table in the lake, so that old rows have it, or "
       "let them read NULL (not when rows are found by it: in the key, or REPLICA IDENTITY FULL)")
OPTION(
    "on_partition_change", on_partition_change, ENUM, "rewrite", "rewrite|ignore", NULL, 0,
    "a partition dropped, detached, attached with rows or truncated alone, of which Postgres sends "
    "nothing: rewrite the table in the lake, or let its rows be as they were")
OPTION(
    "memory", memory, SIZE, "256MB", "64MB", NULL, 0,
    "memory of the stream; larger transactions go to data files that become visible at their end")
OPTION("state", state, STRING, NULL, NULL, NULL, 0,
       "local folder for what can be rebuilt (key index, cached files); default: "
       "~/.local/state/walberg/<pipeline>")
OPTION("cache", cache, SIZE, "10GB", "0kB", NULL, 0,
       "data files of a lake on S3 that are kept below state, together: beyond it those used the "
       "longest ago go. What the SQL server shows stays all the same")
OPTION("query.listen", query_listen, STRING, NULL, NULL, NULL, 0,
       "address:port of the SQL server (Postgres protocol); loopback only. Unset: off, except for "
       "the positional form of run (127.0.0.1:5433)")
OPTION("query.memory", query_memory, SIZE, "1GB", "64MB", NULL, 0,
       "memory of the SQL server's statements together; it is a process of its own")
OPTION("query.spill", query_spill, SIZE, "10GB", "0kB", NULL, 0,
       "what statements that need more may write below state, together")
OPTION("log.level", log_level, ENUM, "info", "error|warn|info|debug", NULL, 0,
       "least important events shown")
OPTION("log.format", log_format, ENUM, "text", "text|json", NULL, 0,
       "logfmt or JSON lines on stderr")
