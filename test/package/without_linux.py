# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge` as on macOS, which lacks what only Linux has, and on a machine without ROS.

    python3 test/package/without_linux.py emulate robot

Python's own modules are imported before: those of another system's Python do without.
"""

import asyncio  # noqa: F401
import contextlib
import errno
import os
import select
import selectors  # noqa: F401
import signal
import socket
import subprocess  # noqa: F401
import sys
import sysconfig
import time

NAMES = {
    os: ("eventfd", "memfd_create", "sched_getaffinity", "sched_setaffinity", "pidfd_open", "posix_fallocate"),
    select: ("epoll", "POLLRDHUP"),
    signal: ("sigtimedwait", "sigwaitinfo"),
    socket: (
        *("MSG_ERRQUEUE", "SO_BINDTODEVICE", "SO_DOMAIN", "SO_PEERCRED", "SO_RXQ_OVFL"),
        *("TCP_INFO", "TCP_KEEPIDLE", "TCP_QUICKACK", "TCP_USER_TIMEOUT"),
    ),
    time: ("CLOCK_BOOTTIME",),
}
_PATHS = ("/proc/", "/dev/shm")
#: Linux's SO_TIMESTAMPNS, which not every Python has a name for.
_STAMP_OPTION = 35
_stat = os.stat


def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith(_PATHS):
        raise FileNotFoundError(arguments[0])


def stat_known_path(path, **options):
    if str(path).startswith(_PATHS):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return _stat(path, **options)


def set_known_option(opened, level, option, *value):
    if (level, option) == (socket.SOL_SOCKET, _STAMP_OPTION):
        raise OSError(errno.ENOPROTOOPT, os.strerror(errno.ENOPROTOOPT))
    return super(socket.socket, opened).setsockopt(level, option, *value)


def forget_linux():
    """Take away what macOS lacks, and ROS. Its queue of the kernel, kqueue, is stood in for by ours."""
    sys.modules["rclpy"] = None
    for owner, names in NAMES.items():
        for name in names:
            with contextlib.suppress(AttributeError):
                delattr(owner, name)
    socket.socket.setsockopt = set_known_option
    os.stat = stat_known_path
    sys.platform = "darwin"
    sys.addaudithook(refuse)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import cv2  # noqa: F401
    import numpy as np  # noqa: F401

    sysconfig.get_config_vars()  # which are kept by the name of the platform

    forget_linux()
    from drone_bridge.tools.cli import main

    sys.exit(main(sys.argv[1:]))
