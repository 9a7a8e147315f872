/* Loading settings: every kind of mistake with its place and hint, and which layer wins. */
#include "config_room.h"

typedef struct Mistake {
    const char *yaml;
    const char *set;
    const char *message;
} Mistake;

static void
refuses(Room *room, const Mistake *mistake)
{
    Config *config = NULL;
    Error err = {0};

    if (load(room, mistake->yaml, mistake->set, &config, &err)) {
        print_error("accepted: %s %s\n", mistake->yaml, mistake->set);
        fail();
    }
    assert_int_equal(err.kind, ERR_INPUT);
    assert_string_equal(err.msg, mistake->message);
    assert_null(config);
}

static void
built_in_values(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    OK(load(room, NULL, NULL, &config, &err));
    assert_null(config->file);
    assert_null(config->pipeline);
    assert_null(config->query_listen);
    assert_int_equal(config->commit_interval_ms, 10000);
    assert_int_equal(config->commit_rows, 1000000);
    assert_int_equal(config->commit_bytes, 128 * 1024 * 1024);
    assert_true(config->s3_path_style);
    assert_string_equal(config->catalog_type, "file");
    assert_int_equal(config->source_tables.count, 1);
    assert_true(str_eqc(config->source_tables.items[0], "*.*"));
}

static void
the_file_of_the_manual(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    OK(load(room,
            "pipeline: shop                      # name\n"
            "source:\n"
            "  postgres: postgres://walberg@db.example/shop\n"
            "  slot: walberg_shop\n"
            "  publication: walberg_shop\n"
            "  tables: [\"public.*\", \"!public.audit_*\"]\n"
            "sink:\n"
            "  iceberg:\n"
            "    warehouse: s3://bucket/lake\n"
            "    namespace: \"{database}_{schema}\"\n"
            "    format_version: 2\n"
            "    catalog: {type: file}\n"
            "    s3: {endpoint: \"http://127.0.0.1:9000\", region: eu-west-1, path_style: false,\n"
            "         access_key_id: key, secret_access_key: secret, session_token: token}\n"
            "commit: {interval: 500ms, rows: 7, bytes: 1GB}\n"
            "copy: {workers: 64}\n"
            "on_reject: park\n"
            "memory: 65536kB\n"
            "state: ~/state\n"
            "query: {listen: \"127.0.0.1:5433\"}\n"
            "log: {level: debug, format: json}\n"
            "tables:\n"
            "  public.orders: {key: [id, at], name: all_orders}\n",
            NULL, &config, &err));
    assert_string_equal(config->file, "walberg.yaml");
    assert_string_equal(config->pipeline, "shop");
    assert_string_equal(config->source_postgres, "postgres://walberg@db.example/shop");
    assert_int_equal(config->source_tables.count, 2);
    assert_string_equal(config->warehouse, "s3://bucket/lake");
    assert_false(config->s3_path_style);
    assert_string_equal(config->s3_session_token, "token");
    assert_int_equal(config->commit_interval_ms, 500);
    assert_int_equal(config->commit_rows, 7);
    assert_int_equal(config->commit_bytes, 1 << 30);
    assert_int_equal(config->memory, 64 << 20);
    assert_string_equal(config->on_reject, "park");
    assert_string_equal(config->state, "/home/somebody/state");
    assert_string_equal(config->log_format, "json");

    TableRule rule = config_table_rule(config, room->arena, STR("public"), STR("orders"));

    assert_string_equal(rule.name, "all_orders");
    assert_int_equal(rule.key.count, 2);
    assert_true(str_eqc(rule.key.items[1], "at"));
}

static void
mistakes_in_the_file_have_line_and_column(void **state) /* NOLINT(readability-function-size) */
{
    static const Mistake mistakes[] = {
        {"a: &x 1\n", NULL,
         "walberg.yaml:1:4: YAML anchors (&name) are not understood\n"
         "hint: quote a text that begins with *, ! or &: \"*.*\""},
        {"pipeline: a\n\nsource:\n  slot: b\n\ncomit:\n  interval: 1s\n", NULL,
         "walberg.yaml:7:3: unknown setting \"comit.interval\"\n"
         "hint: did you mean \"commit.interval\"?"},
        {"sinc:\n  iceberg: {}\n", NULL,
         "walberg.yaml:1:1: unknown setting \"sinc\"\nhint: did you mean \"sink\"?"},
        {"sink:\n  icberg:\n    warehouse: a\n", NULL,
         "walberg.yaml:3:5: unknown setting \"sink.icberg.warehouse\"\n"
         "hint: did you mean \"sink.iceberg.warehouse\"?"},
        {"warehouse: ./lake\n", NULL,
         "walberg.yaml:1:1: unknown setting \"warehouse\"\n"
         "hint: did you mean \"sink.iceberg.warehouse\"?"},
        {"http: {listen: \"127.0.0.1:1\"}\n", NULL,
         "walberg.yaml:1:8: unknown setting \"http.listen\""},
        {"on-reject: park\n", NULL,
         "walberg.yaml:1:1: unknown setting \"on-reject\"\nhint: did you mean \"on_reject\"?"},
        {"commit:\n  interval: 5ms\n", NULL,
         "walberg.yaml:2:13: commit.interval: 5ms is less than the minimum 100ms"},
        {"commit.interval: 2h\n", NULL,
         "walberg.yaml:1:18: commit.interval: 2h is more than the maximum 1h"},
        {"commit: {interval: 5}\n", NULL,
         "walberg.yaml:1:20: commit.interval: 5 has no unit\n"
         "hint: durations are written 500ms, 10s, 5m or 1h"},
        {"commit: {interval: 5 days}\n", NULL,
         "walberg.yaml:1:20: commit.interval: 5 days has the unknown unit \"days\"\n"
         "hint: durations are written 500ms, 10s, 5m or 1h"},
        {"memory: 128mb\n", NULL,
         "walberg.yaml:1:9: memory: 128mb has the unknown unit \"mb\"\n"
         "hint: sizes are written 64kB, 128MB or 1GB"},
        {"memory: much\n", NULL,
         "walberg.yaml:1:9: memory: \"much\" is not understood\n"
         "hint: sizes are written 64kB, 128MB or 1GB"},
        {"memory: 9999999999TB\n", NULL, "walberg.yaml:1:9: memory: 9999999999TB is too large"},
        {"commit: {rows: many}\n", NULL,
         "walberg.yaml:1:16: commit.rows: \"many\" is not a whole number"},
        {"commit: {rows: -1}\n", NULL,
         "walberg.yaml:1:16: commit.rows: -1 is less than the minimum 1"},
        {"commit: {rows: 99999999999999999999}\n", NULL,
         "walberg.yaml:1:16: commit.rows: \"99999999999999999999\" is not a whole number"},
        {"commit: {rows: [1]}\n", NULL,
         "walberg.yaml:1:16: commit.rows: wants a single value, not a list"},
        {"commit: 10s\n", NULL, "walberg.yaml:1:9: commit: is a group of settings, not a setting"},
        {"pipeline: {a: b}\n", NULL, "walberg.yaml:1:11: pipeline: wants text, not a mapping"},
        {"pipeline:\n", NULL,
         "walberg.yaml:1:1: pipeline: has no value\nhint: null stands for the built-in value"},
        {"source: {tables: {a: b}}\n", NULL,
         "walberg.yaml:1:18: source.tables: wants a list, not a mapping"},
        {"sink: {iceberg: {s3: {path_style: maybe}}}\n", NULL,
         "walberg.yaml:1:35: sink.iceberg.s3.path_style: \"maybe\" is neither true nor false"},
        {"on_reject: drop\n", NULL,
         "walberg.yaml:1:12: on_reject: \"drop\" is not one of record, park"},
        {"sink: {iceberg: {catalog: {type: rest}}}\n", NULL,
         "walberg.yaml:1:34: sink.iceberg.catalog.type: \"rest\" is not the only choice, file"},
        {"memory: 64MB\ncommit: {rows: 1}\nmemory: 65MB\n", NULL,
         "walberg.yaml:3:1: \"memory\" is set twice, first on line 1"},
        {"commit: {rows: 1}\ncommit.rows: 2\n", NULL,
         "walberg.yaml:2:1: commit.rows: is set twice, first on line 1"},
        {"- a\n", NULL, "walberg.yaml:1:1: settings are a mapping of names to values"},
        {"a: b\n---\nc: d\n", NULL, "walberg.yaml:2:1: a second YAML document"},
        {"source: {tables: [*.*]}\n", NULL,
         "walberg.yaml:1:19: YAML aliases (*name) are not understood\n"
         "hint: quote a text that begins with *, ! or &: \"*.*\""},
        {"source:\n  tables:\n  - \"*.*\"\n  - !public.audit_*\n", NULL,
         "walberg.yaml:4:5: YAML tags (!name) are not understood\n"
         "hint: quote a text that begins with *, ! or &: \"*.*\""},
        {"? [a, b]\n: c\n", NULL, "walberg.yaml:1:3: a key must be plain text"},
        {"\xFF\n", NULL, "walberg.yaml:1:1: not UTF-8"},
    };

    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        refuses(*state, &mistakes[i]);
}

static void
broken_yaml_has_line_and_column(void **state)
{
    Config *config = NULL;
    Error err = {0};

    FAILS(load(*state, "commit:\n  interval: \"10s\n", NULL, &config, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "walberg.yaml:2:14: invalid YAML: "));
    FAILS(load(*state, "commit: [1, 2\nmemory: 1GB\n", NULL, &config, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "walberg.yaml:"));
    FAILS(load(*state, NULL, "commit.rows=[1", &config, &err), ERR_INPUT);
    assert_non_null(strstr(err.msg, "--set commit.rows: invalid YAML: "));

    AUTO_BUF Buf deep = {0};

    for (int i = 0; i < 5000; i++)
        buf_byte(&deep, '[');
    FAILS(load(*state, buf_text(&deep), NULL, &config, &err), ERR_INPUT);
}

static void
values_are_checked_beyond_their_type(void **state)
{
    static const Mistake mistakes[] = {
        {NULL, "pipeline=a/b",
         "--set pipeline: a pipeline's name holds no slashes and no control characters"},
        {NULL, "pipeline=..", "--set pipeline: a pipeline's name does not begin with \".\""},
        {NULL, "pipeline=\"\"", "--set pipeline: a pipeline's name has 1 to 128 bytes"},
        {NULL, "source.slot=Shop",
         "--set source.slot: \"Shop\" cannot name a replication slot\n"
         "hint: 1 to 63 lower-case letters, digits and underscores"},
        {NULL, "source.publication=\"\"",
         "--set source.publication: a publication's name has 1 to 63 bytes"},
        {NULL, "source.tables=[\"!a.b\"]",
         "--set source.tables: takes no table\n"
         "hint: patterns only with '!' exclude: begin with \"*.*\""},
        {NULL, "source.tables=[]",
         "--set source.tables: takes no table\n"
         "hint: patterns only with '!' exclude: begin with \"*.*\""},
        {NULL, "source.tables=orders",
         "--set source.tables: \"orders\" is not a pattern of the form schema.table\n"
         "hint: write \"public.orders\" or \"public.*\"; a part with a dot in it is quoted: "
         "'\"odd.schema\".orders'"},
        {NULL, "source.tables=[a.b, [c.d]]", "--set source.tables: item 2 of the list is not text"},
        {NULL, "sink.iceberg.namespace=\"{shema}\"",
         "--set sink.iceberg.namespace: \"{shema}\" has an unknown placeholder\n"
         "hint: there are {schema}, {database} and {pipeline}"},
        {NULL, "sink.iceberg.namespace=\"a{schema\"",
         "--set sink.iceberg.namespace: \"a{schema\" has a { without its }"},
        {NULL, "sink.iceberg.namespace=a}",
         "--set sink.iceberg.namespace: \"a}\" has a } without its {"},
        {NULL, "sink.iceberg.format_version=4",
         "--set sink.iceberg.format_version: 4 is more than the maximum 3"},
        {NULL, "sink.iceberg.s3.endpoint=host:9000",
         "--set sink.iceberg.s3.endpoint: \"host:9000\" is not a URL\n"
         "hint: begin with https:// or http://"},
        {NULL, "query.listen=0.0.0.0:5433",
         "--set query.listen: 0.0.0.0:5433 is not a loopback address\n"
         "hint: the SQL server asks for no password: listen on 127.0.0.1:5433 and reach it "
         "through ssh -L"},
        {NULL, "query.listen=5433",
         "--set query.listen: \"5433\" is not address:port\n"
         "hint: write 127.0.0.1:5433 or [::1]:5433"},
        {NULL, "query.listen=127.0.0.1:65536",
         "--set query.listen: \"127.0.0.1:65536\" is not address:port\n"
         "hint: write 127.0.0.1:5433 or [::1]:5433"},
        {NULL, "query.listen=::1:5433",
         "--set query.listen: \"::1:5433\" is not address:port\n"
         "hint: write 127.0.0.1:5433 or [::1]:5433"},
    };
    static const char *const good[] = {
        "query.listen=127.0.0.1:5433",
        "query.listen=localhost:0",
        "query.listen=\"[::1]:5433\"",
        "query.listen=127.1.2.3:1",
        "pipeline=Größe",
        "sink.iceberg.namespace=x_{schema}_{pipeline}",
        "sink.iceberg.namespace={pipeline}_{schema}",
        "sink.iceberg.namespace={schema}",
        "sink.iceberg.namespace=\"{schema}\"",
        "sink.iceberg.s3.secret_access_key=\"a: b",
    };
    Config *config = NULL;
    Error err = {0};

    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        refuses(*state, &mistakes[i]);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        OK(load(*state, NULL, good[i], &config, &err));
}

static void
a_sort_order_is_spelled_right(void **state)
{
    static const Mistake mistakes[] = {
        {"tables:\n  public.orders:\n    sort:\n      - region\n      - at downwards\n", NULL,
         "walberg.yaml:5:9: tables.public.orders.sort: \"at downwards\": \"downwards\" is no "
         "direction\n"
         "hint: a column or transform, then asc or desc, then nulls first or nulls last: "
         "\"created_at desc nulls last\"; an odd column stands in double quotes"},
        {NULL, "tables.public.orders.sort=['void(id)']",
         "--set tables.public.orders.sort: \"void(id)\": void is NULL for every row, so it orders "
         "nothing"},
        {"tables:\n  public.orders: {sort: {at: desc}}\n", NULL,
         "walberg.yaml:2:25: tables.public.orders.sort: wants a list, not a mapping"},
    };
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        refuses(room, &mistakes[i]);
    OK(load(room, "tables: {\"*.*\": {sort: [at, id]}}\n",
            "tables.public.orders.sort=['day(at) desc', \"id\"]", &config, &err));

    TableRule rule = config_table_rule(config, room->arena, STR("public"), STR("orders"));

    assert_int_equal(rule.sort.count, 2);
    assert_true(rule.sort.terms[0].descending);
    assert_true(str_eqc(rule.sort.terms[1].by.column, "id"));
    assert_string_equal(rule.sort.place, "--set tables.public.orders.sort");
    rule = config_table_rule(config, room->arena, STR("public"), STR("items"));
    assert_int_equal(rule.sort.count, 2);
    assert_false(rule.sort.terms[0].descending);
    OK(load(room, "tables: {\"*.*\": {sort: id}}\n", "tables.public.orders.sort=[]", &config,
            &err));
    rule = config_table_rule(config, room->arena, STR("public"), STR("orders"));
    assert_int_equal(rule.sort.count, 0);
    assert_non_null(rule.sort.place);
}

static void
set_options(void **state)
{
    static const Mistake mistakes[] = {
        {NULL, "comit.interval=1s",
         "--set comit.interval: unknown setting\nhint: did you mean \"commit.interval\"?"},
        {NULL, "commit.interval=5ms", "--set commit.interval: 5ms is less than the minimum 100ms"},
        {NULL, "commit={interval: 5ms}",
         "--set commit.interval: 5ms is less than the minimum 100ms"},
        {NULL, "memory", "--set memory: wants KEY=VALUE\nhint: -s commit.interval=2s"},
        {NULL, "memory=", "--set memory: has no value\nhint: null stands for the built-in value"},
        {NULL, "tables.orders=1",
         "--set tables.orders: names no option of a table\n"
         "hint: write tables.PATTERN.OPTION: tables.public.orders.key"},
        {NULL, "tables.public.orders.kye=id",
         "--set tables.public.orders.kye: unknown setting\nhint: did you mean \"key\"?"},
        {NULL, "tables.public.orders.sorting=[at]",
         "--set tables.public.orders.sorting: unknown setting\n"
         "hint: the settings of a table are name, key, partition, sort and columns"},
        {NULL, "tables.public.orders.partition=[week(at)]",
         "--set tables.public.orders.partition: \"week(at)\": \"week\" is no partition transform\n"
         "hint: transforms are identity, bucket[N], truncate[N], year, month, day, hour and void: "
         "\"day(created_at)\", \"bucket[16](id)\", or a column alone"},
        {NULL, "tables.public.orders.partition=['bucket[0](id)']",
         "--set tables.public.orders.partition: \"bucket[0](id)\": bucket[0]: the number is from 1 "
         "to 2147483647"},
        {NULL, "tables.public.orders.partition=['bucket[2147483648](id)']",
         "--set tables.public.orders.partition: \"bucket[2147483648](id)\": bucket[2147483648]: "
         "the "
         "number is from 1 to 2147483647"},
        {NULL, "tables.public.orders.partition=[bucket(id)]",
         "--set tables.public.orders.partition: \"bucket(id)\": bucket wants a number\n"
         "hint: bucket[16](id)"},
        {NULL, "tables.public.orders.partition=['day[3](at)']",
         "--set tables.public.orders.partition: \"day[3](at)\": day takes no number"},
        {NULL, "tables.public.orders.partition=['day(at']",
         "--set tables.public.orders.partition: \"day(at\": has no closing parenthesis"},
        {NULL, "tables.public.orders.partition=['day()']",
         "--set tables.public.orders.partition: \"day()\": names no column"},
        {NULL, "tables.public.orders.partition=['\"at']",
         "--set tables.public.orders.partition: \"\"at\": a quoted column has no end"},
        {"tables:\n  public.orders:\n    partition:\n      - region\n      - weekly(at)\n", NULL,
         "walberg.yaml:5:9: tables.public.orders.partition: \"weekly(at)\": \"weekly\" is no "
         "partition "
         "transform\n"
         "hint: transforms are identity, bucket[N], truncate[N], year, month, day, hour and void: "
         "\"day(created_at)\", \"bucket[16](id)\", or a column alone"},
        {NULL, "tables.orders.key=id",
         "--set tables.orders: \"orders\" is not a pattern of the form schema.table\n"
         "hint: write \"public.orders\" or \"public.*\"; a part with a dot in it is quoted: "
         "'\"odd.schema\".orders'"},
    };
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        refuses(room, &mistakes[i]);
    OK(load(room, "memory: 99MB\n", "memory=null", &config, &err));
    assert_int_equal(config->memory, 256 << 20);
    OK(load(room, NULL, "commit={interval: 2s, rows: 3}", &config, &err));
    assert_int_equal(config->commit_interval_ms, 2000);
    assert_int_equal(config->commit_rows, 3);
}

static void
casts_that_are_none(void **state)
{
    static const Mistake mistakes[] = {
        {NULL, "tables.public.orders.columns=price",
         "--set tables.public.orders.columns: wants a mapping of columns: {price: {cast: "
         "\"decimal(18,4)\"}}"},
        {NULL, "tables.public.orders.columns={price: {type: text}}",
         "--set tables.public.orders.columns.price: wants {cast: TYPE}"},
        {NULL, "tables.public.orders.columns={price: {cast: \"decimal(39,2)\"}}",
         "--set tables.public.orders.columns.price.cast: wants decimal(p,s) with 1 <= p <= 38 and "
         "0 <= s <= p\nhint: decimal(18,4)"},
        {NULL, "tables.public.orders.columns={price: {cast: money}}",
         "--set tables.public.orders.columns.price.cast: \"money\" is no type to cast to\n"
         "hint: string, long, double, decimal(p,s), time or json"},
    };

    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        refuses(*state, &mistakes[i]);
}

static void
later_layers_win(void **state)
{
    Room *room = *state;
    const char *sets[] = {"source.slot=from_set", "sink.iceberg.warehouse=set"};
    Config *config = NULL;
    Error err = {0};

    write_file("walberg.yaml", "pipeline: file\nsource: {slot: file, publication: file}\n"
                               "sink: {iceberg: {warehouse: file}}\nmemory: 64MB\n");
    setenv("WALBERG_SOURCE_PUBLICATION", "variable", 1);
    setenv("WALBERG_SOURCE_SLOT", "variable", 1);
    setenv("WALBERG_SINK_ICEBERG_WAREHOUSE", "variable", 1);
    setenv("WALBERG_SINK_ICEBERG_S3_SECRET_ACCESS_KEY", "needs: no 'quotes' #", 1);
    setenv("WALBERG_SOURCE_TABLES", "[\"a.*\", \"!a.b\"]", 1);
    setenv("WALBERG_MEMORY", "", 1);
    OK(config_load(
        room->arena,
        &(ConfigLoad){
            .sets = sets, .set_count = 2, .source = "dbname=argument", .warehouse = "argument"},
        &config, &err));
    assert_string_equal(config->pipeline, "file");
    assert_string_equal(config->source_publication, "variable");
    assert_string_equal(config->source_slot, "from_set");
    assert_string_equal(config->warehouse, "argument");
    assert_string_equal(config->source_postgres, "dbname=argument");
    assert_string_equal(config->s3_secret_access_key, "needs: no 'quotes' #");
    assert_int_equal(config->source_tables.count, 2);
    assert_int_equal(config->memory, 64 << 20);
    unsetenv("WALBERG_SOURCE_PUBLICATION");
    unsetenv("WALBERG_SOURCE_SLOT");
    unsetenv("WALBERG_SINK_ICEBERG_WAREHOUSE");
    unsetenv("WALBERG_SINK_ICEBERG_S3_SECRET_ACCESS_KEY");
    unsetenv("WALBERG_SOURCE_TABLES");
    unsetenv("WALBERG_MEMORY");
}

static void
refuses_variable(Room *room, const char *name, const char *value, const char *message)
{
    Config *config = NULL;
    Error err = {0};

    setenv(name, value, 1);
    FAILS(load(room, NULL, NULL, &config, &err), ERR_INPUT);
    assert_string_equal(err.msg, message);
    unsetenv(name);
}

static void
mistakes_in_variables(void **state)
{
    Config *config = NULL;
    Error err = {0};

    refuses_variable(*state, "WALBERG_COMMIT_INTERVAL", "5ms",
                     "WALBERG_COMMIT_INTERVAL: 5ms is less than the minimum 100ms");
    refuses_variable(*state, "WALBERG_COMIT_INTERVAL", "5s",
                     "WALBERG_COMIT_INTERVAL: unknown setting\n"
                     "hint: did you mean WALBERG_COMMIT_INTERVAL?");
    refuses_variable(*state, "WALBERG_SOURCE_MYSQL", "x", "WALBERG_SOURCE_MYSQL: unknown setting");
    refuses_variable(*state, "WALBERG_QUERY_LISTEN", "*:1",
                     "WALBERG_QUERY_LISTEN: *:1 is not a loopback address\n"
                     "hint: the SQL server asks for no password: listen on 127.0.0.1:1 and reach "
                     "it through ssh -L");

    /* what Kubernetes sets for a service called walberg */
    setenv("WALBERG_SERVICE_HOST", "10.0.0.1", 1);
    setenv("WALBERG_PORT", "tcp://10.0.0.1:5433", 1);
    OK(load(*state, NULL, NULL, &config, &err));
    unsetenv("WALBERG_SERVICE_HOST");
    unsetenv("WALBERG_PORT");
}

static void
secrets_come_from_variables_and_files(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    setenv("DB_URL", "postgres://u:hunter2@h/db", 1);
    write_file("secret", "s3cr3t\n");
    OK(load(room,
            "source: {postgres: \"env:DB_URL\"}\n"
            "sink: {iceberg: {warehouse: \"file:///data/lake\", s3: {secret_access_key: "
            "file:secret}}}\n",
            NULL, &config, &err));
    assert_string_equal(config->source_postgres, "postgres://u:hunter2@h/db");
    assert_string_equal(config->s3_secret_access_key, "s3cr3t");
    assert_string_equal(config->warehouse, "file:///data/lake");

    refuses(room, &(Mistake){"source: {postgres: \"env:NO_SUCH\"}\n", NULL,
                             "walberg.yaml:1:20: source.postgres: the environment variable NO_SUCH "
                             "is not set"});
    refuses(room, &(Mistake){NULL, "source.postgres=file:/no/such",
                             "--set source.postgres: cannot read /no/such: No such file or "
                             "directory"});
    refuses(room, &(Mistake){NULL, "source.postgres=file:/tmp",
                             "--set source.postgres: cannot read /tmp: Is a directory"});
    /* a message about a secret does not show it */
    refuses(room, &(Mistake){"source: {postgres: {hunter2: hunter3}}\n", NULL,
                             "walberg.yaml:1:20: source.postgres: wants text, not a mapping"});
    unsetenv("DB_URL");
}

static void
aws_variables_fill_the_gaps(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    setenv("AWS_ACCESS_KEY_ID", "aws-key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "aws-secret", 1);
    setenv("AWS_SESSION_TOKEN", "aws-token", 1);
    setenv("AWS_DEFAULT_REGION", "eu-north-1", 1);
    setenv("AWS_ENDPOINT_URL", "http://general", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://special", 1);
    OK(load(room, NULL, NULL, &config, &err));
    assert_string_equal(config->s3_access_key_id, "aws-key");
    assert_string_equal(config->s3_secret_access_key, "aws-secret");
    assert_string_equal(config->s3_session_token, "aws-token");
    assert_string_equal(config->s3_region, "eu-north-1");
    assert_string_equal(config->s3_endpoint, "http://special");

    setenv("AWS_REGION", "us-west-2", 1);
    unsetenv("AWS_ENDPOINT_URL_S3");
    OK(load(room, NULL, "sink.iceberg.s3.access_key_id=ours", &config, &err));
    assert_string_equal(config->s3_access_key_id, "ours");
    assert_null(config->s3_session_token); /* it belongs to the other key */
    assert_string_equal(config->s3_region, "us-west-2");
    assert_string_equal(config->s3_endpoint, "http://general");
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_DEFAULT_REGION");
    unsetenv("AWS_REGION");
    unsetenv("AWS_ENDPOINT_URL");
}

static void
files_that_cannot_be_read(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    FAILS(config_load(room->arena, &(ConfigLoad){.file = "none.yaml"}, &config, &err), ERR_INPUT);
    assert_string_equal(err.msg, "cannot read none.yaml: No such file or directory");
    OK(load(room, "", NULL, &config, &err));
    OK(load(room, "# nothing\n", NULL, &config, &err));
    OK(load(room, "commit:\n  # rows: 1\nsource:\ntables:\n", NULL, &config, &err));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(built_in_values, enter, leave),
        cmocka_unit_test_setup_teardown(the_file_of_the_manual, enter, leave),
        cmocka_unit_test_setup_teardown(mistakes_in_the_file_have_line_and_column, enter, leave),
        cmocka_unit_test_setup_teardown(broken_yaml_has_line_and_column, enter, leave),
        cmocka_unit_test_setup_teardown(values_are_checked_beyond_their_type, enter, leave),
        cmocka_unit_test_setup_teardown(set_options, enter, leave),
        cmocka_unit_test_setup_teardown(a_sort_order_is_spelled_right, enter, leave),
        cmocka_unit_test_setup_teardown(casts_that_are_none, enter, leave),
        cmocka_unit_test_setup_teardown(later_layers_win, enter, leave),
        cmocka_unit_test_setup_teardown(mistakes_in_variables, enter, leave),
        cmocka_unit_test_setup_teardown(secrets_come_from_variables_and_files, enter, leave),
        cmocka_unit_test_setup_teardown(aws_variables_fill_the_gaps, enter, leave),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_read, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
