/* Preloaded: writes to a folder fail, as on a disk that is full or read-only.

   What counts as a write: opening a file to write, writing, truncating, flushing, renaming, and
   making folders, if the path is below the folder. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long first, last, count;
static int number;

/* Writes `from` to `to` to a place fail with an error; none do if they are 0. */
void nits_fail(const char *place, long from, long to, int error) {
    if (realpath(place, folder) == NULL) folder[0] = 0;
    first = from;
    last = to;
    number = error;
    count = 0;
}

long nits_writes(void) { return count; }

static int below(const char *path) {
    size_t length = strlen(folder);
    return length && strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

static int fails(void) {
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (now < first || now > last) return 0;
    errno = number;
    return 1;
}

/* Whether an operation on a path, relative to an open folder, counts and fails. */
static int at(int dirfd, const char *path) {
    char whole[2 * PATH_MAX], base[PATH_MAX];
    if (!folder[0] || path == NULL) return 0;
    if (path[0] == '/') return below(path) && fails();
    if (dirfd == AT_FDCWD) {
        if (getcwd(base, sizeof base) == NULL) return 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        ssize_t n = readlink(link, base, sizeof base - 1);
        if (n < 0) return 0;
        base[n] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    return below(whole) && fails();
}

static int open_file(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path) && fails();
}

#define REAL(type, name, ...)                                        \
    static type (*real)(__VA_ARGS__);                                \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))

#define OPEN(NAME)                                                   \
    int NAME(const char *path, int flags, ...) {                     \
        REAL(int, #NAME, const char *, int, ...);                    \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;    \
        va_end(rest);                                                \
        if (WRITES(flags) && at(AT_FDCWD, path)) return -1;          \
        return real(path, flags, mode);                              \
    }

#define OPENAT(NAME)                                                 \
    int NAME(int dirfd, const char *path, int flags, ...) {          \
        REAL(int, #NAME, int, const char *, int, ...);               \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;    \
        va_end(rest);                                                \
        if (WRITES(flags) && at(dirfd, path)) return -1;             \
        return real(dirfd, path, flags, mode);                       \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return open_file(fd) ? -1 : real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return open_file(fd) ? -1 : real(fd, parts, n);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return open_file(fd) ? -1 : real(fd, data, size, place);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return open_file(fd) ? -1 : real(fd, data, size, place);
}

int ftruncate(int fd, off_t size) {
    REAL(int, "ftruncate", int, off_t);
    return open_file(fd) ? -1 : real(fd, size);
}

int ftruncate64(int fd, off64_t size) {
    REAL(int, "ftruncate64", int, off64_t);
    return open_file(fd) ? -1 : real(fd, size);
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return open_file(fd) ? -1 : real(fd);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return at(AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int a, const char *from, int b, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return at(b, to) ? -1 : real(a, from, b, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return at(AT_FDCWD, path) ? -1 : real(path, mode);
}
