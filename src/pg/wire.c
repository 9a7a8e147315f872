#include "pg/wire.h"

#include <assert.h>

#include "base/bytes.h"

enum {
    CODE_CANCEL = (1234 << 16) | 5678,
    CODE_SSL = (1234 << 16) | 5679,
    CODE_GSSENC = (1234 << 16) | 5680,
    STARTUP_SETTINGS_MAX = 256,
};

/* --- reading ------------------------------------------------------------------------------- */

/* What is left of a body. */
typedef struct Reader {
    const char *at;
    size_t left;
    const char *message; /* its name, for errors */
} Reader;

static Reader
reader_of(Str body, const char *message)
{
    return (Reader){.at = body.ptr, .left = body.len, .message = message};
}

static bool
too_short(const Reader *in, Error *err)
{
    return FAIL(err, ERR_INPUT, "protocol violation: %s message ends too early", in->message);
}

/* The next `size` bytes, NULL with err when there are fewer. */
static const char *
take(Reader *in, size_t size, Error *err)
{
    const char *at = in->at;

    if (in->left < size) {
        (void) too_short(in, err);
        return NULL;
    }
    in->at += size;
    in->left -= size;
    return at;
}

static bool
take_byte(Reader *in, char *out_byte, Error *err)
{
    const char *at = take(in, 1, err);

    if (at == NULL)
        return false;
    *out_byte = *at;
    return true;
}

static bool
take_u16(Reader *in, uint16_t *out_number, Error *err)
{
    const char *at = take(in, 2, err);

    if (at == NULL)
        return false;
    *out_number = load_be16(at);
    return true;
}

static bool
take_u32(Reader *in, uint32_t *out_number, Error *err)
{
    const char *at = take(in, 4, err);

    if (at == NULL)
        return false;
    *out_number = load_be32(at);
    return true;
}

static bool
take_text(Reader *in, Str *out_text, Error *err)
{
    const char *end = in->left == 0 ? NULL : memchr(in->at, 0, in->left);

    if (end == NULL)
        return FAIL(err, ERR_INPUT, "protocol violation: string without an end in %s message",
                    in->message);
    *out_text = (Str){.ptr = in->at, .len = (size_t) (end - in->at)};
    in->left -= out_text->len + 1;
    in->at = end + 1;
    return true;
}

static bool
take_end(const Reader *in, Error *err)
{
    if (in->left != 0)
        return FAIL(err, ERR_INPUT, "protocol violation: %zu bytes too many in %s message",
                    in->left, in->message);
    return true;
}

/* A count of items that take at least item_bytes each: refused before anything is allocated. */
static bool
take_count(Reader *in, size_t item_bytes, int *out_count, Error *err)
{
    uint16_t count = 0;

    TRY(take_u16(in, &count, err));
    if (count * item_bytes > in->left)
        return too_short(in, err);
    *out_count = count;
    return true;
}

bool
wire_next(Str in, bool started, WireMessage *out_message, size_t *out_used, Error *err)
{
    size_t head = started ? 1 : 0;
    size_t max = started ? WIRE_MESSAGE_MAX : WIRE_STARTUP_MAX;

    if (in.len < head + 4) {
        *out_used = 0;
        return true;
    }

    uint32_t length = load_be32(in.ptr + head);

    if (length < (started ? 4 : 8) || length > max)
        return FAIL(err, ERR_INPUT, "protocol violation: message of %u bytes (at most %zu)", length,
                    max);
    if (in.len - head < length) {
        *out_used = 0;
        return true;
    }
    *out_message = (WireMessage){
        .body = {.ptr = in.ptr + head + 4, .len = length - 4},
    };
    if (started)
        out_message->type = in.ptr[0];
    *out_used = head + length;
    return true;
}

static bool
parse_settings(Arena *arena, Reader *in, WireStartup *startup, Error *err)
{
    startup->settings = ARENA_ARRAY(arena, WireSetting, STARTUP_SETTINGS_MAX);
    startup->unknown = ARENA_ARRAY(arena, Str, STARTUP_SETTINGS_MAX);
    for (int i = 0; i < STARTUP_SETTINGS_MAX; i++) {
        WireSetting setting = {0};

        TRY(take_text(in, &setting.name, err));
        if (setting.name.len == 0)
            return take_end(in, err);
        TRY(take_text(in, &setting.value, err));
        if (str_starts(setting.name, STR("_pq_.")))
            startup->unknown[startup->unknown_count++] = setting.name;
        else
            startup->settings[startup->setting_count++] = setting;
    }
    return FAIL(err, ERR_INPUT, "protocol violation: more than %d settings in startup packet",
                STARTUP_SETTINGS_MAX);
}

bool
wire_parse_startup(Arena *arena, Str body, WireStartup *out_startup, Error *err)
{
    Reader in = reader_of(body, "startup");
    WireStartup startup = {.kind = WIRE_HELLO_START};
    uint32_t code = 0;

    TRY(take_u32(&in, &code, err));
    if (code == CODE_SSL || code == CODE_GSSENC) {
        startup.kind = code == CODE_SSL ? WIRE_HELLO_SSL : WIRE_HELLO_GSSENC;
        TRY(take_end(&in, err));
    } else if (code == CODE_CANCEL) {
        startup.kind = WIRE_HELLO_CANCEL;
        TRY(take_u32(&in, &startup.cancel_pid, err));
        if (in.left == 0 || in.left > WIRE_CANCEL_KEY_MAX)
            return FAIL(err, ERR_INPUT, "protocol violation: cancel key of %zu bytes", in.left);
        startup.cancel_key = (Str){.ptr = in.at, .len = in.left};
    } else if (code >> 16 == 3) {
        startup.protocol = (int32_t) code;
        TRY(parse_settings(arena, &in, &startup, err));
    } else {
        return FAIL(err, ERR_INPUT,
                    "unsupported frontend protocol %u.%u: server supports 3.0 to 3.2", code >> 16,
                    code & 0xffff);
    }
    *out_startup = startup;
    return true;
}

int32_t
wire_protocol(int32_t asked)
{
    return asked > WIRE_PROTOCOL_3_2 ? WIRE_PROTOCOL_3_2 : asked;
}

bool
wire_parse_query(Str body, Str *out_query, Error *err)
{
    Reader in = reader_of(body, "Query");
    Str query = STR_NULL;

    TRY(take_text(&in, &query, err));
    TRY(take_end(&in, err));
    *out_query = query;
    return true;
}

bool
wire_parse_parse(Arena *arena, Str body, WireParse *out_parse, Error *err)
{
    Reader in = reader_of(body, "Parse");
    WireParse parse = {0};

    TRY(take_text(&in, &parse.name, err));
    TRY(take_text(&in, &parse.query, err));
    TRY(take_count(&in, sizeof(uint32_t), &parse.type_count, err));
    parse.types = ARENA_ARRAY(arena, uint32_t, (size_t) parse.type_count);
    for (int i = 0; i < parse.type_count; i++)
        TRY(take_u32(&in, &parse.types[i], err));
    TRY(take_end(&in, err));
    *out_parse = parse;
    return true;
}

/* A list of format codes, each 0 or 1. */
static bool
take_formats(Arena *arena, Reader *in, int16_t **out_formats, int *out_count, Error *err)
{
    int count = 0;

    TRY(take_count(in, sizeof(uint16_t), &count, err));

    int16_t *formats = ARENA_ARRAY(arena, int16_t, (size_t) count);

    for (int i = 0; i < count; i++) {
        uint16_t format = 0;

        TRY(take_u16(in, &format, err));
        if (format > 1)
            return FAIL(err, ERR_INPUT, "protocol violation: unsupported format code: %u", format);
        formats[i] = (int16_t) format;
    }
    *out_formats = formats;
    *out_count = count;
    return true;
}

static bool
take_value(Reader *in, Str *out_value, Error *err)
{
    uint32_t length = 0;

    TRY(take_u32(in, &length, err));
    if (length == UINT32_MAX) {
        *out_value = STR_NULL;
        return true;
    }

    const char *at = take(in, length, err);

    if (at == NULL)
        return false;
    *out_value = (Str){.ptr = at, .len = length};
    return true;
}

bool
wire_parse_bind(Arena *arena, Str body, WireBind *out_bind, Error *err)
{
    Reader in = reader_of(body, "Bind");
    WireBind bind = {0};

    TRY(take_text(&in, &bind.portal, err));
    TRY(take_text(&in, &bind.statement, err));
    TRY(take_formats(arena, &in, &bind.formats, &bind.format_count, err));
    TRY(take_count(&in, sizeof(uint32_t), &bind.value_count, err));
    if (bind.format_count > 1 && bind.format_count != bind.value_count)
        return FAIL(err, ERR_INPUT,
                    "protocol violation: bind message has %d parameter formats but %d parameters",
                    bind.format_count, bind.value_count);
    bind.values = ARENA_ARRAY(arena, Str, (size_t) bind.value_count);
    for (int i = 0; i < bind.value_count; i++)
        TRY(take_value(&in, &bind.values[i], err));
    TRY(take_formats(arena, &in, &bind.result_formats, &bind.result_format_count, err));
    TRY(take_end(&in, err));
    *out_bind = bind;
    return true;
}

bool
wire_parse_target(Str body, WireTarget *out_target, Error *err)
{
    Reader in = reader_of(body, "Describe or Close");
    WireTarget target = {0};

    TRY(take_byte(&in, &target.kind, err));
    if (target.kind != 'S' && target.kind != 'P')
        return FAIL(err, ERR_INPUT, "protocol violation: neither statement nor portal: %d",
                    target.kind);
    TRY(take_text(&in, &target.name, err));
    TRY(take_end(&in, err));
    *out_target = target;
    return true;
}

bool
wire_parse_execute(Str body, WireExecute *out_execute, Error *err)
{
    Reader in = reader_of(body, "Execute");
    WireExecute execute = {0};
    uint32_t rows = 0;

    TRY(take_text(&in, &execute.portal, err));
    TRY(take_u32(&in, &rows, err));
    TRY(take_end(&in, err));
    /* Postgres reads a negative limit as none. */
    execute.rows_max = rows > INT32_MAX ? 0 : (int32_t) rows;
    *out_execute = execute;
    return true;
}

/* --- writing ------------------------------------------------------------------------------- */

static size_t
begin(Buf *out, char type)
{
    buf_byte(out, (uint8_t) type);

    size_t at = out->len;

    buf_push(out, 4);
    return at;
}

static void
end(Buf *out, size_t at)
{
    assert(out->len - at <= INT32_MAX);
    store_be32(out->ptr + at, (uint32_t) (out->len - at));
}

static void
put_u16(Buf *out, uint16_t number)
{
    store_be16(buf_push(out, 2), number);
}

static void
put_u32(Buf *out, uint32_t number)
{
    store_be32(buf_push(out, 4), number);
}

/* The text up to its first NUL (a string of the protocol cannot hold one), and a NUL. */
static void
put_text(Buf *out, Str text)
{
    buf_append(out, text.ptr, text.len == 0 ? 0 : strnlen(text.ptr, text.len));
    buf_byte(out, 0);
}

void
wire_put_bare(Buf *out, char type)
{
    end(out, begin(out, type));
}

void
wire_put_authentication_ok(Buf *out)
{
    size_t at = begin(out, 'R');

    put_u32(out, 0);
    end(out, at);
}

void
wire_put_negotiate(Buf *out, int32_t protocol, const Str *unknown, int unknown_count)
{
    size_t at = begin(out, 'v');

    put_u32(out, (uint32_t) protocol);
    put_u32(out, (uint32_t) unknown_count);
    for (int i = 0; i < unknown_count; i++)
        put_text(out, unknown[i]);
    end(out, at);
}

void
wire_put_parameter(Buf *out, const char *name, Str value)
{
    size_t at = begin(out, 'S');

    put_text(out, str_of(name));
    put_text(out, value);
    end(out, at);
}

void
wire_put_backend_key(Buf *out, uint32_t pid, Str key)
{
    size_t at = begin(out, 'K');

    assert(key.len >= 4 && key.len <= WIRE_CANCEL_KEY_MAX);
    put_u32(out, pid);
    buf_append(out, key.ptr, key.len);
    end(out, at);
}

void
wire_put_ready(Buf *out, char status)
{
    size_t at = begin(out, 'Z');

    buf_byte(out, (uint8_t) status);
    end(out, at);
}

void
wire_put_complete(Buf *out, const char *tag)
{
    size_t at = begin(out, 'C');

    put_text(out, str_of(tag));
    end(out, at);
}

void
wire_put_columns(Buf *out, const WireColumn *columns, int count)
{
    size_t at = begin(out, 'T');

    assert(count >= 0 && count <= INT16_MAX);
    put_u16(out, (uint16_t) count);
    for (int i = 0; i < count; i++) {
        const WireColumn *column = &columns[i];

        put_text(out, column->name);
        put_u32(out, 0); /* table OID, column number: not known */
        put_u16(out, 0);
        put_u32(out, column->type_oid);
        put_u16(out, (uint16_t) column->type_size);
        put_u32(out, (uint32_t) column->typmod);
        put_u16(out, (uint16_t) column->format);
    }
    end(out, at);
}

void
wire_put_parameter_types(Buf *out, const uint32_t *types, int count)
{
    size_t at = begin(out, 't');

    assert(count >= 0 && count <= UINT16_MAX);
    put_u16(out, (uint16_t) count);
    for (int i = 0; i < count; i++)
        put_u32(out, types[i]);
    end(out, at);
}

size_t
wire_row_begin(Buf *out, int columns)
{
    size_t at = begin(out, 'D');

    assert(columns >= 0 && columns <= INT16_MAX);
    put_u16(out, (uint16_t) columns);
    return at;
}

void
wire_put_null(Buf *out)
{
    put_u32(out, UINT32_MAX);
}

size_t
wire_value_begin(Buf *out)
{
    size_t at = out->len;

    buf_push(out, 4);
    return at;
}

void
wire_value_end(Buf *out, size_t at)
{
    size_t length = out->len - at - 4;

    assert(length <= INT32_MAX);
    store_be32(out->ptr + at, (uint32_t) length);
}

void
wire_row_end(Buf *out, size_t at)
{
    end(out, at);
}

static void
put_field(Buf *out, char code, Str text)
{
    if (text.ptr == NULL)
        return;
    buf_byte(out, (uint8_t) code);
    put_text(out, text);
}

static void
put_report(Buf *out, char type, const WireError *error)
{
    size_t at = begin(out, type);

    assert(strlen(error->sqlstate) == 5);
    put_field(out, 'S', str_of(error->severity));
    put_field(out, 'V', str_of(error->severity));
    put_field(out, 'C', str_of(error->sqlstate));
    put_field(out, 'M', error->message.ptr == NULL ? STR("") : error->message);
    put_field(out, 'D', error->detail);
    put_field(out, 'H', error->hint);
    if (error->position > 0) {
        buf_byte(out, 'P');
        buf_printf(out, "%d", error->position);
        buf_byte(out, 0);
    }
    buf_byte(out, 0);
    end(out, at);
}

void
wire_put_error(Buf *out, const WireError *error)
{
    put_report(out, 'E', error);
}

void
wire_put_notice(Buf *out, const WireError *notice)
{
    put_report(out, 'N', notice);
}
