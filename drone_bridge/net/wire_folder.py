# SPDX-License-Identifier: Apache-2.0
"""The folder of a wire log: names its files, and bounds their number and what they occupy."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Final

from drone_bridge.net.errors import LinkError
from drone_bridge.net.wire_file import CHUNK_BYTES

FILES_PER_LOG: Final = 8  # a file ends, and is continued in another one, at this share of what the log may occupy
MAX_FILES: Final = 256


class WireFolder:
    """The files whose names begin with one bridge's."""

    def __init__(self, path: Path, name: str, total_bytes: int) -> None:
        """Create the folder if necessary; the files of this name may occupy `total_bytes` together.

        Raises LinkError if the folder can't be written to.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / f".{name}.probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise LinkError(f"The wire log can't be written to {path}: {error.strerror}.") from error
        self.path = path
        #: After how many bytes a file is to end.
        self.file_bytes = total_bytes // FILES_PER_LOG
        self._name = name
        self._total_bytes = total_bytes

    def file(self, started: datetime, part: int) -> Path:
        """Return the path of a connection's file; parts count from 1."""
        return self.path / f"{self._name}-{started:%Y%m%dT%H%M%S.%f}-{part:04}.mcap"

    def free_start(self, started: datetime) -> datetime:
        """Return the start by which to name a connection's files."""
        while self.file(started, 1).exists():  # two connections in one microsecond, or a clock that was set back
            started = started.replace(microsecond=(started.microsecond + 1) % 1_000_000)
        return started

    def make_room(self, kept: Collection[Path]) -> None:
        """Remove the oldest files, except those to be kept, until there is room for another one."""
        found = [(path.stat(), path) for path in self.path.glob(f"{self._name}-*.mcap")]
        found.sort(key=lambda entry: (entry[0].st_mtime_ns, entry[1].name))
        occupied, count = sum(status.st_size for status, _ in found), len(found)
        for status, path in found:
            if occupied + self.file_bytes + CHUNK_BYTES <= self._total_bytes and count < MAX_FILES:
                return
            if path not in kept:
                path.unlink(missing_ok=True)
                occupied -= status.st_size
                count -= 1
