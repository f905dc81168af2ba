# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge` as on a system that has neither what only Linux has nor what Windows lacks.

    python3 test/support/without_unix.py emulate robot

Python's own modules are imported before: those of another system's Python do without.
"""

import asyncio
import contextlib
import os
import select
import selectors
import signal
import socket
import subprocess  # noqa: F401
import sys
import sysconfig
import time

MODULES = ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "syslog", "rclpy", "ctypes.util")
NAMES = {
    os: (
        *("fork", "killpg", "setsid", "getuid", "geteuid", "uname", "statvfs", "eventfd", "memfd_create"),
        *("sched_getaffinity", "sched_setaffinity", "pidfd_open", "posix_spawn", "mkfifo"),
    ),
    select: ("poll", "epoll", "POLLIN", "POLLOUT", "POLLERR", "POLLRDHUP"),
    signal: (
        *("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGALRM", "SIGKILL", "SIGSTOP", "SIGCONT", "setitimer", "alarm"),
        *("pthread_sigmask", "sigtimedwait", "sigwait"),
    ),
    socket: (
        *("CMSG_LEN", "CMSG_SPACE", "MSG_DONTWAIT", "MSG_ERRQUEUE", "MSG_NOSIGNAL", "SO_BINDTODEVICE"),
        *("SO_DOMAIN", "SO_PEERCRED", "SO_REUSEPORT", "SO_TIMESTAMP", "SO_TIMESTAMPNS", "SO_RXQ_OVFL"),
        *("TCP_INFO", "TCP_QUICKACK", "TCP_USER_TIMEOUT"),
    ),
    socket.socket: ("recvmsg", "recvmsg_into", "sendmsg"),
    time: ("CLOCK_BOOTTIME",),
}
_PATHS = ("/proc/", "/dev/shm")
#: On Linux, SO_TIMESTAMPNS, which not every Python has a name for.
_STAMP_OPTION = 35


class Missing:
    """Of a method that a base class has: asking for it raises AttributeError."""

    def __get__(self, *_):
        raise AttributeError("not on this system")


class Proactor(asyncio.SelectorEventLoop):
    """Windows' default event loop, which waits for no socket of others."""

    def add_reader(self, *_):
        raise NotImplementedError

    add_writer = remove_reader = remove_writer = add_signal_handler = add_reader


class Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        return Proactor()


def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith(_PATHS):
        raise FileNotFoundError(arguments[0])
    if event == "socket.bind" and arguments[1][0].startswith("239."):
        raise OSError("Windows binds to no multicast group")


def set_known_option(opened, level, option, *value):
    assert (level, option) != (socket.SOL_SOCKET, _STAMP_OPTION), "SO_TIMESTAMPNS is of Linux"
    return super(socket.socket, opened).setsockopt(level, option, *value)


def forget_unix():
    """Take away what another system lacks."""
    sys.modules.update(dict.fromkeys(MODULES))
    for owner, names in NAMES.items():
        for name in names:
            if owner is socket.socket:
                setattr(owner, name, Missing())
            else:
                with contextlib.suppress(AttributeError):
                    delattr(owner, name)
    socket.socket.setsockopt = set_known_option
    selectors.DefaultSelector = selectors.SelectSelector
    if sys.version_info >= (3, 11):  # before, emulators of robot and simulator need a loop as Unix has it
        asyncio.set_event_loop_policy(Policy())
    sys.platform = "another"
    sys.addaudithook(refuse)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import cv2  # noqa: F401
    import numpy as np  # noqa: F401

    sysconfig.get_config_vars()  # which are kept by the name of the platform

    forget_unix()
    from drone_bridge.tools.cli import main

    sys.exit(main(sys.argv[1:]))
