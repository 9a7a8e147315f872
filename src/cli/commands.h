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
        "commits and acknowledges everything, and exits.")
COMMAND(init, "[FILE]", CLI_FORM_OPTIONAL, 0, false, "write a commented walberg.yaml",
        "Writes FILE (default walberg.yaml) with every setting, its built-in value and what it "
        "means. A file that is there is never overwritten. \"-\" writes to standard output.")
COMMAND(version, "", CLI_FORM_NONE, 0, false, "print versions",
        "Prints the versions of walberg and of the libraries that matter when something is "
        "reported.")
COMMAND(help, "[COMMAND | commands | settings]", CLI_FORM_OPTIONAL, 1u << CLI_FORMAT, false,
        "explain a command, or all settings",
        "Without an argument lists the commands; with the name of one explains it; \"settings\" "
        "lists every setting with type, range and built-in value. With --format markdown "
        "\"commands\" and \"settings\" print what is in docs/.")
