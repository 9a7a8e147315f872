/* The command table and its documentation. What the program does with its arguments is tested on
 * the program itself: test/e2e/test_cli.py. */
#include "testing.h"

#include "cli/cli.h"
#include "config/value.h"

static void
commands_are_found_by_name(void **state)
{
    (void) state;
    for (size_t i = 0; i < cli_command_count; i++)
        assert_ptr_equal(cli_find_command(cli_commands[i].name), &cli_commands[i]);
    assert_null(cli_find_command("hlep"));
    assert_string_equal(cli_nearest_command("hlep"), "help");
    assert_string_equal(cli_nearest_command("Init"), "init");
    assert_null(cli_nearest_command("frobnicate"));
}

static void
options_are_told_apart(void **state)
{
    (void) state;
    for (int i = 0; i < CLI_OPTION_COUNT; i++)
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(cli_options[i].name, cli_options[k].name);
            assert_true(cli_options[i].letter == 0 ||
                        cli_options[i].letter != cli_options[k].letter);
        }
}

static void
help_names_every_command(void **state)
{
    AUTO_BUF Buf all = {0};

    (void) state;
    cli_print_help(&all);
    for (size_t i = 0; i < cli_command_count; i++) {
        AUTO_BUF Buf one = {0};

        cli_print_command_help(&one, &cli_commands[i]);
        assert_non_null(strstr(buf_text(&all), cli_commands[i].name));
        assert_non_null(strstr(buf_text(&all), cli_commands[i].summary));
        assert_non_null(strstr(buf_text(&one), cli_commands[i].name));
    }
}

/* docs/commands.md is what tools/gen-docs made of commands.h as it is now. */
static void
commands_md_is_up_to_date(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    AUTO_BUF Buf made = {0};
    Str kept;
    Error err = {0};

    (void) state;
    cli_print_markdown(&made);
    OK(value_read_file(arena, TEST_DIR "/../docs/commands.md", 1 << 20, &kept, NULL, &err));
    assert_string_equal(buf_text(&made), kept.ptr);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_found_by_name),
        cmocka_unit_test(options_are_told_apart),
        cmocka_unit_test(help_names_every_command),
        cmocka_unit_test(commands_md_is_up_to_date),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
