/* What follows from settings: patterns, rules of tables, names after the database, placeholders;
 * and the documentation made from options.h. */
#include "config_room.h"

#include "base/buf.h"
#include "config/distance.h"
#include "config/pattern.h"
#include "config/setting.h"
#include "config/value.h"

static void
patterns(void **state)
{
    static const struct {
        const char *pattern;
        const char *schema;
        const char *table;
        bool matches;
    } cases[] = {
        {"public.orders", "public", "orders", true},
        {"public.orders", "public", "Orders", false},
        {"public.orders", "public", "orders2", false},
        {"public.order", "public", "orders", false},
        {"*.*", "a", "b.c", true},
        {"public.*_log", "public", "a_log_log", true},
        {"public.*_log", "public", "_logs", false},
        {"*.a*b*c", "x", "aXXbYbZc", true},
        {"*.a*b*c", "x", "aXXbYbZ", false},
        {"p?blic.t?", "public", "t1", true},
        {"public.t?", "public", "t", false},
        {"public.t?", "public", "t\xC3\xA9", true},
        {"public.t??", "public", "t\xC3\xA9", false},
        {"\"odd.schema\".*", "odd.schema", "t", true},
        {"\"a\"\"b\".\"*\"", "a\"b", "*", true},
        {"\"a\"\"b\".\"*\"", "a\"b", "x", false},
    };

    static const char *const bad[] = {
        "orders", "a.b.c", ".b", "a.", "", "\"a.b", "\"a\"b.c", "a\"b.c", "\"\".c", "\"a\"\".c",
    };
    Error err = {0};

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OK(pattern_check(str_of(cases[i].pattern), &err));
        if (pattern_matches(str_of(cases[i].pattern), str_of(cases[i].schema),
                            str_of(cases[i].table)) != cases[i].matches) {
            print_error("%s %s %s\n", cases[i].pattern, cases[i].schema, cases[i].table);
            fail();
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        FAILS(pattern_check(str_of(bad[i]), &err), ERR_INPUT);
        assert_false(pattern_matches(str_of(bad[i]), STR("a"), STR("b")));
    }
}

static void
tables_are_taken_by_the_last_match(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    OK(load(room,
            "source:\n"
            "  tables: [\"*.*\", \"!public.audit_*\", public.audit_kept, '!\"odd.one\".*']\n",
            NULL, &config, &err));
    assert_true(config_takes_table(config, STR("public"), STR("orders")));
    assert_false(config_takes_table(config, STR("public"), STR("audit_x")));
    assert_true(config_takes_table(config, STR("public"), STR("audit_kept")));
    assert_false(config_takes_table(config, STR("odd.one"), STR("t")));
}

static void
rules_of_tables_merge(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};

    OK(load(room,
            "tables:\n"
            "  public.*: {key: [id]}\n"
            "  public.orders: {name: o}\n"
            "  '\"odd.schema\".t': {key: [a, b]}\n",
            "tables.public.orders.key=[x, y]", &config, &err));

    TableRule orders = config_table_rule(config, room->arena, STR("public"), STR("orders"));
    TableRule others = config_table_rule(config, room->arena, STR("public"), STR("lines"));
    TableRule odd = config_table_rule(config, room->arena, STR("odd.schema"), STR("t"));
    TableRule none = config_table_rule(config, room->arena, STR("private"), STR("orders"));

    assert_string_equal(orders.name, "o");
    assert_int_equal(orders.key.count, 2);
    assert_true(str_eqc(orders.key.items[0], "x"));
    assert_null(others.name);
    assert_true(str_eqc(others.key.items[0], "id"));
    assert_int_equal(odd.key.count, 2);
    assert_null(none.name);
    assert_int_equal(none.key.count, 0);

    OK(load(room, NULL, "tables.\"odd.schema\".t.name=z", &config, &err));
    odd = config_table_rule(config, room->arena, STR("odd.schema"), STR("t"));
    assert_string_equal(odd.name, "z");
}

static const char *
slot_for(Room *room, const char *database)
{
    Config *config = NULL;
    Error err = {0};

    OK(load(room, NULL, NULL, &config, &err));
    OK(config_resolve(config, room->arena, database, &err));
    assert_string_equal(config->source_publication, config->source_slot);
    assert_true(strlen(config->source_slot) <= 63);
    assert_int_equal(strspn(config->source_slot, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                     strlen(config->source_slot));
    return config->source_slot;
}

static void
names_follow_from_the_database(void **state)
{
    Room *room = *state;
    Config *config = NULL;
    Error err = {0};
    char longest[101];

    memset(longest, 'x', 100);
    longest[100] = '\0';
    assert_string_equal(slot_for(room, "shop"), "walberg_shop");
    assert_true(strncmp(slot_for(room, "my-app"), "walberg_my_app_", 15) == 0);
    assert_string_not_equal(slot_for(room, "my-app"), slot_for(room, "my.app"));
    assert_string_not_equal(slot_for(room, "Shop"), slot_for(room, "shop"));
    assert_int_equal(strlen(slot_for(room, longest)), 63);
    assert_true(strlen(slot_for(room, "\xE5\xBA\x97")) > 8);

    OK(load(room, "pipeline: Shop-2\nsource: {slot: mine}\n", NULL, &config, &err));
    OK(config_resolve(config, room->arena, "other", &err));
    OK(config_resolve(config, room->arena, "again", &err));
    assert_string_equal(config->pipeline, "Shop-2");
    assert_string_equal(config->source_slot, "mine");
    assert_string_equal(config->state, "/home/somebody/.local/state/walberg/Shop-2");

    setenv("XDG_STATE_HOME", "/var/xdg", 1);
    OK(load(room, NULL, NULL, &config, &err));
    OK(config_resolve(config, room->arena, "shop", &err));
    assert_string_equal(config->state, "/var/xdg/walberg/shop");
    unsetenv("XDG_STATE_HOME");

    OK(load(room, NULL, NULL, &config, &err));
    FAILS(config_resolve(config, room->arena, "a/b", &err), ERR_INPUT);
    FAILS(config_resolve(config, room->arena, NULL, &err), ERR_INPUT);
    assert_null(config->pipeline);

    OK(load(room, NULL, "sink.iceberg.namespace=\"{database}-{schema}.{pipeline}\"", &config,
            &err));
    OK(config_resolve(config, room->arena, "shop", &err));
    assert_true(
        str_eqc(config_namespace(config, room->arena, "shop", STR("sales")), "shop-sales.shop"));
    OK(config_namespace_is_free(STR("walberg"), &err));
    OK(config_namespace_is_free(STR("_walberg2"), &err));
    FAILS(config_namespace_is_free(STR("_walberg"), &err), ERR_INPUT);
    FAILS(config_namespace_is_free(STR("_Walberg"), &err), ERR_INPUT);
}

static void
names_that_are_near(void **state)
{
    (void) state;
    assert_int_equal(distance_between(STR("comit"), STR("commit")), 1);
    assert_int_equal(distance_between(STR("ocmmit"), STR("commit")), 1);
    assert_int_equal(distance_between(STR("Commit"), STR("commit")), 0);
    assert_int_equal(distance_between(STR("on-reject"), STR("on_reject")), 0);
    assert_int_equal(distance_between(STR("kitten"), STR("sitting")), 3);
    assert_int_equal(distance_between(STR(""), STR("abc")), 3);
}

/* --- documentation --------------------------------------------------------------------------- */

/* `walberg init` writes a file that loads, and so it does with every line of settings uncommented:
 * then every value is the built-in one. */
static void
the_written_file_loads(void **state)
{
    Room *room = *state;
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf uncommented = {0};
    Config *config = NULL;
    Config *plain = NULL;
    Error err = {0};

    config_print_yaml(&text);
    OK(load(room, buf_text(&text), NULL, &config, &err));
    assert_string_equal(config->source_postgres, "postgres://localhost/postgres");
    assert_string_equal(config->warehouse, "./lake");

    for (char *line = strtok(buf_text(&text), "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *mark = line + strspn(line, " ");

        if (mark[0] == '#' && mark[1] != ' ')
            memmove(mark, mark + 1, strlen(mark));
        else if (strncmp(line, "#  ", 3) == 0)
            line++;
        buf_printf(&uncommented, "%s\n", line);
    }
    OK(load(room, buf_text(&uncommented), NULL, &config, &err));
    OK(load(room, NULL, NULL, &plain, &err));
    assert_int_equal(config->rule_count, 1);
    config->rule_count = plain->rule_count;
    config->rules = plain->rules;
    config->file = plain->file;
    config->source_postgres = plain->source_postgres;
    config->warehouse = plain->warehouse;
    assert_int_equal(config->source_tables.count, plain->source_tables.count);
    config->source_tables = plain->source_tables;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (settings[i].type != SETTING_STRING && settings[i].type != SETTING_ENUM)
            continue;

        const char **left = setting_string(&settings[i], config);
        const char **right = setting_string(&settings[i], plain);

        if (*left == NULL || *right == NULL)
            assert_ptr_equal(*left, *right);
        else
            assert_string_equal(*left, *right);
        *left = *right;
    }
    assert_memory_equal(config, plain, sizeof *config);
}

static void
every_setting_is_documented(void **state)
{
    AUTO_BUF Buf text = {0};
    AUTO_BUF Buf markdown = {0};
    AUTO_BUF Buf yaml = {0};

    (void) state;
    config_print_settings(&text);
    config_print_markdown(&markdown);
    config_print_yaml(&yaml);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *last = strrchr(settings[i].key, '.');

        assert_non_null(strstr(buf_text(&text), settings[i].key));
        assert_non_null(strstr(buf_text(&markdown), settings[i].key));
        assert_non_null(strstr(buf_text(&yaml), last == NULL ? settings[i].key : last + 1));
        assert_true(strlen(settings[i].doc) > 10);
    }
}

/* docs/settings.md is what tools/gen-docs made of options.h as it is now. */
static void
settings_md_is_up_to_date(void **state)
{
    Room *room = *state;
    AUTO_BUF Buf made = {0};
    Str kept;
    Error err = {0};

    config_print_markdown(&made);
    OK(value_read_file(room->arena, TEST_DIR "/../docs/settings.md", 1 << 20, &kept, NULL, &err));
    assert_string_equal(buf_text(&made), kept.ptr);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test_setup_teardown(tables_are_taken_by_the_last_match, enter, leave),
        cmocka_unit_test_setup_teardown(rules_of_tables_merge, enter, leave),
        cmocka_unit_test_setup_teardown(names_follow_from_the_database, enter, leave),
        cmocka_unit_test(names_that_are_near),
        cmocka_unit_test_setup_teardown(the_written_file_loads, enter, leave),
        cmocka_unit_test(every_setting_is_documented),
        cmocka_unit_test_setup_teardown(settings_md_is_up_to_date, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
