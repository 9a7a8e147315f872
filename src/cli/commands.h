/* commands.h - every command, once. Included with COMMAND() defined by commands.c; help and
 * docs/commands.md walk the rows.
 *
 *   COMMAND(name, arguments, form, options, wants settings, summary, doc) */
COMMAND(run, "[SOURCE WAREHOUSE]", CLI_FORM_SOURCE_WAREHOUSE, 1u << CLI_ONCE, true,
        "copy what is missing, then stream, until SIGTERM",
        "Copies every table that the lake does not have yet, then streams changes into it and "
        "serves queries (query.listen; 127.0.0.1:5433 when SOURCE and WAREHOUSE are given). On "
        "SIGTERM or SIGINT it commits what is whole, acknowledges it and exits with 0; a second "
        "signal makes it leave at once. With --once it goes up to the server's present position, "
        "commits and acknowledges everything, and exits: with 1 when a table is parked, though the "
        "others have everything; with 3 when source or lake were away for too long.")
COMMAND(check, "[SOURCE WAREHOUSE]", CLI_FORM_SOURCE_WAREHOUSE, 0, true,
        "say what will and will not arrive, and what is missing",
        "Looks at the server's version and settings, the role's rights, slots, the publication, "
        "every table (key, replica identity, types that arrive as text, columns that will not "
        "arrive), and whether the warehouse can be written and its compare-and-swap is real. One "
        "line each: ok, warn or FAIL, with a hint. Changes nothing; one probe object is written to "
        "the warehouse and removed. Exit code 1 if anything is FAIL.")
COMMAND(status, "[SOURCE WAREHOUSE]", CLI_FORM_SOURCE_WAREHOUSE, 0, true,
        "show where the pipeline and its tables stand",
        "State of the pipeline and of each table, lag in bytes and seconds, WAL held by the slot, "
        "rejects, last error. Live while walberg run is up, otherwise from the state folder and "
        "the source. Exit code 1 if a table is parked.")
COMMAND(
    verify, "[SOURCE WAREHOUSE] [TABLE...]", CLI_FORM_SOURCE_WAREHOUSE_TABLES,
    1u << CLI_LIMIT | 1u << CLI_TIMEOUT, true, "compare source and lake, row by row",
    "Compares the tables (all of the pipeline, or those named) by value: as of a snapshot of "
    "the source, taken now, and the lake once it has all that the snapshot sees. The source's "
    "text goes through the parser that the copy and the stream use, the lake's files through "
    "DuckDB; what is compared are the values of the lake's types. Works while "
    "walberg run streams, and while it is stopped. Needs SELECT on the tables, changes "
    "nothing, and holds a snapshot open as pg_dump does. Rows that change meanwhile are "
    "compared again, with later snapshots; a row is called different only when it stood still "
    "on one side while the other was looked at. A row that keeps changing is not decided, and "
    "counted as such. Each look reads the whole table. Rows of tables without a key are "
    "counted, twins together. Values that the lake cannot hold (_walberg.rejects) are NULL "
    "there and are counted, not called different unless fewer of a value are recorded than rows "
    "have it. While walberg is stopped and changes wait "
    "for it the two can only be compared after it went on; to see whether there are any, the "
    "role needs REPLICATION. Exit code 0: equal; 1: different (a record of a rejected value "
    "is missing, too), or a table could not be compared (parked, missing); 3: some rows are not "
    "decided, or the lake did not get there "
    "in time.")
COMMAND(
    resync, "[SOURCE WAREHOUSE] TABLE...", CLI_FORM_SOURCE_WAREHOUSE_TABLES, 0, true,
    "copy tables again while the others stream",
    "For tables that are parked, or that verify found to differ. The rows that the lake has stay "
    "readable until one commit replaces all of them; the table then streams from the snapshot "
    "that it was copied under. With walberg run up on this machine it waits for the end of the "
    "copy (leaving early does not stop it); otherwise the next walberg run does it. Exit code "
    "0: done, or noted; 1: there is no such table, or its copy was refused; 3: walberg run ended "
    "meanwhile.")
COMMAND(
    cleanup, "[SOURCE WAREHOUSE] [TABLE...]", CLI_FORM_SOURCE_WAREHOUSE_TABLES,
    1u << CLI_ALL | 1u << CLI_DRY_RUN | 1u << CLI_YES, true,
    "remove tables of the pipeline from the lake",
    "Removes the tables that are named, or all of the pipeline, with their files; the next "
    "walberg run copies afresh those that the source still has. A name means the table that has it "
    "in the source now, or else in the lake; lake:NAME is always the lake's. Wildcards are matched "
    "with names in the lake. Tables that others made are refused. "
    "With --all everything of the pipeline goes: its tables, the slot, the publication (only one "
    "of the default name that our role owns), the state in the lake and "
    "the local state folder; _walberg.rejects too, unless other pipelines use it. Refused while "
    "walberg run is up. On a terminal it asks; elsewhere it wants --yes. When it is interrupted "
    "it can be called again.")
COMMAND(query, "[WAREHOUSE]", CLI_FORM_WAREHOUSE, 1u << CLI_NOTIFY_FD, true,
        "serve queries on a warehouse, without a source",
        "Speaks the Postgres protocol on query.listen (127.0.0.1:5433 when it is not set): psql, "
        "psycopg, JDBC. All tables are shown as of one commit, and followed. Read only. Until "
        "SIGTERM or SIGINT.")
COMMAND(sql, "[WAREHOUSE] SQL", CLI_FORM_WAREHOUSE_SQL, 1u << CLI_FORMAT, true,
        "run one query on a warehouse and print its result",
        "The query is one that the query server would accept. --format table (as psql draws it), "
        "csv (with a header; NULL is empty, an empty text is \"\") or json (an array of objects).")
COMMAND(init, "[FILE]", CLI_FORM_OPTIONAL, 0, false, "write a commented walberg.yaml",
        "Writes FILE (default walberg.yaml) with every setting, its built-in value and what it "
        "means. A file that is there is never overwritten. \"-\" writes to standard output.")
COMMAND(version, "", CLI_FORM_NONE, 0, false, "print versions",
        "Prints the versions of walberg and of the libraries that matter when something is "
        "reported.")
COMMAND(help, "[COMMAND | settings | types]", CLI_FORM_OPTIONAL, 1u << CLI_FORMAT, false,
        "explain a command, all settings, or the types",
        "Without an argument lists the commands; with the name of one explains it; \"settings\" "
        "lists every setting with type, range and built-in value, \"types\" what each type of "
        "Postgres becomes. With --format markdown \"commands\", \"settings\" and \"types\" "
        "print what is in docs/.")
