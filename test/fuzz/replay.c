/* replay.c - run a fuzz target over every file of a folder: the corpus as a regression test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
run_file(const char *path)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        perror(path);
        exit(1);
    }

    size_t size = 0;
    size_t cap = 1 << 16;
    uint8_t *bytes = malloc(cap);

    for (;;) {
        size_t n = fread(bytes + size, 1, cap - size, file);

        if (n == 0)
            break;
        size += n;
        if (size == cap)
            bytes = realloc(bytes, cap *= 2);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

int
main(int argc, char **argv)
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);

        if (dir == NULL) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
            char path[4096];

            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            run_file(path);
            count++;
        }
        closedir(dir);
    }
    if (count == 0) {
        fprintf(stderr, "no corpus files\n");
        return 1;
    }
    printf("%d inputs\n", count);
    return 0;
}
