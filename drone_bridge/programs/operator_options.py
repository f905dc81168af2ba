# SPDX-License-Identifier: Apache-2.0
"""OperatorParser: command line of scripted operators."""

from __future__ import annotations

from drone_bridge.programs.options import ProgramParser, add_peer, read_by
from drone_bridge.programs.plan import DEFAULT_PLAN, parse_plan

#: Of programs whose vehicle has no watchdog, for their help.
LEAVES_MOVING = " If it is killed, its vehicle goes on by its last packet, as with the old program."


class OperatorParser(ProgramParser):
    """Command line of one operator."""

    def __init__(self, name: str, what: str, default_port: int, whose: str) -> None:
        """Declare the options. `what`: description; `default_port` and `whose`: port and name of the peer."""
        super().__init__("operate", name, what, "at the end of its plan")
        self.link = self.add_argument_group("link")
        add_peer(self.link, default_port, whose)
        run = self.add_argument_group("run")
        run.add_argument(
            "--plan",
            type=read_by(parse_plan, "legs such as '4s forward 0.5, 3s turn 0.5'"),
            default=DEFAULT_PLAN,
            help="plan of legs: forward, left, up (m/s) and turn (rad/s, to the left) ('%(default)s')",
        )
