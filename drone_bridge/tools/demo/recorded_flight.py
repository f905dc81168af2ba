# SPDX-License-Identifier: Apache-2.0
"""What the demonstrations of a flight share: its composition, the status line while it lasts, and the final table."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from drone_bridge.tools.demo.composition import Composition, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.reporting.command import write_report

STATUS_PERIOD_S: Final = 0.2

NodeT = TypeVar("NodeT", bound=Node)


def prepare(folder: Path) -> None:
    """Isolate the ROS graph and empty the folder. Raises OSError where it can't be emptied or created."""
    isolate_ros_graph()
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def start_recorded(launch_file: str, folder: Path, **arguments: object) -> Composition:
    """Start emulator, bridge, controller and recorder; log and bag go to the folder."""
    return Composition(
        launch_file,
        folder / "log.txt",
        emulate=True,
        control=True,
        record=True,
        bag=folder / "bag",
        compression="zstd",
        stamp_source="wire",
        **arguments,
    )


def watch(
    composition: Composition,
    make_node: Callable[[], NodeT],
    status: Callable[[NodeT], tuple[str, float | None]],
    is_over: Callable[[NodeT], bool],
    *,
    timeout_s: float,
    total: float | None = None,
) -> NodeT:
    """Spin a node and show its status until the flight is over, has failed or times out; return the node.

    Args:
        composition: whose processes never exit by themselves: one that does has failed.
        make_node: is called once rclpy is initialized.
        status: the status line, and how much of the total is done.
        is_over: is asked after each status line.
        timeout_s: wall time.
        total: as for Progress.
    """
    rclpy.init()
    node = make_node()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    end_s, shown_at_s = time.monotonic() + timeout_s, 0.0
    try:
        with Progress(total) as progress:
            while not composition.find(r"(?m)^\[launch\] .*(ended|died)") and time.monotonic() < end_s:
                executor.spin_once(timeout_sec=STATUS_PERIOD_S)
                if time.monotonic() - shown_at_s >= STATUS_PERIOD_S:
                    shown_at_s = time.monotonic()
                    progress.show(*status(node))
                    if is_over(node):
                        break
        return node
    finally:
        node.destroy_node()
        rclpy.shutdown()


def print_failure(composition: Composition, folder: Path, what: str) -> None:
    """Print the end of the composition's output, and a sentence."""
    print(composition.tail(), file=sys.stderr)
    print(f"{what}; the complete output is in {folder / 'log.txt'}.", file=sys.stderr)


def print_results(results: dict[str, str], messages: int, picture: Path) -> None:
    """Print a table of results and files, and write the report of the bag next to the picture."""
    folder = picture.parent
    results |= {
        "recorded": f"{messages} messages in {folder / 'bag'}",
        "picture": str(picture),
        "report": str(write_report(folder / "bag", folder / "report.html")),
    }
    for name, value in results.items():
        print(f"  {name:20} {value}")
