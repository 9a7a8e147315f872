/* config_room.h - a folder and an environment of its own for tests of settings. */
#ifndef CONFIG_ROOM_H
#define CONFIG_ROOM_H

#include "testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"

typedef struct Room {
    Arena *arena;
    char folder[64];
} Room;

static int
enter(void **state)
{
    Room *room = calloc(1, sizeof *room);

    room->arena = arena_new();
    strcpy(room->folder, "/tmp/walberg-config-XXXXXX");
    assert_non_null(mkdtemp(room->folder));
    assert_int_equal(chdir(room->folder), 0);
    setenv("HOME", "/home/somebody", 1);
    unsetenv("XDG_STATE_HOME");
    *state = room;
    return 0;
}

static int
leave(void **state)
{
    Room *room = *state;
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", room->folder);
    assert_int_equal(system(command), 0);
    arena_free(room->arena);
    free(room);
    return 0;
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Load ./walberg.yaml with this text and one --set (NULL: none). */
static bool
load(Room *room, const char *yaml, const char *set, Config **out_config, Error *err)
{
    const char *sets[] = {set};

    if (yaml != NULL)
        write_file("walberg.yaml", yaml);
    else
        unlink("walberg.yaml");
    return config_load(room->arena, &(ConfigLoad){.sets = sets, .set_count = set != NULL},
                       out_config, err);
}

#endif
