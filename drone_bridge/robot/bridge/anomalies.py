# SPDX-License-Identifier: Apache-2.0
"""Anomalies of packets that could be decoded and are still useful."""

from collections.abc import Iterator

from drone_bridge.robot.codec import (
    PROTOCOL_VERSION,
    FirmwareInfo,
    FromRobot,
    SensorInfo,
    SubsystemInfo,
    UnknownPacket,
)
from drone_bridge.wire.layouts import printable


def anomalies(packet: FromRobot) -> Iterator[tuple[str, str]]:
    """Yield each as the name of a count and a sentence."""
    if isinstance(packet, UnknownPacket):
        size = len(packet.payload)
        yield "unknown packets", f"The robot sent {size} bytes of the unknown type 0x{packet.type:02x}."
    elif getattr(packet, "has_replacements", False):
        yield "malformed strings", f"The robot sent a string that is not UTF-8: {printable(str(packet))}"
    if isinstance(packet, (SubsystemInfo, SensorInfo)) and (packet.opaque or packet.missing):
        what = "subsystem" if isinstance(packet, SubsystemInfo) else "sensor"
        yield (
            "unknown types",
            f"The robot has a {what} of an unknown type; it and {packet.missing} more after it, "
            f"{len(packet.opaque)} bytes, can't be read.",
        )
    if isinstance(packet, FirmwareInfo) and packet.protocol_version != PROTOCOL_VERSION:
        yield (
            "other protocol versions",
            f"The robot speaks version {packet.protocol_version} of the protocol, not {PROTOCOL_VERSION}.",
        )
