# SPDX-License-Identifier: Apache-2.0
"""The commands that read a bag, run on one."""

import csv

from processes import Process, executable
from web_page import address_of
from web_viewer import Viewer

from drone_bridge.tools.bags.bag import BagReader
from drone_bridge.tools.cli import main


def every_command_reads(bag, topic, count):
    """Run info, report, export, play and view. `topic` has `count` messages."""
    with BagReader(bag) as opened:
        assert {each.name: each.count for each in opened.topics}[topic] == count
        total = sum(1 for _ in opened.messages())
        assert total == opened.count
    folder = bag.parent
    assert main(["info", str(bag)]) == 0
    assert main(["report", str(bag), "--output", str(folder / "report.html")]) == 0
    assert main(["export", str(bag), "--output", str(folder / "csv")]) == 0
    with (folder / "csv" / f"{topic.strip('/')}.csv").open() as table:
        assert len(list(csv.DictReader(table))) == count
    with Process(executable("drone-bridge"), "play", str(bag), "--rate", "20", "--delay", "0.1") as player:
        assert player.wait() == 0, player.output
        assert "Traceback" not in player.output
    with (
        Process(executable("drone-bridge"), "view", str(bag), "--port", "0", "--no-browser") as view,
        Viewer(address_of(view)) as viewer,
    ):
        viewer.subscribe(topic)
        viewer.next_of(topic)
        assert view.stop() == 0, view.output
