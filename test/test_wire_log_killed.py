# SPDX-License-Identifier: Apache-2.0
"""The wire log of a killed process."""

import signal
import subprocess
import sys

from drone_bridge.tools.wire.log_file import LogFile


def entries_of(path):
    with LogFile(path) as file:
        return list(file.entries())


def contents(path):
    return [(entry.sender, entry.data) for entry in entries_of(path)]


WRITER = """
import sys, time
from pathlib import Path
from drone_bridge.net.wire_log import WireLog, facts_of
log = WireLog(Path(sys.argv[1]), "killed", facts_of("robot", "operator", "killed", {}), print)
tap = log("tcp", "127.0.0.1:1", "127.0.0.1:2")
for number in range(10**9):
    tap("sent", number.to_bytes(4, "big"))
    print(flush=True)
    time.sleep(0.001)
"""


def test_the_file_of_a_killed_process_is_whole_up_to_what_was_flushed(tmp_path):
    command = [sys.executable, "-c", WRITER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        for _ in process.stdout:
            files = list(tmp_path.glob("*.mcap"))
            if files and len(before := contents(files[0])) > 500:
                process.send_signal(signal.SIGKILL)
                break
    numbers = [int.from_bytes(data, "big") for _, data in contents(files[0])]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= len(before)
