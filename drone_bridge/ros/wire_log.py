# SPDX-License-Identifier: Apache-2.0
"""The wire log of a bridge or server, configured by its parameters. See docs/wire_log.md."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from drone_bridge.ros.parameters import DeclaredParameters

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog

_MEBIBYTE: Final = 1 << 20
_SERVER: Final = "Server"


def open_wire_log(kind: str, full_name: str, parameters: DeclaredParameters, logger: Any) -> "WireLog | None":
    """Return the log that a node is configured to write, if any. Raises LinkError.

    `kind` is the name of its class, which says protocol and side.
    """
    if not (folder := parameters["wire_log"]):
        return None
    from drone_bridge.net.wire_log import WireLog, facts_of  # a bridge without a log starts without it

    path = Path(folder).expanduser().absolute()
    side = "vehicle" if kind.endswith(_SERVER) else "operator"
    protocol = kind.removesuffix(_SERVER).removesuffix("Bridge").lower()
    name = full_name.strip("/").replace("/", ".")

    def log_error(sentence: str) -> None:
        logger.error(sentence)

    log = WireLog(
        path,
        name,
        facts_of(protocol, side, name, parameters.values()),
        parameters["wire_log_mebibytes"] * _MEBIBYTE,
        log_error,
        has_pixels="wire_log_images" not in parameters or parameters["wire_log_images"],
    )
    logger.info(f"The bytes of every connection are logged to {path}.")
    return log
