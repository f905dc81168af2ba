# SPDX-License-Identifier: Apache-2.0
"""Truth: what several actors at once may expect of a vehicle, by docs/bridges.md and docs/view.md alone.

It reads when each actor published what, what the wire told the vehicle, and what /diagnostics said, and no table of the
product. A broken rule ends no life: `finds` counts its episodes, each with its circumstances.
"""

import math
import re
from collections import Counter, deque
from itertools import pairwise
from typing import NamedTuple

from vehicle import ZERO

PERIOD_S = 0.1
#: Own constants of the contract, s: lifetime of a command and of a silent helm; time until a decision is on the wire,
#: until a stopped bridge's own child has spoken, and until it must be said; between two reports, and two episodes.
COMMAND_S, HELM_S, DECIDED_S, SETTLED_S, SAID_S, REPORTED_S, EPISODE_S = 0.5, 1.0, 0.5, 1.0, 3.0, 1.3, 20.0
#: Names of actors in diagnostics; reasons of holds by them.
NAMES = re.compile(r"\b(?:program|person|other)_\d+")
HOLDS = re.compile(r"holding: (?:the helm ended|the service|.* (?:pressed STOP|left the helm))")
#: Time after which an unattended drone is down, beyond its own, s.
DOWN_S = 40.0
#: Time for which bad weather may delay a stop, s.
WEATHER_S = 10.0
#: Time until a drone that is flown by goals certainly rests, s.
GLIDES_S = 8.0


class Sent(NamedTuple):
    at_s: float
    velocity: object


class Source:
    """What an actor has published lately."""

    def __init__(self, name, topic, offset_s):
        self.name, self.topic, self.offset_s = name, topic, offset_s
        self.sent = deque(maxlen=600)

    def is_fresh(self, now_s):
        return bool(self.sent) and now_s - self.sent[-1].at_s <= COMMAND_S

    def steady(self, now_s, window_s):
        """Return the velocity that it has published for all of a window, or None."""
        recent = [each for each in self.sent if each.at_s >= now_s - window_s]
        times = [now_s - window_s, *(each.at_s for each in recent), now_s]
        is_gapless = recent and max(b - a for a, b in pairwise(times)) < 0.9 * COMMAND_S
        is_same = is_gapless and self.sent[0].at_s <= now_s - window_s and len({each.velocity for each in recent}) == 1
        return recent[-1].velocity if is_same else None


class Truth:
    """Judge of a life of several actors."""

    def __init__(self, home):
        self._home, self._life, self._vehicle = home, home.life, home.vehicle
        self.sources, self.finds, self.checks, self.first, self._last_s = [], Counter(), Counter(), {}, {}
        #: The helm: its source, begin, and last message; and whether the bridge stalled or began anew meanwhile.
        self.helm, self.helm_s, self.helm_last_s, self.was_disturbed = None, -math.inf, -math.inf, False
        self.helm_seen_s, self._stood_s = -math.inf, self._life.now_s
        #: Ends of actors, by name; time since which it is certainly not held.
        self.ended_s, self._free_s, self._is_unsure = {}, math.inf, False
        self.stopped_s, self.asking, self.resumed_s, self.is_by_person = math.inf, 0, -math.inf, False
        self.goal_s, self.goal_end_s, self.is_reached = math.inf, -math.inf, False
        self.alone_s = self._life.now_s
        self._told, self._said = deque([(self._life.now_s, ZERO)], maxlen=3000), deque(maxlen=100)
        tell = home.vehicle.tell

        def heard(told):
            tell(told)
            self._told.append((self._life.now_s, told))

        home.vehicle.tell = heard
        home.graph.tap("/diagnostics", self._hear)
        self.rests, self.pages, self.quiet_s = False, None, self._life.now_s
        self._life.every(PERIOD_S, self._judge)

    # What happens.

    def published(self, source, velocity):
        """Note a message of an actor."""
        now_s = self._life.now_s
        if source.topic == "~/helm":
            if not self._home.bridge.process.is_alive:
                return
            if now_s > self.helm_last_s + HELM_S:
                self.helm, self.helm_s, self.was_disturbed = source, now_s, not self._home.is_bridge_up
            self.helm_last_s = self.helm_seen_s = now_s
        if source not in self.sources:
            self.sources.append(source)
        source.sent.append(Sent(now_s, velocity))

    def stopped(self, *, by_person):
        """Note a confirmed hold."""
        if self.stopped_s == math.inf:
            self.stopped_s = self._life.now_s
        self.is_by_person |= by_person

    def resumed(self, is_success):
        """Note the answer to a resume; None: it has none, and may be done."""
        self.asking -= 1
        if is_success is False:
            return
        now_s = self.resumed_s = self._life.now_s
        is_free = is_success and now_s > self.helm_seen_s + HELM_S + DECIDED_S
        self._free_s, self._is_unsure = now_s if is_free else math.inf, is_success is None
        self.stopped_s, self.is_by_person = math.inf, False
        if now_s > self.helm_last_s + HELM_S - 0.2:
            self.helm_last_s = -math.inf

    # What is seen.

    def _hear(self, message):
        for each in message.status:
            if each.level != b"\0":
                self._said.append((self._life.now_s, each.message))
                self._reason(each.message)

    def _reason(self, text):
        """(xii) What diagnostics name as a reason exists at that moment."""
        self.checks["xii reason"] += 1
        now_s, vehicle, since_s = self._life.now_s, self._vehicle, self._life.now_s - SAID_S - REPORTED_S
        wrong = [f"{name} has ended" for name in NAMES.findall(text) if self.ended_s.get(name, math.inf) < since_s]
        is_free = now_s - self._free_s > REPORTED_S and not self.asking
        wrong += ["it is not held"] if HOLDS.search(text) and is_free else []
        is_left = now_s - self.helm_seen_s > HELM_S + REPORTED_S
        wrong += ["nobody is"] if "a person is at the helm" in text and is_left else []
        is_flying = vehicle.is_drone and now_s - self._stood_s > GLIDES_S and self._is_connected()
        wrong += ["it flies"] if "the drone is on the ground" in text and is_flying else []
        if wrong and self._home.bridge_up_s > SAID_S:
            self.find("xii reason", "", f"{', '.join(wrong)}: {text!r}")

    def said(self, *words):
        """Return whether a warning of the last seconds has one of the words."""
        since_s = self._life.now_s - SAID_S - REPORTED_S
        return any(at_s >= since_s and (not words or any(w in text for w in words)) for at_s, text in self._said)

    def _velocities(self, seconds):
        """Return what it was told during the last seconds, as a list of distinct velocities."""
        since_s, found = self._life.now_s - seconds, []
        for at_s, told in reversed(self._told):
            if told not in found:
                found.append(told)
            if at_s < since_s:
                break
        return found

    def was_still(self, seconds):
        """Return whether it was only told to stand, for some seconds."""
        return self._velocities(seconds) == [ZERO]

    def find(self, rule, circumstances, sentence):
        key, now_s = f"{rule} [{circumstances}]", self._life.now_s
        if now_s - self._last_s.get(key, -math.inf) > EPISODE_S:
            self.finds[key] += 1
            self.first.setdefault(key, (self._life.lived_s, self._home.acts.number, sentence))
            self._home.acts.say(f"!! {key}: {sentence}")
        self._last_s[key] = now_s

    # The rules.

    def _judge(self):
        home, now_s = self._home, self._life.now_s
        self._up_s = home.bridge_up_s
        if not home.is_bridge_up:
            self.was_disturbed = True
        if self._vehicle.stands:
            self._stood_s = now_s
        if self.asking or not home.is_bridge_up:
            self.quiet_s, self._free_s = now_s, math.inf
        if now_s < self.helm_last_s + HELM_S:
            self._free_s = math.inf
        if self.pages:
            self.pages.judge(self._is_connected())
        fresh = [each for each in self.sources if each.is_fresh(now_s)]
        self.sources = [each for each in self.sources if now_s - each.sent[-1].at_s < 10.0]
        is_goal = self.goal_s < math.inf or now_s < self.goal_end_s + 4.0
        if fresh or is_goal:
            self.alone_s = now_s
        if self.asking or self._up_s < SETTLED_S or now_s - self.resumed_s < 0.3 or home.nature.fair_s < WEATHER_S:
            return
        at_helm, ended_s = now_s <= self.helm_last_s + HELM_S, self.helm_last_s + HELM_S
        rests_s = min(self.stopped_s, math.inf if at_helm or ended_s == -math.inf else ended_s)
        self.rests = rests_s < now_s
        if self._vehicle.flies_by_goals:
            if now_s - rests_s > GLIDES_S:
                self._rests(now_s - rests_s)
        elif now_s - rests_s > DECIDED_S:
            self._rests(now_s - rests_s)
        elif at_helm and self.stopped_s == math.inf and now_s - self.helm_s > DECIDED_S:
            self._is_at_helm(now_s)
        elif rests_s == math.inf and not at_helm and not self._is_unsure:
            self._commanded(now_s, is_goal)
        if now_s - self.alone_s > 1.5:
            self._left(now_s - self.alone_s)

    def _rests(self, for_s):
        """(ii), (iii): after the end of a helm, and a STOP, nothing moves until a person resumes it."""
        by = "iii stop" if self.stopped_s < math.inf else "ii helm ended"
        self.checks[by] += 1
        vehicle, circumstances = self._vehicle, self._clock() if by[:3] == "ii " else ""
        if vehicle.flies_by_goals:
            if self._home.invariants.is_calm and vehicle.phase not in vehicle.LANDING and (why := vehicle.restless()):
                self.find(by, circumstances, f"{why}, {for_s:.1f} s later")
        elif vehicle.is_moving and not self.is_landing(vehicle.told):
            self.find(by, circumstances, f"told {vehicle.told}, {for_s:.1f} s later")

    def is_landing(self, told):
        return self._vehicle.is_drone and told[:2] == (0.0, 0.0) and told.up < 0.0 and told.turn == 0.0

    def _is_at_helm(self, now_s):
        """(i): it follows the person, or is neutral."""
        vehicle, self.checks["i helm"] = self._vehicle, self.checks["i helm"] + 1
        persons = [each for each in self.sources if each.topic == "~/helm"]
        velocities = {s.velocity for each in persons for s in each.sent if s.at_s > now_s - HELM_S - DECIDED_S}
        allowed = [ZERO, *map(vehicle.limited, velocities)]
        if vehicle.is_moving and not any(self._same(vehicle.told, each) for each in allowed):
            self.find("i helm", self._clock(), f"told {vehicle.told}, the person {velocities}")
            return
        if len(persons) > 1:
            self._two_persons(now_s, persons)
            return
        wanted = self.helm.steady(now_s, SAID_S)
        if wanted in (None, ZERO) or self._up_s < 2 * SAID_S or not self._is_connected():
            return
        self._followed("v helm", self.helm, vehicle.limited(wanted))

    def _two_persons(self, now_s, persons):
        """(viii): of two people at the helm, one steers."""
        steady = [(each, v) for each in persons if (v := each.steady(now_s, SAID_S + 2.0)) is not None]
        got = {v for _, v in steady if any(self._same(self._vehicle.limited(v), t) for t in self._velocities(SAID_S))}
        self.checks["viii two persons"] += 1
        if len(got) > 1:
            self.find("viii two persons", "", f"told the velocities of both: {got}")

    def _followed(self, rule, source, limited, others=""):
        """(v): nobody's command is ignored for seconds without a reason."""
        self.checks[rule] += 1
        is_followed = any(self._same(each, limited) for each in self._velocities(SAID_S))
        if not is_followed and limited != ZERO and not self.said():
            told = self._velocities(SAID_S)
            self.find(
                rule, self._clock(source) + others, f"{source.name} {limited} on {source.topic}, told {told}, not said"
            )

    def _commanded(self, now_s, is_goal):
        """(iv), (v): it follows one of the programs, or it is said that they fight."""
        window = SAID_S + 2.0
        is_quiet = now_s - max(self.resumed_s, self.helm_last_s + HELM_S) > 2 * SAID_S and self._up_s > 2 * SAID_S
        if not is_quiet or not self._is_connected():
            return
        steady = [(each, v) for each in self.sources if (v := each.steady(now_s, window)) is not None]
        since_s, known = now_s - window - COMMAND_S, {s for s, _ in steady}
        # Whether somebody begins, ends, or changes.
        others = any(each.sent[-1].at_s > since_s for each in self.sources if each not in known)
        limited = [(source, self._vehicle.limited(v)) for source, v in steady]
        for source, each in limited:
            besides = sorted({other.topic for other, _ in steady if other is not source})
            besides += ["a goal"] if is_goal else []
            self._followed("v program", source, each, f", {source.topic} beside {' and '.join(besides) or 'nobody'}")
        told = self._velocities(SAID_S - 1.0)
        got = [(source, each) for source, each in limited if any(self._same(each, t) for t in told)]
        distinct = {tuple(round(x, 3) for x in each) for _, each in got}
        words = "at the same time", "ignored while", "nodes", "another", "refused"
        if len(steady) > 1:
            self.checks["iv two programs"] += 1
        if len(distinct) > 1 and not self.said(*words):
            zero = "one of zero" if any(each == ZERO for _, each in got) else "none of zero"
            topics = "+".join(sorted({source.topic for source, _ in got}))
            heard = "said otherwise" if self.said() else "silent"
            text = ", ".join(f"{source.name} {each} on {source.topic}" for source, each in got)
            self.find("iv mix", f"{topics}, {zero}, {heard}", f"{text}: told {len(told)} velocities")
        if is_goal and len(limited) == 1 and not others and limited[0][1] != ZERO and self.goal_s < now_s - window:
            self.checks["iv goal and program"] += 1
            alien = [t for t in told if not self._same(t, limited[0][1])]
            if alien and not self.said(*words):
                kind = "reached" if self.is_reached else "under way"
                where = f"goal {kind}, {limited[0][0].topic}"
                text = f"{limited[0][0].name} {limited[0][1]}, {len(alien)} other velocities"
                self.find("iv goal and program", where, f"{text}, as {alien[0]}; followed: {bool(got)}")
        if not is_goal and len(limited) == 1 and not others and limited[0][1] != ZERO:
            self.checks["iv alone"] += 1
            alien = [t for t in self._velocities(SAID_S - 1.0) if not self._same(t, limited[0][1])]
            if alien and not self.said():
                text = f"{limited[0][0].name} {limited[0][1]} alone, told {alien[:3]}"
                self.find("iv alone", self._clock(limited[0][0]), text)

    def _left(self, for_s):
        """(vi): all have left: neutral, and a drone is down in the end."""
        vehicle = self._vehicle
        self.checks["vi left"] += 1
        if for_s > 3.0 and not vehicle.flies_by_goals and vehicle.is_moving and not self.is_landing(vehicle.told):
            self.find("vi left", "", f"told {vehicle.told}, {for_s:.1f} s after all have left")
        flies = vehicle.is_drone and not vehicle.stands and not self.is_by_person
        idle_s = min(for_s, self._life.now_s - max(self.resumed_s, self._home.asked_s), self._up_s)
        if flies and self._home.nature.calm_s > idle_s > vehicle.unattended_s + DOWN_S:
            self.find("vi lands", "", f"it flies, unattended for {idle_s:.0f} s")

    # Their means.

    def _is_connected(self):
        """Whether network, bridge and vehicle are undisturbed."""
        is_open = self._home.bridge.report.is_open and not self._home.bridge.report.is_silent
        return is_open and self._home.invariants.is_calm and self._up_s > self._vehicle.RECONNECTS_S

    def _same(self, one, other):
        step = self._vehicle.QUANTUM
        return all(abs(a - b) <= step + 0.02 * abs(b) for a, b in zip(one, other, strict=True))

    def _clock(self, source=None):
        ahead_s = (source or self.helm).offset_s
        kind = "clock ahead" if ahead_s > 0.1 else "clock behind" if ahead_s < -0.45 else "clock right"
        return kind + (", bridge disturbed" if source is None and self.was_disturbed else "")
