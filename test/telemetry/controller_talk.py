# SPDX-License-Identifier: Apache-2.0
"""Talk: the session of telemetry_bridge with a fake clock, and drones played by the test."""

import json
import math

from fake_pilot import FakePilot
from session_talk import SessionTalk
from telemetry_documents import Clock, drone

from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.telemetry.session.controller import TelemetryControllerParameters, TelemetryControllerSession
from drone_bridge.telemetry.units import Units
from drone_bridge.wire.addresses import AllowedPeers

A = ("127.0.0.1", 5000)
PERIOD_S = 0.04
SINKING = Shares(thrust=-0.2)


class Reports:
    """Receiver of measurements."""

    def __init__(self):
        self.all = []

    def measured(self, measured, now_s):
        self.all.append((measured, now_s))


class Pilot(FakePilot):
    """Commands for the drone."""

    def __init__(self):
        super().__init__()
        self.command = None

    def shares(self, now_s):
        return self.command and Units().shares(self.command)

    def restart(self, now_s):
        super().restart(now_s)
        self.command = None


class Talk(SessionTalk):
    """Session with a fake clock, and its actions."""

    def __init__(self, allowed=("any",), units=None, **options):
        self.parameters = TelemetryControllerParameters()
        self.pilot, self.feedback, units = Pilot(), Reports(), units or Units()
        session = TelemetryControllerSession(
            self.pilot, self.feedback, units, self.parameters, AllowedPeers(allowed), sinking=SINKING, **options
        )
        super().__init__(session)
        self.clock = Clock()
        self.actions = []

    def take(self, actions):
        self.actions += actions
        return list(actions)

    def hear(self, source=A, document=None, **values):
        if document is None:
            document = drone(timestamp=self.clock.next(), **values)
        data = document if isinstance(document, (bytes, str)) else json.dumps(document).encode()
        return self.take(self.session.receive(data, source, self.now_s))

    def run(self, seconds, *, telemetry=None):
        """Advance the clock, with ticks when they are due, and telemetry from a source if given."""
        actions, end_s = [], self.now_s + seconds
        received_s = self.now_s
        while True:
            due_s = min(self.session.due_s, received_s + PERIOD_S if telemetry else math.inf)
            if due_s > end_s:
                break
            self.now_s = max(self.now_s, due_s)
            if telemetry and self.now_s >= received_s + PERIOD_S:
                received_s = self.now_s
                actions += self.hear(telemetry)
            actions += self.take(self.session.tick(self.now_s))
        self.now_s = end_s
        return actions
