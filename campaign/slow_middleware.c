// SPDX-License-Identifier: Apache-2.0
// Preloaded into a node: whatever Fast DDS sends waits while the file SLOW_MIDDLEWARE exists, for at most 4 s each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void wait_if_middleware(void *caller)
{
    const char *file = getenv("SLOW_MIDDLEWARE");
    Dl_info library;
    if (!file || !dladdr(caller, &library) || !strstr(library.dli_fname, "libfast"))
        return;
    for (int i = 0; i < 400 && access(file, F_OK) == 0; i++)
        usleep(10000);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    static ssize_t (*next)(int, const struct msghdr *, int);
    wait_if_middleware(__builtin_return_address(0));
    if (!next)
        next = dlsym(RTLD_NEXT, "sendmsg");
    return next(socket, message, flags);
}

ssize_t sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
    static ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    wait_if_middleware(__builtin_return_address(0));
    if (!next)
        next = dlsym(RTLD_NEXT, "sendto");
    return next(socket, data, size, flags, to, length);
}
