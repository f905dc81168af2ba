// SPDX-License-Identifier: Apache-2.0
// Preloaded: write(2) to a regular file takes an hour, as on a disk or a share of the network that hangs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t write(int file, const void *data, size_t size) {
    struct stat found;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) sleep(3600);
    ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return next(file, data, size);
}
