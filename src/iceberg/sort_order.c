#include "iceberg/sort_order.h"

/* --- From settings --------------------------------------------------------------------------- */

static bool
unknown_column(const SortTerm *term, const TableSchema *schema, Error *err)
{
    AUTO_BUF Buf names = {0};

    for (int i = 0; i < schema->column_count && names.len < 200; i++)
        buf_printf(&names, "%s%.*s", i > 0 ? ", " : "", STR_ARG(schema->columns[i].field.name));
    return FAIL(err, ERR_INPUT, "\"%.*s\": %s has no column %.*s\nhint: its columns are %s",
                STR_ARG(term->text), schema->qualified, STR_ARG(term->by.column), buf_text(&names));
}

static bool
check_type(const SortTerm *term, const SchemaColumn *column, Error *err)
{
    AUTO_BUF Buf type = {0};

    if (transform_takes(term->by.transform, column->field.type))
        return true;
    if (type_is_nested(column->field.type))
        return FAIL(err, ERR_INPUT, "\"%.*s\": column %.*s (%s) is nested, and has no order",
                    STR_ARG(term->text), STR_ARG(column->field.name), column->pg_type);
    type_iceberg_name(column->field.type, &type);
    return FAIL(err, ERR_INPUT,
                "\"%.*s\": column %.*s (%s) is of type %s in the lake\n"
                "hint: this transform takes %s",
                STR_ARG(term->text), STR_ARG(column->field.name), column->pg_type, buf_text(&type),
                transform_takes_text(term->by.transform));
}

/* Rows that are equal in a column are equal in everything that is made of it. */
static bool
check_twice(const SortOrder *order, const SortField *field, const SortTerm *term, Error *err)
{
    for (int i = 0; i < order->field_count; i++) {
        if (order->fields[i].source_id != field->source_id)
            continue;
        if (str_eq(order->fields[i].transform, field->transform))
            return FAIL(err, ERR_INPUT, "\"%.*s\": %.*s is there twice", STR_ARG(term->text),
                        STR_ARG(term->by.text));
        if (str_eqc(order->fields[i].transform, "identity"))
            return FAIL(err, ERR_INPUT,
                        "\"%.*s\": column %.*s is sorted by already, so this adds nothing",
                        STR_ARG(term->text), STR_ARG(term->by.column));
    }
    return true;
}

static bool
resolve_term(Arena *arena, const SortTerm *term, const TableSchema *schema, const SortOrder *order,
             SortField *out_field, Error *err)
{
    int at = schema_find_column(schema, term->by.column);
    AUTO_BUF Buf transform = {0};
    SortField field = {.descending = term->descending, .nulls_first = term->nulls_first};

    if (at < 0)
        return unknown_column(term, schema, err);
    TRY(check_type(term, &schema->columns[at], err));
    transform_text(term->by.transform, &transform);
    field.source_id = schema->columns[at].field.id;
    field.transform = arena_str(arena, buf_view(&transform));
    TRY(check_twice(order, &field, term, err));
    *out_field = field;
    return true;
}

bool
sort_order_resolve(Arena *arena, const SortRule *rule, const TableSchema *schema,
                   SortOrder *out_order, Error *err)
{
    SortOrder order = {.fields = ARENA_ARRAY(arena, SortField, rule->count + 1)};

    for (size_t i = 0; i < rule->count; i++, order.field_count++)
        if (!resolve_term(arena, &rule->terms[i], schema, &order, &order.fields[i], err))
            return WRAP(err, "%s", rule->place);
    *out_order = order;
    return true;
}

Str
sort_rule_text(Arena *arena, const SortRule *rule)
{
    AUTO_BUF Buf text = {0};

    for (size_t i = 0; i < rule->count; i++) {
        const SortTerm *term = &rule->terms[i];

        if (i > 0)
            buf_cstr(&text, ", ");
        transform_text(term->by.transform, &text);
        buf_printf(&text, "(%.*s) %s nulls %s", STR_ARG(term->by.column),
                   term->descending ? "desc" : "asc", term->nulls_first ? "first" : "last");
    }
    return arena_str(arena, buf_view(&text));
}

/* --- From one to the next -------------------------------------------------------------------- */

/* Members of structs may be sorted by, too, in an order that somebody else made. Recursion follows
 * a type: at most TYPE_DEPTH_MAX levels. */
static const Field *
find_field(const Field *field, int id)
{
    const Field *found = field->id == id ? field : NULL;

    for (int i = 0; found == NULL && i < field->type->field_count; i++)
        found = find_field(&field->type->fields[i], id);
    return found;
}

/* Whether the field's column is there, of a type that its transform takes; of a transform that we
 * do not know, only the former can be said. */
static bool
lives(const SortField *field, const TableSchema *schema)
{
    Transform transform = {0};
    const Field *source = NULL;

    for (int i = 0; source == NULL && i < schema->column_count; i++)
        source = find_field(&schema->columns[i].field, field->source_id);
    return source != NULL && (!transform_parse(field->transform, &transform) ||
                              transform_takes(transform, source->type));
}

static int
find_same(const SortOrder *order, const SortField *field)
{
    for (int i = 0; i < order->field_count; i++)
        if (order->fields[i].source_id == field->source_id &&
            str_eq(order->fields[i].transform, field->transform))
            return i;
    return -1;
}

/* Where a term that has come back belongs: before the first of those after it that is there. */
static int
place_of_term(Arena *arena, const SortRule *rule, size_t term, const TableSchema *schema,
              const SortOrder *order)
{
    SortOrder none = {0};
    Error ignored;

    for (size_t i = term + 1; i < rule->count; i++) {
        SortField field;

        if (!resolve_term(arena, &rule->terms[i], schema, &none, &field, &ignored))
            continue;
        if (find_same(order, &field) >= 0)
            return find_same(order, &field);
    }
    return order->field_count;
}

void
sort_order_follow(Arena *arena, const SortOrder *order, const SortRule *rule,
                  const TableSchema *schema, SortOrder *out_order, int *out_lost)
{
    SortOrder next = {
        .fields = ARENA_ARRAY(arena, SortField, (size_t) order->field_count + rule->count + 1)};
    Error ignored;

    *out_lost = 0;
    for (int i = 0; i < order->field_count; i++) {
        if (lives(&order->fields[i], schema))
            next.fields[next.field_count++] = order->fields[i];
        else
            ++*out_lost;
    }
    for (size_t i = 0; i < rule->count && next.field_count < (int) rule->count; i++) {
        SortField field;
        int at;

        if (!resolve_term(arena, &rule->terms[i], schema, &next, &field, &ignored))
            continue;
        at = place_of_term(arena, rule, i, schema, &next);
        for (int k = next.field_count++; k > at; k--)
            next.fields[k] = next.fields[k - 1];
        next.fields[at] = field;
    }
    *out_order = next;
}

bool
sort_order_same(const SortOrder *a, const SortOrder *b)
{
    bool same = a->field_count == b->field_count;

    for (int i = 0; same && i < a->field_count; i++)
        same = a->fields[i].source_id == b->fields[i].source_id &&
               str_eq(a->fields[i].transform, b->fields[i].transform) &&
               a->fields[i].descending == b->fields[i].descending &&
               a->fields[i].nulls_first == b->fields[i].nulls_first;
    return same;
}

SortOrder
sort_order_copy(Arena *arena, const SortOrder *order)
{
    SortOrder copy = {.order_id = order->order_id,
                      .field_count = order->field_count,
                      .fields = ARENA_ARRAY(arena, SortField, (size_t) order->field_count)};

    for (int i = 0; i < order->field_count; i++) {
        copy.fields[i] = order->fields[i];
        copy.fields[i].transform = arena_str(arena, order->fields[i].transform);
    }
    return copy;
}

TableMetadata *
metadata_set_sort_order(Arena *arena, const TableMetadata *metadata, const SortOrder *wanted)
{
    TableMetadata *out = ARENA_NEW(arena, TableMetadata);
    SortOrder order = *wanted;

    *out = *metadata;
    order.json = STR_NULL;
    order.order_id = wanted->field_count > 0 ? 1 : 0; /* 0 is reserved for the unsorted one */
    for (size_t i = 0; i < metadata->sort_order_count; i++) {
        if (sort_order_same(&metadata->sort_orders[i], wanted)) {
            out->default_sort_order_id = metadata->sort_orders[i].order_id;
            return out;
        }
        if (wanted->field_count > 0 && metadata->sort_orders[i].order_id >= order.order_id)
            order.order_id = metadata->sort_orders[i].order_id + 1;
    }
    out->sort_orders = ARENA_ARRAY(arena, SortOrder, metadata->sort_order_count + 1);
    for (size_t i = 0; i < metadata->sort_order_count; i++)
        out->sort_orders[i] = metadata->sort_orders[i];
    out->sort_orders[out->sort_order_count++] = order;
    out->default_sort_order_id = order.order_id;
    return out;
}

const SortOrder *
metadata_default_sort_order(const TableMetadata *metadata)
{
    static const SortOrder unsorted = {0}; /* some writers do not list it */
    const SortOrder *order = metadata_find_sort_order(metadata, metadata->default_sort_order_id);

    return order == NULL ? &unsorted : order;
}
