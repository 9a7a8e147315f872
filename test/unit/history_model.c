/* Thousands of made-up histories of a table: whatever the clock, the retention, tags of others and
 * the number of commits, the metadata is one that the Iceberg spec allows, and what should be kept
 * is there. The model remembers every snapshot that there ever was. */
#include "random.h"
#include "testing.h"

#include "iceberg/metadata.h"

#include <stdlib.h>

enum {
    HISTORIES = 1500,
    COMMITS_MAX = 40,
    HOUR_MS = 3600 * 1000,
    FIRST_MS = 1000000000,
};

typedef struct Model {
    Random random;
    Arena *arena;
    Retention retention;
    TableMetadata *metadata;
    size_t count;
    Snapshot all[COMMITS_MAX]; /* ever */
    int64_t tagged;            /* 0: none */
    int64_t now_ms;
} Model;

static const char *
written(Arena *arena, const TableMetadata *metadata)
{
    AUTO_BUF Buf out = {0};

    metadata_write(metadata, &out);
    return arena_strdup(arena, buf_text(&out));
}

static void
begin(Model *model, uint64_t seed)
{
    static const Type number = {.kind = TYPE_INT64};
    static Field field = {.name = {"id", 2}, .id = 1, .type = &number};
    IcebergSchema schema = {.field_count = 1, .fields = &field};
    TableCreate create = {.uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
                          .location = "s3://lake/t",
                          .schema = &schema,
                          .now_ms = FIRST_MS};

    *model = (Model){.random = {seed}, .arena = arena_new(), .now_ms = FIRST_MS};
    model->retention = (Retention){
        .keep_all_ms = (int64_t) draw(&model->random, 3) * HOUR_MS,
        .keep_hourly_ms = (int64_t) draw(&model->random, 20) * HOUR_MS,
        .snapshots_min = draw(&model->random, 4),
        .snapshots_max = (size_t) draw(&model->random, 2) * (1 + draw(&model->random, 20)),
        .metadata_log_max = draw(&model->random, 10),
    };
    create.format_version = 2 + (int) draw(&model->random, 2);
    model->metadata = metadata_create(model->arena, &create);
}

static void
commit(Model *model)
{
    TableMetadata *before = model->metadata;
    Snapshot *snapshot = &model->all[model->count++];
    uint32_t pace = draw(&model->random, 3);

    /* a clock that goes back is brought up by whoever builds the snapshot */
    model->now_ms += pace == 0 ? 10 : pace == 1 ? draw(&model->random, HOUR_MS) : 2 * HOUR_MS;
    if (before->format_version == 2 && draw(&model->random, 10) == 0)
        before = metadata_upgrade(model->arena, before);
    *snapshot = (Snapshot){
        .snapshot_id = 1 + (int64_t) draw(&model->random, UINT32_MAX),
        .parent_id = before->current_snapshot_id,
        .sequence_number = before->last_sequence_number + 1,
        .timestamp_ms = model->now_ms,
        .manifest_list = STR("s3://lake/t/metadata/list.avro"),
        .schema_id = 0,
        .first_row_id = before->format_version == 3 ? before->next_row_id : -1,
        .added_rows = before->format_version == 3 ? (int64_t) draw(&model->random, 100) : -1,
    };
    snapshot->summary = property_set(model->arena, &snapshot->summary, STR("operation"),
                                     draw(&model->random, 2) ? STR("append") : STR("overwrite"));
    model->metadata = metadata_add_snapshot(model->arena, before, snapshot, "v1.metadata.json",
                                            &model->retention);
}

/* Somebody else's tag on a snapshot that is there, or its removal. */
static void
tag(Model *model)
{
    TableMetadata *metadata = model->metadata;
    SnapshotRef *refs = ARENA_ARRAY(model->arena, SnapshotRef, 2);
    size_t at = draw(&model->random, (uint32_t) metadata->snapshot_count);

    for (size_t i = 0; i < metadata->ref_count; i++)
        if (!metadata->refs[i].is_tag)
            refs[0] = metadata->refs[i];
    metadata->refs = refs;
    metadata->ref_count = 1;
    model->tagged = 0;
    if (draw(&model->random, 3) == 0)
        return;
    model->tagged = metadata->snapshots[at].snapshot_id;
    refs[metadata->ref_count++] = (SnapshotRef){
        .name = STR("kept"),
        .snapshot_id = model->tagged,
        .is_tag = true,
        .json = arena_strf(model->arena, "{\"snapshot-id\":%lld,\"type\":\"tag\"}",
                           (long long) model->tagged),
    };
}

/* Spec, "Snapshots", "Snapshot References", "Table Metadata Fields". */
static void
expect_valid(const Model *model)
{
    const TableMetadata *metadata = model->metadata;
    const Snapshot *newest = &model->all[model->count - 1];
    size_t log_count = metadata->snapshot_log_count;

    assert_true(metadata->current_snapshot_id == newest->snapshot_id);
    assert_true(metadata->last_sequence_number == newest->sequence_number);
    assert_true(metadata->last_updated_ms >= newest->timestamp_ms);
    for (size_t i = 0; i < metadata->ref_count; i++)
        assert_non_null(metadata_find_snapshot(metadata, metadata->refs[i].snapshot_id));
    for (size_t i = 1; i < metadata->snapshot_count; i++)
        assert_true(metadata->snapshots[i - 1].sequence_number <
                    metadata->snapshots[i].sequence_number);
    /* the log is the end of the story, without gaps */
    assert_in_range(log_count, 1, model->count);
    for (size_t i = 0; i < log_count; i++) {
        const Snapshot *then = &model->all[model->count - log_count + i];

        assert_true(metadata->snapshot_log[i].snapshot_id == then->snapshot_id);
        assert_non_null(metadata_find_snapshot(metadata, then->snapshot_id));
    }
    assert_true(metadata->metadata_log_count <= model->retention.metadata_log_max);
    if (metadata->format_version == 3)
        assert_true(metadata->next_row_id == newest->first_row_id + newest->added_rows);
}

static bool
is_there(const Model *model, const Snapshot *snapshot)
{
    return metadata_find_snapshot(model->metadata, snapshot->snapshot_id) != NULL;
}

/* The last of each hour, those that are young up to the limit, the last few, the tagged one, and no
 * others. */
static void
expect_kept(const Model *model)
{
    const Retention *retention = &model->retention;
    size_t limit = retention->snapshots_max == 0 ? COMMITS_MAX : retention->snapshots_max;
    size_t young = 1;

    assert_true(is_there(model, &model->all[model->count - 1]));
    for (size_t i = model->count - 1; i-- > 0;) {
        const Snapshot *snapshot = &model->all[i];
        int64_t age_ms = model->now_ms - snapshot->timestamp_ms;
        bool last = snapshot->timestamp_ms / HOUR_MS != model->all[i + 1].timestamp_ms / HOUR_MS;
        bool stays = last && age_ms < retention->keep_hourly_ms;

        if (!stays && age_ms < retention->keep_all_ms && young < limit) {
            stays = true;
            young++;
        }
        stays |= model->count - i <= retention->snapshots_min;
        assert_true(is_there(model, snapshot) == (stays || snapshot->snapshot_id == model->tagged));
    }
}

/* It comes back from JSON as it was, and a copy is the same. */
static void
expect_same(Model *model)
{
    const char *text = written(model->arena, model->metadata);
    TableMetadata *again = NULL;
    TableMetadata *copy = NULL;
    Error err = {0};

    OK(metadata_parse(model->arena, str_of(text), &again, &err));
    assert_string_equal(written(model->arena, again), text);
    OK(metadata_copy(model->arena, model->metadata, &copy, &err));
    assert_string_equal(written(model->arena, copy), text);
    model->metadata = draw(&model->random, 2) ? again : copy;
}

static void
every_history_is_valid(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        Model model;

        begin(&model, seed);
        while (model.count < COMMITS_MAX) {
            commit(&model);
            expect_valid(&model);
            expect_kept(&model);
            if (draw(&model.random, 4) == 0)
                expect_same(&model);
            if (draw(&model.random, 6) == 0)
                tag(&model);
        }
        arena_free(model.arena);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_is_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
