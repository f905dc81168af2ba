# SPDX-License-Identifier: Apache-2.0
"""drone-bridge report: a bag as one HTML page, with the 3D track, zoomable plots, pictures, states and diagnostics."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from drone_bridge.tools.command_parser import CommandParser

if TYPE_CHECKING:
    from drone_bridge.tools.bags.bag import BagReader


def main(argv: Sequence[str]) -> int:
    """Write the page. Return the exit status."""
    parser = CommandParser(prog="drone-bridge report", description=__doc__)
    parser.add_argument("bag", type=Path, help="a folder with metadata.yaml, or an .mcap file")
    parser.add_argument("--output", "-o", type=Path, help="the page to write (report.html in the bag's folder)")
    options = parser.parse_args(argv)
    from drone_bridge.tools.bags.bag import run_on_bag

    return run_on_bag("report", options.bag, lambda bag: _report(bag, options.output))


def _report(bag: "BagReader", output: Path | None) -> int:
    page = _write(bag, output)
    print(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")
    return 0


def write_report(bag_path: Path, page: Path | None = None) -> Path:
    """Write the page of a bag. Return its path. Raises BagReadError and OSError."""
    from drone_bridge.tools.bags.bag import BagReader

    with BagReader(bag_path) as bag:
        return _write(bag, page)


def _write(bag: "BagReader", page: Path | None) -> Path:
    from drone_bridge.tools.info.command import topic_rates
    from drone_bridge.tools.report.page import render
    from drone_bridge.tools.report.report_data import read_report_data
    from drone_bridge.tools.shared.progress import counted

    page = page or (bag.path if bag.path.is_dir() else bag.path.parent) / "report.html"
    data, rates = read_report_data(bag), topic_rates(counted(bag.messages(), "counting", bag.count))
    page.write_text(render(bag, data, rates), encoding="utf-8")
    return page
