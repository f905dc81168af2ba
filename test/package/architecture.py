# SPDX-License-Identifier: Apache-2.0
"""The package's modules, and which part of it each belongs to."""

from repository import ROOT

from drone_bridge.kind import OWN

PACKAGE = ROOT / "drone_bridge"
MODULES = sorted(PACKAGE.rglob("*.py"))

# What each kit may import beside itself. None of them knows a protocol.
KITS = {
    "wire": set(),
    "session": {"wire", "motion"},
    "net": {"wire", "session"},
    "motion": {"wire", "parameter_fields"},
    "vision": {"wire", "motion", "parameter_fields"},
    "programs": {"wire", "net", "session", "motion", "standard_files", "stop_signals"},
    "ros": {
        *("wire", "net", "session", "motion", "vision"),
        *("parameter_fields", "msg", "srv", "standard_files", "stop_signals"),
    },
    "pictures": {"wire", "net", "session", "vision", "ros", "stop_signals"},
}
# What each part of a protocol's folder may import: kits, and other parts. Those of other protocols are out of reach.
PROTOCOLS = OWN


def part_of(path):
    """Return the kit, or the part of a protocol's folder: of its bridge's end, or of the vehicle's end below it."""
    names = path.relative_to(PACKAGE).with_suffix("").parts
    if names[0] not in PROTOCOLS:
        return names[0]
    return "/".join(names[1:3]) if names[1] == "vehicle" else names[1]
