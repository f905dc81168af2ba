# SPDX-License-Identifier: Apache-2.0
"""drone-bridge demo: what the package can do, shown without hardware."""

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    """Show the demonstration that is asked for and return the exit status."""
    parser = argparse.ArgumentParser(prog="drone-bridge demo", description=__doc__)
    parser.add_argument("what", choices=("testbed", "worlds"), help="one flight with a picture, or a table of many")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="replaced by bag and picture (demo)")
    parser.add_argument("--worlds", type=int, default=20, help="how many worlds the table has (20)")
    chosen = parser.parse_args(argv)
    if chosen.what == "worlds":
        from drone_bridge.tools.demo import worlds

        return worlds.show(chosen.worlds)
    from drone_bridge.tools.demo import testbed

    return testbed.show(chosen.folder)
