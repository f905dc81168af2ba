# SPDX-License-Identifier: Apache-2.0
"""The wire log of a bridge, as its parameters want it. See docs/wire_log.md."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from drone_bridge.links.wire_log import WireLog, facts_of

if TYPE_CHECKING:
    from drone_bridge.link_node.link_node import LinkNode

_MEBIBYTE: Final = 1 << 20
_SERVER: Final = "Server"


def open_wire_log(node: "LinkNode") -> WireLog | None:
    """Return the log that the node is to write, None if it is to write none. Raises LinkError."""
    if not (folder := node.parameters["wire_log"]):
        return None
    kind = type(node).__name__
    side = "vehicle" if kind.endswith(_SERVER) else "operator"
    protocol = kind.removesuffix(_SERVER).removesuffix("Bridge").lower()
    name = node.get_fully_qualified_name().strip("/").replace("/", ".")

    def complain(sentence: str) -> None:
        node.get_logger().error(sentence)

    log = WireLog(
        Path(folder).expanduser(),
        name,
        facts_of(protocol, side, name, node.parameters.values()),
        node.parameters["wire_log_mebibytes"] * _MEBIBYTE,
        complain,
    )
    node.get_logger().info(f"The bytes of every connection are logged to {folder}.")
    return log
