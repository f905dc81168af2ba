# SPDX-License-Identifier: Apache-2.0
"""ConfigurationReader: the settings that a drone's control port sends: lines `section:key = value`, then a zero."""

from collections.abc import Mapping

from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.printable import printable

#: Setting with the drone's firmware, which only reads.
FIRMWARE = "general:num_version_soft"
#: Limit of a whole text. Drones send about 6 kB.
MAX_TEXT_BYTES = 1 << 16
_END = b"\0"
#: Limit of a value, which logs and diagnostics show, characters.
MAX_VALUE = 200


class ConfigurationReader:
    """Reader of the stream of the control port, which is split anywhere."""

    def __init__(self) -> None:
        self._data = bytearray()

    def receive(self, data: bytes) -> dict[str, str] | None:
        """Return the newest complete settings, None if they are not complete yet.

        Lines that are no settings, such as those of the list of ids, are ignored. Raises RemoteProtocolError for a text
        beyond the limit, of which nothing is kept.
        """
        *texts, rest = (bytes(self._data) + data).split(_END)
        self._data[:] = rest
        if len(rest) > MAX_TEXT_BYTES:
            self._data.clear()
            raise RemoteProtocolError(f"The configuration has more than {MAX_TEXT_BYTES} bytes.")
        return read_settings(texts[-1]) if texts else None


def read_settings(text: bytes) -> dict[str, str]:
    """Return the settings in a text by `section:key`. Values are printable, and at most MAX_VALUE long."""
    settings = {}
    for line in text.decode("ascii", "replace").splitlines():
        key, equals, value = line.partition(" = ")
        if equals and ":" in key:
            settings[key.strip()] = printable(value.strip(), MAX_VALUE)
    return settings


def write_settings(settings: Mapping[str, str]) -> bytes:
    """Return the text of settings."""
    return "".join(f"{key} = {value}\n" for key, value in settings.items()).encode("ascii", "replace") + _END
