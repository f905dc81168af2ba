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
    """Return the kit, or the part of a protocol's folder."""
    names = path.relative_to(PACKAGE).with_suffix("").parts
    return names[1] if names[0] in PROTOCOLS else names[0]
