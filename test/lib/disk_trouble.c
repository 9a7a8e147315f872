/* disk_trouble.c - a disk that fails, loaded into a program by LD_PRELOAD.
 *
 *     DISK_TROUBLE="OPERATION ERRNO FIRST COUNT FOLDER"
 *
 * Of all calls of one kind that concern files below FOLDER (an absolute path without links) the
 * FIRST one and COUNT - 1 after it fail, counted from 1 in each process. Operations:
 *
 *     open      a file to be written or made
 *     write     nothing is written
 *     short     half is written, as when the disk gets full; what follows is counted as write
 *     sync      what was not synced before is lost, as in Linux after an error of writing back
 *     name      rename or link
 *     read
 *
 * Each failure is a line on stderr. Calls that the C library makes inside itself, such as those of
 * stdio, pass. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct Trouble {
    char operation[16];
    int error;
    long first;
    long count;
    char folder[PATH_MAX];
} Trouble;

static Trouble trouble;
static atomic_long calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
read_trouble(void)
{
    const char *text = getenv("DISK_TROUBLE");

    /* NOLINTNEXTLINE(cert-err34-c): numbers out of range fail no call, which a test notices */
    if (text == NULL || sscanf(text, "%15s %d %ld %ld %4095[^\n]", trouble.operation,
                               &trouble.error, &trouble.first, &trouble.count, trouble.folder) != 5)
        trouble.operation[0] = '\0';
}

static bool
is_below(const char *path)
{
    size_t length = strlen(trouble.folder);

    return strncmp(path, trouble.folder, length) == 0 && path[length] == '/';
}

static bool
is_wanted(const char *operation)
{
    pthread_once(&once, read_trouble);
    return strcmp(operation, trouble.operation) == 0 ||
           (strcmp(trouble.operation, "short") == 0 && strcmp(operation, "write") == 0);
}

/* Whether this call is one of those that fail. */
static bool
fails(const char *operation, const char *path)
{
    if (!is_wanted(operation) || !is_below(path))
        return false;

    long call = atomic_fetch_add(&calls, 1) + 1;

    if (call < trouble.first || call >= trouble.first + trouble.count)
        return false;
    dprintf(STDERR_FILENO, "disk: %s %s: %s\n", operation, path, strerrordesc_np(trouble.error));
    return true;
}

/* The path of an open file; "" when it has none. */
static const char *
path_of(int fd, char path[PATH_MAX])
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);

    ssize_t length = readlink(link, path, PATH_MAX - 1);

    path[length < 0 ? 0 : length] = '\0';
    return path;
}

static bool
fails_open(const char *operation, int fd)
{
    char path[PATH_MAX];

    return is_wanted(operation) && fails(operation, path_of(fd, path));
}

static const char *
path_at(int folder, const char *name, char path[PATH_MAX])
{
    char base[PATH_MAX];

    if (name[0] == '/')
        snprintf(path, PATH_MAX, "%s", name);
    else if (folder == AT_FDCWD)
        snprintf(path, PATH_MAX, "%s", getcwd(base, sizeof base) == NULL ? "" : base);
    else
        path_of(folder, path);
    if (name[0] != '/') {
        size_t length = strlen(path);

        snprintf(path + length, PATH_MAX - length, "/%s", name);
    }
    return path;
}

#define REAL(name, type) ((type) dlsym(RTLD_NEXT, name))

typedef int OpenFn(const char *path, int flags, ...);
typedef int OpenatFn(int folder, const char *path, int flags, ...);
typedef ssize_t WriteFn(int fd, const void *data, size_t size);
typedef ssize_t PwriteFn(int fd, const void *data, size_t size, off_t at);
typedef ssize_t ReadFn(int fd, void *data, size_t size);
typedef ssize_t PreadFn(int fd, void *data, size_t size, off_t at);
typedef int FdFn(int fd);
typedef int NameFn(const char *from, const char *to);
typedef int NameatFn(int from_folder, const char *from, int to_folder, const char *to, int flags);

static int
failed(void)
{
    errno = trouble.error;
    return -1;
}

/* The names of the C library's parameters are reserved. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

/* --- open ------------------------------------------------------------------------------------ */

static int
open_file(const char *real, int folder, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];

    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0 && fails("open", path_at(folder, name, path)))
        return failed();
    return REAL(real, OpenatFn *)(folder, name, flags, mode);
}

#define MODE_ARGUMENT(flags, mode)                                                                 \
    do {                                                                                           \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        (mode) = ((flags) & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;         \
        va_end(arguments);                                                                         \
    } while (0)

int
open(const char *path, int flags, ...)
{
    mode_t mode;

    MODE_ARGUMENT(flags, mode);
    return open_file("openat", AT_FDCWD, path, flags, mode);
}

int
open64(const char *path, int flags, ...)
{
    mode_t mode;

    MODE_ARGUMENT(flags, mode);
    return open_file("openat64", AT_FDCWD, path, flags, mode);
}

int
openat(int folder, const char *path, int flags, ...)
{
    mode_t mode;

    MODE_ARGUMENT(flags, mode);
    return open_file("openat", folder, path, flags, mode);
}

int
openat64(int folder, const char *path, int flags, ...)
{
    mode_t mode;

    MODE_ARGUMENT(flags, mode);
    return open_file("openat64", folder, path, flags, mode);
}

/* --- write and read -------------------------------------------------------------------------- */

/* How much of it is written, or -1: nothing. */
static ssize_t
writable(int fd, size_t size)
{
    if (!fails_open("write", fd))
        return (ssize_t) size;
    return strcmp(trouble.operation, "short") == 0 && size > 1 ? (ssize_t) (size / 2) : -1;
}

ssize_t
write(int fd, const void *data, size_t size)
{
    ssize_t part = writable(fd, size);

    return part < 0 ? failed() : REAL("write", WriteFn *)(fd, data, (size_t) part);
}

static ssize_t
write_at(int fd, const void *data, size_t size, off_t at)
{
    ssize_t part = writable(fd, size);

    return part < 0 ? failed() : REAL("pwrite64", PwriteFn *)(fd, data, (size_t) part, at);
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t at)
{
    return write_at(fd, data, size, at);
}

ssize_t
pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return write_at(fd, data, size, at);
}

ssize_t
read(int fd, void *data, size_t size)
{
    return fails_open("read", fd) ? failed() : REAL("read", ReadFn *)(fd, data, size);
}

static ssize_t
read_at(int fd, void *data, size_t size, off_t at)
{
    return fails_open("read", fd) ? failed() : REAL("pread64", PreadFn *)(fd, data, size, at);
}

ssize_t
pread(int fd, void *data, size_t size, off_t at)
{
    return read_at(fd, data, size, at);
}

ssize_t
pread64(int fd, void *data, size_t size, off_t at)
{
    return read_at(fd, data, size, at);
}

/* --- sync and names -------------------------------------------------------------------------- */

static int
sync_file(const char *real, int fd)
{
    char path[PATH_MAX];
    struct stat found;

    if (!fails_open("sync", fd))
        return REAL(real, FdFn *)(fd);
    /* the file may be open for reading only */
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) &&
        truncate(path_of(fd, path), found.st_size / 2) != 0)
        abort();
    return failed();
}

int
fsync(int fd)
{
    return sync_file("fsync", fd);
}

int
fdatasync(int fd)
{
    return sync_file("fdatasync", fd);
}

int
rename(const char *from, const char *to)
{
    char path[PATH_MAX];

    return fails("name", path_at(AT_FDCWD, to, path)) ? failed()
                                                      : REAL("rename", NameFn *)(from, to);
}

int
renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned int flags)
{
    char path[PATH_MAX];

    return fails("name", path_at(to_folder, to, path))
               ? failed()
               : REAL("renameat2", NameatFn *)(from_folder, from, to_folder, to, (int) flags);
}

int
link(const char *from, const char *to)
{
    char path[PATH_MAX];

    return fails("name", path_at(AT_FDCWD, to, path)) ? failed() : REAL("link", NameFn *)(from, to);
}

int
linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    char path[PATH_MAX];

    return fails("name", path_at(to_folder, to, path))
               ? failed()
               : REAL("linkat", NameatFn *)(from_folder, from, to_folder, to, flags);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
