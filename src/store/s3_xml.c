#include "store/s3_xml.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

enum {
    DEPTH_MAX = 16,
    ENTITY_BYTES_MAX = 12, /* "&#x10FFFF;" and then some */
};

/* A walk over the elements of a document. leaf() is called at each end tag with the path of local
 * names and the text since the last tag. */
typedef struct XmlReader {
    const char *at;
    const char *end;
    int depth;
    Str path[DEPTH_MAX]; /* names of the open elements, the root first */
    Buf text;            /* since the last start tag */
} XmlReader;

static void
xml_done(XmlReader *xml)
{
    buf_done(&xml->text);
}

static bool
bad(Error *err, const char *what)
{
    return FAIL(err, ERR_TRANSIENT, "the service's answer is not the XML expected: %s", what);
}

/* Move behind the next `mark`; the text before it, or STR_NULL when there is no mark. */
static Str
take_until(XmlReader *xml, Str mark)
{
    const char *found = memmem(xml->at, (size_t) (xml->end - xml->at), mark.ptr, mark.len);

    if (found == NULL)
        return STR_NULL;

    Str before = {xml->at, (size_t) (found - xml->at)};

    xml->at = found + mark.len;
    return before;
}

static void
put_utf8(Buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_byte(out, (uint8_t) c);
    } else if (c < 0x800) {
        buf_byte(out, (uint8_t) (0xC0 | c >> 6));
        buf_byte(out, (uint8_t) (0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        buf_byte(out, (uint8_t) (0xE0 | c >> 12));
        buf_byte(out, (uint8_t) (0x80 | (c >> 6 & 0x3F)));
        buf_byte(out, (uint8_t) (0x80 | (c & 0x3F)));
    } else {
        buf_byte(out, (uint8_t) (0xF0 | c >> 18));
        buf_byte(out, (uint8_t) (0x80 | (c >> 12 & 0x3F)));
        buf_byte(out, (uint8_t) (0x80 | (c >> 6 & 0x3F)));
        buf_byte(out, (uint8_t) (0x80 | (c & 0x3F)));
    }
}

/* "#65" or "#x41", without the ampersand and the semicolon. */
static bool
put_character(Buf *out, Str name)
{
    bool hex = name.len > 1 && name.ptr[1] == 'x';
    uint32_t c = 0;
    size_t start = hex ? 2 : 1;

    if (name.len <= start)
        return false;
    for (size_t i = start; i < name.len; i++) {
        char digit = name.ptr[i];
        uint32_t value;

        if (digit >= '0' && digit <= '9')
            value = (uint32_t) (digit - '0');
        else if (hex && digit >= 'a' && digit <= 'f')
            value = (uint32_t) (digit - 'a') + 10;
        else if (hex && digit >= 'A' && digit <= 'F')
            value = (uint32_t) (digit - 'A') + 10;
        else
            return false;
        c = c * (hex ? 16 : 10) + value;
        if (c > 0x10FFFF)
            return false;
    }
    if (c == 0 || (c >= 0xD800 && c <= 0xDFFF))
        return false;
    put_utf8(out, c);
    return true;
}

static bool
put_entity(Buf *out, Str name)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};

    if (name.len > 0 && name.ptr[0] == '#')
        return put_character(out, name);
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        if (str_eqc(name, entities[i].name)) {
            buf_byte(out, (uint8_t) entities[i].c);
            return true;
        }
    }
    return false;
}

/* Text up to the next tag, entities resolved. */
static bool
read_text(XmlReader *xml, Error *err)
{
    while (xml->at < xml->end && *xml->at != '<') {
        if (*xml->at != '&') {
            buf_byte(&xml->text, (uint8_t) *xml->at++);
            continue;
        }
        xml->at++;

        size_t left = (size_t) (xml->end - xml->at);
        const char *stop = memchr(xml->at, ';', left < ENTITY_BYTES_MAX ? left : ENTITY_BYTES_MAX);

        if (stop == NULL || !put_entity(&xml->text, (Str){xml->at, (size_t) (stop - xml->at)}))
            return bad(err, "unknown entity");
        xml->at = stop + 1;
    }
    return true;
}

/* "ns:Name attr='x'" -> "Name" */
static Str
local_name(Str tag)
{
    size_t start = 0;
    size_t i = 0;

    for (; i < tag.len && strchr(" \t\r\n", tag.ptr[i]) == NULL; i++)
        if (tag.ptr[i] == ':')
            start = i + 1;
    return (Str){tag.ptr + start, i - start};
}

/* What a reader tells its caller. */
typedef enum XmlEvent {
    XML_BEGIN, /* the innermost element of path has begun */
    XML_CLOSE, /* the innermost element of path ends; text is what was in it since the last tag */
    XML_DONE,
} XmlEvent;

/* xml->at is behind the '<' of a start tag, which ends at `tag`. */
static bool
begin_element(XmlReader *xml, Str tag, Error *err)
{
    if (xml->depth == DEPTH_MAX)
        return bad(err, "too deep");
    xml->path[xml->depth] = local_name(tag);
    if (xml->path[xml->depth].len == 0)
        return bad(err, "a tag without a name");
    xml->depth++;
    buf_reset(&xml->text);
    return true;
}

/* Skip what is neither element nor text. *out_skipped: there was such a thing. */
static bool
skip_other(XmlReader *xml, bool *out_skipped, Error *err)
{
    Str left = {xml->at, (size_t) (xml->end - xml->at)};
    Str skipped;

    *out_skipped = true;
    if (str_starts(left, STR("!--"))) {
        xml->at += 3;
        skipped = take_until(xml, STR("-->"));
    } else if (str_starts(left, STR("?"))) {
        skipped = take_until(xml, STR("?>"));
    } else if (str_starts(left, STR("![CDATA["))) {
        xml->at += 8;
        skipped = take_until(xml, STR("]]>"));
        buf_str(&xml->text, skipped);
    } else if (str_starts(left, STR("!"))) {
        return bad(err, "a document type");
    } else {
        *out_skipped = false;
        return true;
    }
    return skipped.ptr != NULL || bad(err, "cut short");
}

/* Before a XML_CLOSE event is acted on, the element is still in path; this takes it out. */
static void
pop_element(XmlReader *xml)
{
    xml->depth--;
    buf_reset(&xml->text);
}

typedef struct XmlStep {
    XmlEvent event;
    bool empty_tag; /* <x/>: the end follows without a tag of its own */
} XmlStep;

static bool
next_tag(XmlReader *xml, XmlStep *step, Error *err)
{
    bool skipped = true;

    while (skipped) {
        TRY(read_text(xml, err));
        if (xml->at == xml->end) {
            step->event = XML_DONE;
            return xml->depth == 0 || bad(err, "cut short");
        }
        xml->at++; /* '<' */
        TRY(skip_other(xml, &skipped, err));
    }

    Str tag = take_until(xml, STR(">"));

    if (tag.ptr == NULL)
        return bad(err, "cut short");
    if (tag.len > 0 && tag.ptr[0] == '/') {
        Str name = local_name((Str){tag.ptr + 1, tag.len - 1});

        if (xml->depth == 0 || !str_eq(name, xml->path[xml->depth - 1]))
            return bad(err, "an end tag that does not match");
        step->event = XML_CLOSE;
        return true;
    }
    step->empty_tag = tag.len > 0 && tag.ptr[tag.len - 1] == '/';
    if (step->empty_tag)
        tag.len--;
    step->event = XML_BEGIN;
    return begin_element(xml, tag, err);
}

/* Advance to the next begin or end of an element. */
static bool
xml_next(XmlReader *xml, XmlStep *step, Error *err)
{
    if (step->event == XML_CLOSE)
        pop_element(xml);
    if (step->event == XML_BEGIN && step->empty_tag) {
        step->empty_tag = false;
        step->event = XML_CLOSE;
        return true;
    }
    return next_tag(xml, step, err);
}

/* Whether the innermost open element is at this path below the root, e.g. "Contents", "Key". */
static bool
at_path(const XmlReader *xml, const char *first, const char *second)
{
    int depth = second == NULL ? 2 : 3;

    return xml->depth == depth && str_eqc(xml->path[1], first) &&
           (second == NULL || str_eqc(xml->path[2], second));
}

/* ---- a page of a listing ---- */

typedef struct PageReader {
    Arena *arena;
    Buf objects;  /* of StoreObject */
    Buf prefixes; /* of Str */
    StoreObject object;
    bool url_encoded;
} PageReader;

static void
page_done(PageReader *page)
{
    buf_done(&page->objects);
    buf_done(&page->prefixes);
}

static bool
parse_size(Str text, int64_t *out)
{
    int64_t value = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (text.ptr[i] - '0');
    }
    *out = value;
    return text.len > 0;
}

/* "2009-10-12T17:50:30.000Z" in microseconds since 1970; 0 when it cannot be read. */
static int64_t
parse_time(Str text)
{
    char copy[32];
    struct tm tm = {0};

    if (text.len >= sizeof copy)
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
        return 0;
    return (int64_t) timegm(&tm) * 1000000;
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* encoding-type=url: as in a form, so a plus is a blank. */
static Str
url_decoded(Arena *arena, Str text)
{
    AUTO_BUF Buf out = {0};

    for (size_t i = 0; i < text.len; i++) {
        int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
        int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;

        if (text.ptr[i] == '%' && high >= 0 && low >= 0) {
            buf_byte(&out, (uint8_t) (high * 16 + low));
            i += 2;
        } else {
            buf_byte(&out, text.ptr[i] == '+' ? ' ' : (uint8_t) text.ptr[i]);
        }
    }
    return arena_str(arena, buf_view(&out));
}

static bool
read_element(PageReader *page, XmlReader *xml, S3Page *out, Error *err)
{
    Str text = buf_view(&xml->text);

    if (at_path(xml, "Contents", NULL)) {
        if (page->object.key.ptr == NULL)
            return bad(err, "an object without a key");
        BUF_PUSH(&page->objects, StoreObject, page->object);
        page->object = (StoreObject){0};
    } else if (at_path(xml, "Contents", "Key")) {
        page->object.key = arena_str(page->arena, text);
    } else if (at_path(xml, "Contents", "Size")) {
        if (!parse_size(text, &page->object.bytes))
            return bad(err, "a size that is not a number");
    } else if (at_path(xml, "Contents", "LastModified")) {
        page->object.modified_us = parse_time(text);
    } else if (at_path(xml, "CommonPrefixes", "Prefix")) {
        BUF_PUSH(&page->prefixes, Str, arena_str(page->arena, text));
    } else if (at_path(xml, "IsTruncated", NULL)) {
        out->truncated = str_eq(text, STR("true"));
    } else if (at_path(xml, "NextContinuationToken", NULL)) {
        out->next_token = arena_str(page->arena, text);
    } else if (at_path(xml, "EncodingType", NULL)) {
        page->url_encoded = str_eq(text, STR("url"));
    }
    return true;
}

static void
finish_page(PageReader *page, S3Page *out)
{
    out->object_count = BUF_COUNT(&page->objects, StoreObject);
    out->objects = ARENA_ARRAY(page->arena, StoreObject, out->object_count);
    out->prefix_count = BUF_COUNT(&page->prefixes, Str);
    out->prefixes = ARENA_ARRAY(page->arena, Str, out->prefix_count);
    for (size_t i = 0; i < out->object_count; i++) {
        out->objects[i] = BUF_AT(&page->objects, StoreObject, i);
        if (page->url_encoded)
            out->objects[i].key = url_decoded(page->arena, out->objects[i].key);
    }
    for (size_t i = 0; i < out->prefix_count; i++) {
        out->prefixes[i] = BUF_AT(&page->prefixes, Str, i);
        if (page->url_encoded)
            out->prefixes[i] = url_decoded(page->arena, out->prefixes[i]);
    }
}

bool
s3_page_parse(Arena *arena, Str xml, S3Page *out_page, Error *err)
{
    AUTO(xml_done) XmlReader reader = {.at = xml.ptr, .end = xml.ptr + xml.len};
    AUTO(page_done) PageReader page = {.arena = arena};
    XmlStep step = {.event = XML_DONE};
    S3Page out = {0};
    bool listing = false;

    if (xml.len == 0)
        return bad(err, "empty");
    for (;;) {
        TRY(xml_next(&reader, &step, err));
        if (step.event == XML_DONE)
            break;
        if (reader.depth == 1)
            listing = str_eqc(reader.path[0], "ListBucketResult");
        if (step.event == XML_CLOSE)
            TRY(read_element(&page, &reader, &out, err));
    }
    if (!listing)
        return bad(err, "no ListBucketResult");
    finish_page(&page, &out);
    *out_page = out;
    return true;
}

void
s3_problem_parse(Arena *arena, Str xml, S3Problem *out_problem)
{
    AUTO(xml_done) XmlReader reader = {.at = xml.ptr, .end = xml.ptr + xml.len};
    XmlStep step = {.event = XML_DONE};
    Error ignored;

    *out_problem = (S3Problem){.code = "", .message = "", .region = ""};
    while (xml.len > 0 && xml_next(&reader, &step, &ignored) && step.event != XML_DONE) {
        if (step.event != XML_CLOSE || !str_eqc(reader.path[0], "Error"))
            continue;

        const char *text = arena_str(arena, buf_view(&reader.text)).ptr;

        if (at_path(&reader, "Code", NULL))
            out_problem->code = text;
        else if (at_path(&reader, "Message", NULL))
            out_problem->message = text;
        else if (at_path(&reader, "Region", NULL))
            out_problem->region = text;
    }
}
