# SPDX-License-Identifier: Apache-2.0
"""Ends that go without a word: a machine without power, and a process that is killed."""

import contextlib
import ctypes
import signal
import socket
import struct
from pathlib import Path

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)  # the one instruction of a packet filter: accept no bytes


def vanish(connected):
    """Have a socket hear nothing and acknowledge nothing any more, as if its machine had lost its power.

    Whoever has the other end sees neither a FIN nor a RST: the connection is half-open. It is up to the test to say
    nothing more on it, and to close it when the other end has given it up.
    """
    instructions = ctypes.create_string_buffer(_DROP_ALL)
    program = struct.pack("HL", 1, ctypes.addressof(instructions))
    connected.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def kill(process):
    """Kill a node with SIGKILL, and remove from /dev/shm what it can't remove any more."""
    with removing_shared_memory(process.pid):
        process.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


@contextlib.contextmanager
def removing_shared_memory(pid):
    """Remove from /dev/shm, at the end, what a process has there now, as it is killed meanwhile."""
    held = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
    yield
    for file in held:
        if file.startswith(("/dev/shm/fastdds_", "/dev/shm/fastrtps_")) and "_port" not in file:  # those are anybody's
            Path(file).unlink(missing_ok=True)
            Path(file.removesuffix("_el")).unlink(missing_ok=True)
