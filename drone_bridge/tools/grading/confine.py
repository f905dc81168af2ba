# SPDX-License-Identifier: Apache-2.0
"""Shut the processes of a run off from the machine, and a submission from the run. For Linux.

As a program it is what a submission is started by: it limits itself, hides what is not the submission's business, makes
all but one folder read-only, gives up all capabilities, and runs the submission.

    python3 -m drone_bridge.tools.grading.confine '{"box": ..., "hidden": [...], ...}' command ...
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: A network with nobody else in it, and mounts and shared memory that only the run sees.
OF_THE_RUN = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--ipc", "--fork", "--kill-child")
#: In that: other processes are not to be seen, nor signalled, and what is left of it ends with it.
OF_THE_SUBMISSION = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")

# From <sys/mount.h>, <sys/prctl.h>, <linux/if.h>
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_BIND = 1, 2, 4, 4096
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 1
_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _LAST_CAPABILITY = 24, 36, 38, 63
_SIOCSIFFLAGS, _IFF_UP, _IFF_MULTICAST = 0x8914, 0x1, 0x1000
_LIBC = ctypes.CDLL(None, use_errno=True)
_SHARED_MEMORY = "/dev/shm"
_LEAST_PID_MAX = 301  # that the kernel takes
_DEVICES = ("null", "zero", "full", "random", "urandom", "shm")


def is_possible() -> bool:
    """Return whether the system allows all of it."""
    # Each of both has to work where it is used, the second inside of the first, down to the read-only mounts.
    probe = [*OF_THE_RUN, sys.executable, "-m", __name__, "--probe"]
    try:
        return (
            subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def prepare_run() -> None:
    """Set up what OF_THE_RUN has made: a network of its own, and shared memory. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", _IFF_UP | _IFF_MULTICAST)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
    _mount("tmpfs", _SHARED_MEMORY, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=512m,mode=1777")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()):
        raise OSError(ctypes.get_errno(), f"{target} can't be mounted")


def _set_read_only(path: str, *, is_read_only: bool) -> None:
    """Change a mount and those below it, or only let it be written to."""
    attributes = struct.pack("QQQQ", _ATTR_RDONLY * is_read_only, _ATTR_RDONLY * (not is_read_only), 0, 0)
    flags = _AT_RECURSIVE if is_read_only else 0
    if _LIBC.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes)):
        raise OSError(ctypes.get_errno(), f"{path} can't be made {'read-only' if is_read_only else 'writable'}")


def _replace_devices() -> None:
    """Leave no devices but those that every program may use: a disk could be written to by its owner."""
    kept = {name: os.open(f"/dev/{name}", os.O_PATH) for name in _DEVICES}
    _mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID, "mode=0755")
    for name, descriptor in kept.items():
        path = Path("/dev", name)
        path.mkdir() if name == "shm" else path.touch()
        _mount(f"/proc/self/fd/{descriptor}", str(path), "", _MS_BIND)
        os.close(descriptor)
    Path("/dev/fd").symlink_to("/proc/self/fd")


def _hide(box: str, hidden: Sequence[str], mebibytes: int) -> None:
    """Let only the box, a folder of limited size, and shared memory be written to, and hide files and folders."""
    _replace_devices()
    for path in ("/run", *hidden):  # in the former are other programs' sockets
        if Path(path).is_dir():
            _mount("tmpfs", path, "tmpfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
        else:
            _mount(os.devnull, path, "", _MS_BIND)
    _mount("tmpfs", box, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={mebibytes}m,mode=0700")
    _set_read_only("/", is_read_only=True)
    for writable in (box, _SHARED_MEMORY):
        _set_read_only(writable, is_read_only=False)


def _bound_processes() -> None:
    """Let the kernel fork some hundred processes at most, for root too, where it counts by namespace (Linux 6.14)."""
    major, minor = os.uname().release.split(".")[:2]
    if (int(major), int(minor)) >= (6, 14):  # before, the number would be the whole machine's
        with contextlib.suppress(OSError):
            Path("/proc/sys/kernel/pid_max").write_text(str(_LEAST_PID_MAX))


def _give_up_capabilities() -> None:
    """Let nothing that is started from here have any, whoever it seems to be."""
    for capability in range(_LAST_CAPABILITY + 1):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _limit(memory: int, files: int, cpu: float) -> None:
    """Set what the kernel keeps to by itself, for each process; `memory` and `files` in MiB, `cpu` in s."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: memory * 2**20,
        resource.RLIMIT_FSIZE: files * 2**20,
        resource.RLIMIT_NOFILE: 512,
        resource.RLIMIT_CPU: int(cpu) + 5,
    }
    for what, limit in limits.items():
        highest = resource.getrlimit(what)[1]
        lowest = limit if highest == resource.RLIM_INFINITY else min(limit, highest)
        resource.setrlimit(what, (lowest, lowest))


def main(arguments: Sequence[str]) -> int:
    """Run a submission; return its exit status, that of a shell where a signal ended it."""
    if arguments[0] == "--probe":
        prepare_run()
        told = {"box": "/tmp", "hidden": [], "is_confined": True, "memory": 100, "files": 1, "cpu": 10}
        inner = [
            *OF_THE_SUBMISSION,
            sys.executable,
            "-m",
            "drone_bridge.tools.grading.confine",
            json.dumps(told),
            "true",
        ]
        return subprocess.run(inner, check=False).returncode
    told, command = json.loads(arguments[0]), list(arguments[1:])
    if told["is_confined"]:
        _bound_processes()
        _hide(told["box"], told["hidden"], told["files"])
        _give_up_capabilities()
    Path(told["box"], "tmp").mkdir(exist_ok=True)
    os.chdir(told["box"])
    _limit(told["memory"], told["files"], told["cpu"])
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # so that nothing leaves by becoming an orphan
    child = os.fork()
    if child == 0:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]} can't be started: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(126)
    # The first process of its namespace: signals without handlers pass it by, and orphans are its own.
    while True:
        with contextlib.suppress(InterruptedError):
            ended, status = os.wait()
            if ended == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
