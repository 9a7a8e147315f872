/* Relation messages told apart by attnum, between the shape that was and the one that is. */
#include "shapes.h"
#include "testing.h"

#include "pipeline/relation.h"

/* What the message says, as "id:int4* a:text". */
static Message
message_of(Arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);
    char *rest = NULL;
    Message message = {.kind = 'R'};

    message.relation.identity = 'd';
    message.relation.columns = ARENA_ARRAY(arena, RelationColumn, 20);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        RelationColumn *column = &message.relation.columns[message.relation.column_count++];
        char *type = strchr(word, ':') + 1;
        size_t length = strlen(type);

        column->is_key = type[length - 1] == '*';
        if (column->is_key)
            type[length - 1] = '\0';
        type[-1] = '\0';
        column->name = str_of(word);
        column->type_oid = shape_type(type)->oid;
        column->typmod = column->type_oid == 1700 ? shape_type(type)->type.precision : -1;
    }
    return message;
}

typedef struct Case {
    const char *before;
    const char *now;
    const char *message;
    const char *attnums; /* of the message's columns and, behind a bar, of its key; NULL: a copy */
} Case;

static const Case cases[] = {
    /* nothing happened; the message is as before, as now, or between */
    {"1:id:int4* 2:a:text", "1:id:int4* 2:a:text", "id:int4* a:text", "1 2 | 1"},
    {"1:id:int4* 2:a:text", "1:id:int4* 2:b:text", "id:int4* a:text", "1 2 | 1"},
    {"1:id:int4* 2:a:text", "1:id:int4* 2:b:text", "id:int4* b:text", "1 2 | 1"},
    {"1:id:int4* 2:a:text", "1:id:int4* 2:a:text 3:b:int4", "id:int4* a:text", "1 2 | 1"},
    {"1:id:int4* 2:a:text", "1:id:int4* 2:a:text 3:b:int4 4:c:int4", "id:int4* a:text b:int4",
     "1 2 3 | 1"},
    {"1:id:int4* 2:a:text 3:b:int4", "1:id:int4* 3:b:int4", "id:int4* a:text b:int4", "1 2 3 | 1"},
    {"1:id:int4* 2:a:text 3:b:int4", "1:id:int4* 3:b:int4", "id:int4* b:int4", "1 3 | 1"},
    /* dropped and added: it cannot be told when, whatever names and types say; only by count */
    {"1:id:int4* 2:a:text", "1:id:int4* 3:a:int4", "id:int4* a:int4", NULL},
    {"1:id:int4* 2:a:text 3:b:text", "1:id:int4* 3:b:text 4:a:text", "id:int4* b:text a:text",
     NULL},
    {"1:id:int4* 2:a:text 3:b:text", "1:id:int4* 3:b:text 4:a:text",
     "id:int4* a:text b:text a:text", "1 2 3 4 | 1"},
    {"1:id:int4* 2:a:text 3:b:text", "1:id:int4* 3:b:text 4:a:text", "id:int4* b:text", "1 3 | 1"},
    {"1:id:int4* 2:a:text 3:b:int4", "1:id:int4*", "id:int4* b:int4", NULL},
    {"1:id:int4* 2:a:text 3:b:int4", "1:id:int4*", "id:int4*", "1 | 1"},
    /* added, and its name given to another one */
    {"1:id:int4* 2:b:int4", "1:id:int4* 2:b:int4 3:c:int4 4:a:int4", "id:int4* b:int4 a:int4",
     "1 2 3 | 1"},
    {"1:id:int4* 2:b:int4", "1:id:int4* 2:b:int4 4:a:int4", "id:int4* b:int4 a:int4", NULL},
    /* what was dropped long ago, or after what is asked about */
    {"1:id:int4* 2:b:int4 3", "1:id:int4* 2:b:int4 4:a:int4", "id:int4* b:int4 a:int4",
     "1 2 4 | 1"},
    {"1:id:int4* 2:b:int4", "1:id:int4* 2:b:int4 3:a:int4 4", "id:int4* b:int4 a:int4",
     "1 2 3 | 1"},
    {"1:id:int4* 2:b:int4", "1:id:int4* 2:b:int4 4", "id:int4* b:int4 a:int4", NULL},
    /* generated at first, and no more */
    {"1:id:int4* 3:b:int4 3", "1:id:int4* 2:a:int4 3:b:int4 4:c:int4", "id:int4* b:int4 c:int4",
     NULL},
    /* names that were swapped, or that were neither before nor are now */
    {"1:id:int4* 2:a:text 3:b:text", "1:id:int4* 2:b:text 3:a:text", "id:int4* a:text b:text",
     "1 2 3 | 1"},
    {"1:id:int4* 2:a:text 3:b:text", "1:id:int4* 2:b:text 3:a:text", "id:int4* b:text a:text",
     "1 2 3 | 1"},
    {"1:id:int4* 2:a:text", "1:id:int4* 2:c:text", "id:int4* b:text", "1 2 | 1"},
    /* a column that nobody dropped is missing */
    {"1:id:int4* 2:a:text", "1:id:int4* 2:a:text", "id:int4*", NULL},
    /* types: of either side */
    {"1:id:int4* 2:a:int4", "1:id:int4* 2:a:int8", "id:int4* a:int8", "1 2 | 1"},
    {"1:id:int4* 2:a:dec8", "1:id:int4* 2:a:dec12", "id:int4* a:dec12", "1 2 | 1"},
    /* keys: as flagged; in the order of the side that has this key */
    {"1:id:int4* 2:a:int4", "1:id:int4 2:a:int4*", "id:int4 a:int4*", "1 2 | 2"},
    {"1:id:int4* 2:a:int4", "1:id:int4* 2:a:int4*", "id:int4* a:int4*", "1 2 | 1 2"},
    {"1:id:int4* 2:a:int4", "1:id:int4* 2:a:int4", "id:int4 a:int4", "1 2 |"},
};

static const char *
attnums(Arena *arena, const TableSchema *shape)
{
    AUTO_BUF Buf text = {0};

    for (int i = 0; i < shape->column_count; i++)
        buf_printf(&text, "%d ", shape->columns[i].attnum);
    buf_byte(&text, '|');
    for (int i = 0; i < shape->key_count; i++)
        buf_printf(&text, " %d", shape->columns[shape->key[i]].attnum);
    return arena_strdup(arena, buf_text(&text));
}

static void
check_case(Arena *arena, const Case *c)
{
    TableSchema *before = shape(c->before);
    TableSchema *now = shape(c->now);
    PipeTable *table = pipe_table_new(before);
    Message message = message_of(arena, c->message);
    TableSchema *found = NULL;
    Error err = {0};

    if (c->attnums == NULL) {
        FAILS(relation_shape(NULL, table, now, &message, &found, &err), ERR_COPY);
    } else {
        OK(relation_shape(NULL, table, now, &message, &found, &err));
        assert_string_equal(attnums(arena, found), c->attnums);
        for (int i = 0; i < found->column_count; i++)
            assert_true(str_eq(found->columns[i].field.name, message.relation.columns[i].name) &&
                        found->columns[i].type_oid == message.relation.columns[i].type_oid);
    }
    schema_unref(found);
    pipe_table_free(table);
    schema_unref(before);
    schema_unref(now);
}

static void
columns_are_told_apart(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(arena, &cases[i]);
}

/* --- any history ------------------------------------------------------------------------------ */

enum { HISTORIES = 200000, STEPS = 6, ATTNUMS_MAX = 16 };

/* splitmix64 (Steele, Lea, Flood 2014), written anew. */
static uint64_t
random_next(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* A table as Postgres has it: a letter is the name of a column, '\0' one that was dropped. */
typedef struct Model {
    int made;
    char name[ATTNUMS_MAX + 1]; /* by attnum */
    int computed;               /* the attnum of a column that was generated at first, or 0 */
    bool generated;             /* it still is */
} Model;

static int
find_name(const Model *model, char name)
{
    for (int attnum = 1; attnum <= model->made; attnum++)
        if (model->name[attnum] == name)
            return attnum;
    return 0;
}

/* ADD, DROP, RENAME or DROP EXPRESSION, whichever is possible; few names, so that they meet. A
 * column that was generated stays: see the limits in docs/design.md. */
static void
random_step(Model *model, uint64_t *seed)
{
    int at = 2 + (int) (random_next(seed) % (uint64_t) model->made);
    char name = (char) ('a' + random_next(seed) % 3);
    bool there = at <= model->made && model->name[at] != '\0';

    switch (random_next(seed) % 4) {
    case 0:
        if (there && at != model->computed)
            model->name[at] = '\0';
        break;
    case 1:
        if (there && find_name(model, name) == 0)
            model->name[at] = name;
        break;
    case 2:
        if (at == model->computed)
            model->generated = false;
        break;
    default:
        if (find_name(model, name) == 0 && model->made < ATTNUMS_MAX)
            model->name[++model->made] = name;
    }
}

static TableSchema *
model_shape(const Model *model)
{
    AUTO_BUF Buf text = {0};

    for (int attnum = 1; attnum <= model->made; attnum++)
        if (model->name[attnum] != '\0' && !(model->generated && attnum == model->computed))
            buf_printf(&text, "%d:%c:int4 ", attnum, model->name[attnum]);
    buf_printf(&text, "%d", model->made);
    return shape(buf_text(&text));
}

/* Whether a message between two steps of the history was understood; never wrongly. */
static bool
check_history(uint64_t *seed)
{
    Model model = {.made = 3, .name = {'\0', 'i', 'a', 'b'}};
    TableSchema *shapes[3];
    int found[ATTNUMS_MAX];

    model.computed = random_next(seed) % 4 == 0 ? 2 : 0;
    model.generated = model.computed != 0;
    for (int i = 0; i < 3; i++) {
        for (uint64_t steps = random_next(seed) % STEPS; steps > 0; steps--)
            random_step(&model, seed);
        shapes[i] = model_shape(&model);
    }

    const TableSchema *then = shapes[1];
    bool done = relation_attnums(shapes[0], shapes[2], then->column_count, found);

    for (int i = 0; i < then->column_count && done; i++)
        assert_int_equal(found[i], then->columns[i].attnum);
    for (int i = 0; i < 3; i++)
        schema_unref(shapes[i]);
    return done;
}

static void
no_history_is_taken_for_another(void **state)
{
    uint64_t seed = 7;
    int understood = 0;

    (void) state;
    for (int i = 0; i < HISTORIES; i++)
        understood += check_history(&seed);
    assert_in_range(understood, HISTORIES / 3, HISTORIES * 9 / 10);
}

/* The order of a key is part of what is hashed: it stays as it was. */
static void
a_key_keeps_its_order(void **state)
{
    AUTO_ARENA Arena *arena = arena_new();
    TableSchema *before = shape("1:id:int4* 2:a:int4*");
    TableSchema *now = shape("1:id:int4* 2:a:int4* 3:b:text");
    PipeTable *table;
    Message message = message_of(arena, "id:int4* a:int4* b:text");
    TableSchema *found = NULL;
    Error err = {0};

    (void) state;
    before->key[0] = now->key[0] = 1;
    before->key[1] = now->key[1] = 0;
    table = pipe_table_new(before);
    OK(relation_shape(NULL, table, now, &message, &found, &err));
    assert_string_equal(attnums(arena, found), "1 2 3 | 2 1");
    schema_unref(found);
    pipe_table_free(table);
    schema_unref(before);
    schema_unref(now);
}

/* A kept message outlives the one that was read. */
static void
a_message_is_kept(void **state)
{
    Arena *arena = arena_new();
    TableSchema *before = shape("1:id:int4* 2:a:text");
    PipeTable *table = pipe_table_new(before);
    Message message = message_of(arena, "id:int4* a:text");

    (void) state;
    relation_keep(table, &message);
    arena_free(arena);
    assert_true(relation_map(table, table->relation));
    assert_true(table->mapped && table->column_map_count == 2 && table->column_map[1] == 1);
    pipe_table_free(table);
    schema_unref(before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_told_apart),
        cmocka_unit_test(no_history_is_taken_for_another),
        cmocka_unit_test(a_key_keeps_its_order),
        cmocka_unit_test(a_message_is_kept),
    };

    return cmocka_run_group_tests_name("relation", tests, NULL, NULL);
}
