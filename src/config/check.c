#include "config/check.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "config/pattern.h"
#include "config/template.h"

enum { PIPELINE_BYTES_MAX = 128, IDENTIFIER_BYTES_MAX = 63 };

bool
check_pipeline_name(const char *name, Error *err)
{
    size_t length = strlen(name);

    if (length == 0 || length > PIPELINE_BYTES_MAX)
        return FAIL(err, ERR_INPUT, "a pipeline's name has 1 to %d bytes", PIPELINE_BYTES_MAX);
    if (name[0] == '.' || name[0] == '-')
        return FAIL(err, ERR_INPUT, "a pipeline's name does not begin with \"%c\"", name[0]);
    for (const char *p = name; *p != '\0'; p++)
        if ((unsigned char) *p < ' ' || *p == 0x7f || *p == '/' || *p == '\\')
            return FAIL(err, ERR_INPUT,
                        "a pipeline's name holds no slashes and no control characters");
    return str_is_utf8(str_of(name)) || FAIL(err, ERR_INPUT, "a pipeline's name must be UTF-8");
}

static bool
check_pipeline(const Config *config, Error *err)
{
    return config->pipeline == NULL || check_pipeline_name(config->pipeline, err);
}

/* ReplicationSlotValidateName: lower-case letters, digits, underscores, NAMEDATALEN - 1 bytes. */
static bool
check_slot(const Config *config, Error *err)
{
    const char *slot = config->source_slot;

    if (slot == NULL)
        return true;
    if (slot[0] == '\0' || strlen(slot) > IDENTIFIER_BYTES_MAX ||
        strspn(slot, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(slot))
        return FAIL(err, ERR_INPUT,
                    "\"%.80s\" cannot name a replication slot\n"
                    "hint: 1 to %d lower-case letters, digits and underscores",
                    slot, IDENTIFIER_BYTES_MAX);
    return true;
}

static bool
check_publication(const Config *config, Error *err)
{
    const char *name = config->source_publication;

    if (name != NULL && (name[0] == '\0' || strlen(name) > IDENTIFIER_BYTES_MAX))
        return FAIL(err, ERR_INPUT, "a publication's name has 1 to %d bytes", IDENTIFIER_BYTES_MAX);
    return true;
}

static bool
check_tables(const Config *config, Error *err)
{
    bool takes = false;

    for (size_t i = 0; i < config->source_tables.count; i++) {
        Str pattern = config->source_tables.items[i];

        if (pattern.ptr[0] == '!')
            pattern = (Str){.ptr = pattern.ptr + 1, .len = pattern.len - 1};
        else
            takes = true;
        TRY(pattern_check(pattern, err));
    }
    if (!takes)
        return FAIL(err, ERR_INPUT,
                    "takes no table\nhint: patterns only with '!' exclude: begin with \"*.*\"");
    return true;
}

static bool
check_warehouse(const Config *config, Error *err)
{
    if (config->warehouse != NULL && config->warehouse[0] == '\0')
        return FAIL(err, ERR_INPUT, "is empty\nhint: a path or s3://bucket/prefix");
    return true;
}

static bool
check_namespace(const Config *config, Error *err)
{
    if (config->iceberg_namespace[0] == '\0')
        return FAIL(err, ERR_INPUT, "is empty");
    return template_check(config->iceberg_namespace, err);
}

static bool
check_endpoint(const Config *config, Error *err)
{
    Str url = str_of(config->s3_endpoint);

    if (url.ptr == NULL || str_starts(url, STR("http://")) || str_starts(url, STR("https://")))
        return true;
    return FAIL(err, ERR_INPUT, "\"%.200s\" is not a URL\nhint: begin with https:// or http://",
                url.ptr);
}

/* Split "host:port" or "[v6]:port"; false when the form is wrong. */
static bool
split_address(const char *text, char *host, size_t host_size, const char **out_port)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t) (colon - text);

    if (colon == NULL || length == 0 || length >= host_size)
        return false;
    if (text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (memchr(text, ':', length) != NULL) {
        return false;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    *out_port = colon + 1;
    return true;
}

static bool
is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

static bool
check_listen(const Config *config, Error *err)
{
    char host[256];
    const char *port = NULL;

    if (config->query_listen == NULL)
        return true;
    if (!split_address(config->query_listen, host, sizeof host, &port) || port[0] == '\0' ||
        strlen(port) > 5 || strspn(port, "0123456789") != strlen(port) ||
        strtol(port, NULL, 10) > 65535)
        return FAIL(err, ERR_INPUT,
                    "\"%.200s\" is not address:port\nhint: write 127.0.0.1:5433 or [::1]:5433",
                    config->query_listen);
    if (!is_loopback(host))
        return FAIL(err, ERR_INPUT,
                    "%.200s is not a loopback address\n"
                    "hint: the SQL server asks for no password: listen on 127.0.0.1:%s and reach "
                    "it through ssh -L",
                    config->query_listen, port);
    return true;
}

static const struct {
    const char *key;
    bool (*check)(const Config *config, Error *err);
} checks[] = {
    {"pipeline", check_pipeline},
    {"source.slot", check_slot},
    {"source.publication", check_publication},
    {"source.tables", check_tables},
    {"sink.iceberg.warehouse", check_warehouse},
    {"sink.iceberg.namespace", check_namespace},
    {"sink.iceberg.s3.endpoint", check_endpoint},
    {"query.listen", check_listen},
};

bool
check_setting(const char *key, const Config *config, Error *err)
{
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (strcmp(checks[i].key, key) == 0)
            return checks[i].check(config, err);
    return true;
}
