/* Names of tables as names of folders. */
#include "testing.h"

#include "base/arena.h"
#include "catalog/folder_name.h"

static void
plain_names_stay_and_others_are_escaped(void **state)
{
    (void) state;

    static const struct {
        const char *name;
        const char *folder;
    } cases[] = {
        {"orders", "orders"},
        {"Orders_2026-x.y", "Orders_2026-x.y"},
        {"_walberg", "_walberg"},
        {".hidden", "~2Ehidden"},
        {"..", "~2E."},
        {"a b/c", "a~20b~2Fc"},
        {"50%", "50~25"},
        {"~", "~7E"},
        {"~20", "~7E20"},
        {"day=1", "day~3D1"},
        {"caf\xC3\xA9", "caf~C3~A9"},
        {"a\\b\"c'd", "a~5Cb~22c~27d"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO_BUF Buf out = {0};

        folder_name_write(&out, str_of(cases[i].name));
        assert_string_equal(buf_text(&out), cases[i].folder);
        assert_true(folder_name_read(str_of(cases[i].folder), &out));
        assert_string_equal(buf_text(&out), cases[i].name);
    }
}

static void
every_byte_comes_back(void **state)
{
    (void) state;

    AUTO_BUF Buf folder = {0};
    AUTO_BUF Buf back = {0};

    for (int c = 1; c < 256; c++) {
        char name[] = {'a', (char) c, 'b', '\0'};

        buf_reset(&folder);
        folder_name_write(&folder, str_of(name));
        /* RFC 3986: unreserved characters only, so no reader needs to escape or unescape */
        assert_int_equal(
            strspn(buf_text(&folder),
                   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"),
            folder.len);
        assert_true(folder_name_read(buf_view(&folder), &back));
        assert_string_equal(buf_text(&back), name);
    }
}

static void
what_we_never_write_is_not_read(void **state)
{
    (void) state;

    static const char *const folders[] = {"",     "a b",  "~",  "a~2",  "a~2g",
                                          "a~2f", "a~61", ".x", "a~5F", "a\xC3\xA9"};
    AUTO_BUF Buf out = {0};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        assert_false(folder_name_read(str_of(folders[i]), &out));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_stay_and_others_are_escaped),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(what_we_never_write_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
