# SPDX-License-Identifier: Apache-2.0
"""Child process that decodes, checks and encodes pictures for `codec_process`.

    python3 -m drone_bridge.pictures.worker SOCKET MEMORY

Requests and replies are lines of JSON on a socket, data is in shared memory. A request has `work`, the import
path of a function as in `work`, `bytes`, the size of its data at the start of the memory, and other arguments. A reply
has `facts` and `sizes` of the results, which follow each other in the memory from MAX_DATA_BYTES on; or `refusal`, a
sentence. The process exits when the socket is closed, so it exits with its parent in any case.
"""

import functools
import importlib
import json
import mmap
import os
import socket
import sys

from drone_bridge.pictures.codec_process import MAX_DATA_BYTES, MEMORY_BYTES
from drone_bridge.pictures.work import Facts, Work
from drone_bridge.stop_signals import ignore_stop_signals
from drone_bridge.wire.events import ProtocolError

#: Niceness relative to the node, so that the child gets less of a busy machine.
NICENESS = 5


@functools.cache
def work_at(path: str) -> Work:
    """Import `module:function`."""
    module, _, name = path.partition(":")
    function: Work = getattr(importlib.import_module(module), name)
    return function


def answer(line: bytes, memory: mmap.mmap) -> bytes:
    """Execute one request; return the reply."""
    request = json.loads(line)
    try:
        facts, results = work_at(request["work"])(memory[: request["bytes"]], request)
    except ProtocolError as error:
        return _line({"refusal": str(error)})
    except ValueError as error:
        return _line({"refusal": f"The image {str(error).rstrip('.')}."})
    at = MAX_DATA_BYTES
    for result in results:
        memory[at : at + len(result)] = result
        at += len(result)
    return _line({"facts": facts, "sizes": [len(result) for result in results]})


def _line(reply: Facts) -> bytes:
    return json.dumps(reply).encode() + b"\n"


def main() -> int:
    """Serve until the socket is closed."""
    ignore_stop_signals()  # sent by a terminal or a service manager to all processes of a node
    os.nice(NICENESS)
    with (
        socket.socket(fileno=int(sys.argv[1])) as connection,
        mmap.mmap(int(sys.argv[2]), MEMORY_BYTES) as memory,
        connection.makefile("rb") as requests,
    ):
        try:
            for line in requests:
                connection.sendall(answer(line, memory))
        except ConnectionError:
            pass  # the parent has exited
    return 0


if __name__ == "__main__":
    sys.exit(main())
