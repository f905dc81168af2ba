# SPDX-License-Identifier: Apache-2.0
"""Home: one vehicle with its real bridge, its owner, nature, and the invariants of a life."""

import math
from collections import Counter, deque
from types import SimpleNamespace

import house
from actors import Actors, Nobody
from acts import Acts
from intent import Intent
from invariants import Invariants
from nature import Nature
from pilot import Pilot
from user import User
from vehicle import ZERO
from virtual_link import CLIENT
from virtual_ros import Graph, VirtualNode, node_of
from virtual_time import BrokenInvariantError, Process, VirtualTime

#: Time without anything from which a life is drowsy, s, and the period of what is periodic then: less than a stall.
IDLE_S, DROWSY_S = 8.0, 0.25


class Home:
    """Everything of one life, by its seed."""

    def __init__(self, life, make_vehicle, *, mean_s=120.0, limit=None, is_healthy=False, are_several=False):
        """Prepare a life. `limit` is the number of its acts; `mean_s` see Nature.

        `is_healthy`: a drone only flies, in steady wind, and neither is switched off. `are_several`: see Actors.
        """
        self.is_healthy = is_healthy
        self.life, self.graph, self.vehicle = life, Graph(life), make_vehicle(life)
        self.network, self.acts, self.intent = self.vehicle.network, Acts(life, limit), Intent(life)
        self.lines, self.line_counts = deque(maxlen=1000), Counter()
        if is_healthy:
            speed, towards = life.rng.uniform(0.0, 4.0), life.rng.uniform(0.0, math.tau)
            self.vehicle.wind = speed * math.cos(towards), speed * math.sin(towards)
        self._was_drowsy_s = 0.0
        self.bridge, self.bridge_runs, self.dozed_s, self.requests = None, 0, life.now_s, []
        self.asked_s = -math.inf  # when a take-off was requested, or the last goal ended
        self.most_lines = 200 if are_several else 60
        if are_several:
            self.intent, self.vehicle.fence_m = Nobody(life), 0.0
            self.vehicle.parameters = {n: v for n, v in self.vehicle.parameters.items() if n != "limits.fence_radius"}
        self.nature, self.pilot = Nature(self, mean_s), Pilot(self)
        self.started_s, self.user = life.now_s, (Actors if are_several else User)(self)
        self.invariants = Invariants(self)

    def begin(self):
        self.vehicle.switch_on()
        self.start_bridge()
        self.start_controller()
        self.life.every(1.0, self._doze)
        self.invariants.begin()
        self.acts.play(self.user.live())
        self.acts.play(self.nature.live())

    def _doze(self):
        """Let what is periodic wait for longer while nobody acts, nothing moves, and nothing is disturbed."""
        wanted, for_s = self.intent.wanted()
        idle_s = min(for_s, self.life.now_s - self.acts.newest_s, self.nature.calm_s - self.vehicle.RECONNECTS_S)
        is_still = wanted == ZERO and not self.intent.is_commanded and not self.intent.is_goal_open
        is_idle = is_still and idle_s > IDLE_S and self.vehicle.rests and not self.requests
        drowsy_s = DROWSY_S if is_idle else 0.0
        if not drowsy_s == self.life.drowsy_s == self._was_drowsy_s:  # an act wakes it, too
            self.life.drowsy_s = self._was_drowsy_s = drowsy_s
            self.dozed_s = self.life.now_s

    # The bridge.

    def topic(self, name):
        """Return the full name of a topic or service of the bridge."""
        return f"/{self.vehicle.name}_bridge{name[1:]}" if name.startswith("~") else f"/{name}"

    @property
    def is_bridge_up(self):
        return self.bridge is not None and self.bridge.process.is_alive and not self.bridge.process.is_stalled

    @property
    def bridge_up_s(self):
        """Time since the bridge has started or resumed, s."""
        return self.life.now_s - self.started_s if self.is_bridge_up else 0.0

    def start_bridge(self):
        self.started_s = self.life.now_s
        process, vehicle = Process(self.life, "bridge"), self.vehicle
        self.bridge_runs, self.vehicle_run = self.bridge_runs + 1, vehicle.runs

        def start():
            self.bridge = self.make_bridge(vehicle, process)
            self.bridge.start()

        process.run(start)

    def make_bridge(self, vehicle, process):
        def make_transport(node):
            node._link = vehicle.wire.end(CLIENT, *([node.connecting_failed] if vehicle.is_stream else []))
            node._link_to_gui, node._link.log = node._link, node.wire_log("life", "bridge", vehicle.name)
            return node._link

        without_pictures = dict.fromkeys(("link_begins", "link_ended"), lambda node: None)
        own = {"make_transport": make_transport, **without_pictures}
        make = type(vehicle.bridge.__name__, (vehicle.bridge,), own)
        return node_of(make, process, self.graph, self.log, parameter_overrides=vehicle.parameters)

    def end_bridge(self):
        """End the bridge in order."""
        self.nature.bridge_disturbed_s = self.life.now_s
        node = self.bridge

        def end():
            node.leave()
            node.destroy_node()
            node.process.end()
            self.vehicle.wire.remove(CLIENT)

        node.process.run(end)

    def kill_bridge(self):
        self.nature.bridge_disturbed_s = self.life.now_s
        self.bridge.process.kill()
        VirtualNode.destroy_node(self.bridge)
        self.vehicle.wire.remove(CLIENT)

    def stall_bridge(self, seconds):
        self.nature.bridge_disturbed_s = self.life.now_s
        self.bridge.process.stall(seconds)
        self.started_s = self.life.now_s + seconds

    def start_controller(self):
        """Start the controller of goals, in the process of the user's programs."""
        self.programs = Process(self.life, "programs")
        if self.vehicle.controller:
            kind, parameters = self.vehicle.controller

            def start():
                self.controller = node_of(kind, self.programs, self.graph, self.log, parameter_overrides=parameters)
                self.controller.start()

            self.programs.run(start)

    def log(self, level, line):
        """Keep a line of a node's log."""
        if "Traceback" in line:
            self.life.fault("no exception", line)
        if "It was holding when it ended" in line and self.intent.held is False and "does not obey" not in line:
            self.life.fault("held", f"resumed, and started anew: {line}")
        if "holding: the robot does not obey" in line and not self.invariants.is_calm:
            self.intent.hold(None)  # its answer may be under way for long
        self.lines.append((self.life.lived_s, level, line))
        self.line_counts[line[:60]] += 1

    # The owner's means.

    def request(self, name, flag):
        """Call one of the vehicle's services."""
        message, problem = self.vehicle.request(name, flag)
        asked = SimpleNamespace(name=name, asked_s=self.life.now_s, process=self.bridge.process)
        self.acts.say(f"   request {name} {flag}")

        def answered(response):
            if asked in self.requests:
                self.requests.remove(asked)
            if name in ("land", "emergency") and response and "is not connected yet" in response.message:
                self.life.fault("requests are true", f"{name} is not even tried: {response.message!r}")
            if response:
                self.acts.say(f"   {name}: {response.success} {response.message}")
                if response.success and self.invariants.is_calm and (why := problem()):
                    self.life.fault("requests are true", f"{name}: {response.message!r}, but {why}")

        if self.topic(f"~/{name}") in self.graph.services:
            self.requests.append(asked)
            self.asked_s = self.life.now_s if name == "takeoff" else self.asked_s
        self.graph.call(self.topic(f"~/{name}"), message, answered)

    def watched(self, seconds, *topics):
        """Subscribe to what the vehicle publishes, for a time."""
        subscriptions = []
        for topic in topics or [topic for topic, publishers in self.graph.publishers.items() if publishers]:
            judge = self.invariants.moved if topic == "/odom" else id
            kept = SimpleNamespace(put=lambda message, judge=judge: self.life.after(0.0, lambda: judge(message)))
            kept.is_latched = True
            self.graph.subscriptions[topic].append(kept)
            subscriptions.append((topic, kept))
        yield seconds
        for topic, kept in subscriptions:
            self.graph.subscriptions[topic].remove(kept)


def live(make_vehicle, seed, hours, **options):
    """Live for some hours. Options as for Home. Return the home, and the fault that has ended the life, or None."""
    life = VirtualTime(seed)
    with house.built(life):
        home = Home(life, make_vehicle, **options)
        fault = None
        try:
            home.begin()
            life.run(3600.0 * hours)
        except BrokenInvariantError as error:
            fault = error
        except Exception as error:  # of anything that is tested
            fault = BrokenInvariantError("no exception", life.lived_s, f"{type(error).__name__}: {error}")
            fault.__cause__ = error
        return home, fault
