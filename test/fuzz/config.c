/* Settings from arbitrary bytes: as walberg.yaml, and as the value of --set. Nothing may crash,
 * and a refusal always says why. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "config/pattern.h"
#include "config/template.h"
#include "config/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses a buffer of 1 KiB on some syntax errors; the process ends then anyway. */
const char *
__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

static void
try_file(Arena *arena, Str text)
{
    static int fd = -1;
    Config *config = NULL;
    Error err = {0};

    if (fd < 0)
        fd = memfd_create("walberg.yaml", MFD_CLOEXEC);
    assert(fd >= 0 && ftruncate(fd, 0) == 0);

    const char *path = arena_printf(arena, "/proc/self/fd/%d", fd);

    assert(pwrite(fd, text.ptr, text.len, 0) == (ssize_t) text.len);
    if (!config_load(arena, &(ConfigLoad){.file = path}, &config, &err)) {
        assert(err.kind == ERR_INPUT && err.msg[0] != '\0');
        return;
    }
    if (config_resolve(config, arena, "shop", &err))
        config_namespace(config, arena, "shop", STR("public"));
    config_takes_table(config, STR("public"), STR("orders"));
    config_table_rule(config, arena, STR("public"), STR("orders"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO_ARENA Arena *arena = arena_new();
    Str text = arena_str(arena, (Str){.ptr = (const char *) bytes, .len = size});
    const char *sets[] = {text.ptr};
    YamlNode *root = NULL;
    Config *config = NULL;
    Error err = {0};

    if (!yaml_parse(arena, text, "fuzz", &root, &err))
        assert(err.kind == ERR_INPUT && err.msg[0] != '\0');
    try_file(arena, text);
    if (!config_load(arena, &(ConfigLoad){.file = "/dev/null", .sets = sets, .set_count = 1},
                     &config, &err))
        assert(err.kind == ERR_INPUT && err.msg[0] != '\0');
    if (pattern_check(text, &err))
        pattern_matches(text, STR("public"), STR("orders"));
    if (template_check(text.ptr, &err))
        template_expand(arena, text.ptr, &(TemplateValues){.schema = STR("public")});
    return 0;
}
