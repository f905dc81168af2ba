# SPDX-License-Identifier: Apache-2.0
"""drone-bridge report: a bag as one HTML page, with the 3D track, zoomable plots, pictures, states and diagnostics."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    """Write the page; return the exit status."""
    parser = argparse.ArgumentParser(prog="drone-bridge report", description=__doc__)
    parser.add_argument("bag", type=Path, help="a folder with metadata.yaml, or an .mcap file")
    parser.add_argument("--output", "-o", type=Path, help="the page to write (report.html in the bag's folder)")
    options = parser.parse_args(argv)
    from drone_bridge.tools.bags.bag import BagError

    try:
        page = write_report(options.bag, options.output)
    except BagError as error:
        print(f"drone-bridge report: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"drone-bridge report: '{error.filename}' can't be written: {error.strerror}.", file=sys.stderr)
        return 1
    print(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")
    return 0


def write_report(bag_path: Path, page: Path | None = None) -> Path:
    """Write the page of a bag and return where it is. Raises BagError and OSError."""
    from drone_bridge.tools.bags.bag import Bag
    from drone_bridge.tools.bags.info import topic_rates
    from drone_bridge.tools.reporting.page import render
    from drone_bridge.tools.reporting.story import read_story

    with Bag(bag_path) as bag:
        page = page or (bag_path if bag_path.is_dir() else bag_path.parent) / "report.html"
        page.write_text(render(bag, read_story(bag), topic_rates(bag.messages())), encoding="utf-8")
    return page
