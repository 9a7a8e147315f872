/* check_money.c - whether all who write amounts of money mean the same.
 *
 * Postgres stores money as a number of the smallest unit, and which one that is it asks lc_monetary
 * of whoever writes or reads: 1234 are 12.34 dollars to one session and 1234 yen to another. The
 * lake has what a session of our role would read. */
#include "cli/check.h"

/* Settings of other roles, and of the database, which other roles have. */
static const char settings_sql[] =
    "SELECT r.rolname, s.setdatabase <> 0, substr(c, length('lc_monetary=') + 1)"
    " FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole"
    " CROSS JOIN unnest(s.setconfig) c"
    " WHERE starts_with(c, 'lc_monetary=') AND r.rolname IS DISTINCT FROM current_user"
    " AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))"
    " ORDER BY 1 NULLS FIRST, 2";

/* -1: there is none in it. Recursion follows a type: at most TYPE_DEPTH_MAX levels. */
static int
money_digits(const Type *type)
{
    int digits = type->form == FORM_MONEY ? type->scale : -1;

    for (int i = 0; i < type->field_count && digits < 0; i++)
        digits = money_digits(type->fields[i].type);
    return digits;
}

static int
first_money_digits(const SourceTables *tables)
{
    for (int i = 0; i < tables->count; i++) {
        const TableSchema *schema = tables->items[i].schema;

        for (int c = 0; schema != NULL && c < schema->column_count; c++) {
            int digits = money_digits(schema->columns[c].field.type);

            if (digits >= 0)
                return digits;
        }
    }
    return -1;
}

static void
judge_setting(Report *report, PgConn *conn, const PgResult *settings, int row, int ours)
{
    Str role = pg_value(settings, row, 0);
    const char *locale = pg_value(settings, row, 2).ptr;
    int digits;
    Error err = {0};

    /* a locale that is not there is ignored when a session begins */
    if (!pg_money_digits(conn, locale, &digits, &err) || digits == ours)
        return;
    report_add(report, "money", VERDICT_WARN,
               "lc_monetary is %s for %s%.*s%s: amounts have %d digits after the point there, and "
               "%d in the lake",
               locale, role.ptr == NULL ? "sessions" : "role ", STR_ARG(role),
               pg_value_bool(settings, row, 1) ? " in this database" : "", digits, ours);
    report_hint(report, "the same number is another amount to them: let all that write money, and "
                        "walberg's role, have one lc_monetary");
}

void
check_money(Report *report, PgConn *conn, const SourceTables *tables)
{
    int digits = first_money_digits(tables);
    PgResult settings;
    Error err = {0};

    if (digits < 0)
        return;
    report_add(report, "money", VERDICT_OK,
               "amounts have %d digits after the point, by lc_monetary of walberg's role", digits);
    if (!pg_exec(conn, report->arena, settings_sql, &settings, &err)) {
        report_message(report, "money", VERDICT_WARN, err.msg);
        return;
    }
    for (int row = 0; row < settings.rows; row++)
        judge_setting(report, conn, &settings, row, digits);
}
