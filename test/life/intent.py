# SPDX-License-Identifier: Apache-2.0
"""Intent: what a vehicle must be told, by the acts of people and programs alone. It reads nothing of the bridge."""

import math
from dataclasses import dataclass

from vehicle import ZERO

CMD_VEL, STAMPED, HELM = "cmd_vel", "cmd_vel_stamped", "~/helm"
#: Own constants of the contract: lifetime of a command, and of a silent helm, and time until a command is taken, s.
COMMAND_S, HELM_S, SAME_INSTANT_S, TAKEN_S = 0.5, 1.0, 0.01, 0.06


@dataclass
class Stream:
    """Newest command of a topic."""

    velocity: object = ZERO
    last_s: float = -math.inf


class Intent:
    """Hold, helm, and the newest commands. `held` is None while it is unknown, as an act was not answered."""

    def __init__(self, life):
        self._life = life
        self.held, self.is_helm_taken, self.is_by_person = False, False, False
        self.streams = {topic: Stream() for topic in (CMD_VEL, STAMPED, HELM)}
        #: Whether a goal may command the vehicle.
        self.is_goal_open = False
        self._answer, self._since_s, self._held_s = ZERO, -math.inf, math.inf

    def command(self, topic, velocity):
        """Note a valid command."""
        self.wanted()  # until now
        self._life.drowsy_s = 0.0
        left_s = self.streams[STAMPED].last_s + COMMAND_S - self._life.now_s
        if topic == CMD_VEL and left_s > TAKEN_S:
            return  # overruled
        if topic == CMD_VEL and left_s > SAME_INSTANT_S:
            velocity = None  # overruled, unless it is taken only once the other one has expired
        self.streams[topic] = Stream(velocity, self._life.now_s)
        if topic == HELM and self.held is not None:
            self.is_helm_taken = self.is_helm_taken or not self.held
        self.wanted()

    def hold(self, held, *, by_person=False):
        """Note a hold, a resume, or an act without an answer. A drone that a person holds does not land by itself."""
        self.is_by_person = by_person
        is_at_helm = self.is_helm_taken and self._life.now_s - self.streams[HELM].last_s <= HELM_S
        was_held, self.held, self.is_helm_taken = self.held, held, not held and is_at_helm
        self._life.drowsy_s = 0.0
        if was_held and held is False:
            for topic in (CMD_VEL, STAMPED):  # a release drops the commands from before it
                self.streams[topic].last_s = -math.inf
        self._since_s = self._held_s = self._life.now_s

    @property
    def is_commanded(self):
        """Whether there is a command now, even of zero."""
        return not self.held and self.uncommanded_s <= 0.0

    @property
    def uncommanded_s(self):
        """How long there has been no command, not even of zero, s; negative during one."""
        if self.held:
            return self.held_for_s
        return self._life.now_s - max(each.last_s for each in self.streams.values()) - COMMAND_S

    @property
    def held_for_s(self):
        """How long it has certainly been held, s."""
        return self._life.now_s - self._held_s if self.held else 0.0

    @property
    def is_helm_ending(self):
        """Whether the helm may end about now, so that the effect of a resume is not certain."""
        left_s = self.streams[HELM].last_s + HELM_S - self._life.now_s
        return abs(left_s) < 0.1 if self.is_helm_taken else self.held is None and left_s > -0.1

    def lose_helm(self):
        """Note that the bridge may not know the helm: it has stalled, or started anew."""
        if self.is_helm_taken:
            self.held, self.is_helm_taken = None, False

    def wanted(self):
        """Return what the vehicle must be told, and for how long that has been so, s; None if it is not certain."""
        if (answer := self._wanted()) != self._answer:
            self._answer, self._since_s = answer, self._life.now_s
        return answer, self._life.now_s - self._since_s

    def _wanted(self):
        now_s = self._life.now_s
        age_s = {topic: now_s - each.last_s for topic, each in self.streams.items()}
        if self.is_helm_taken and age_s[HELM] > HELM_S:
            self.held, self.is_helm_taken, self.is_by_person, self._held_s = True, False, False, now_s
        if self.held is not False:
            return ZERO if self.held else None
        if self.is_helm_taken:
            return self.streams[HELM].velocity if age_s[HELM] <= COMMAND_S else ZERO
        for topic in (STAMPED, CMD_VEL):
            if topic == CMD_VEL and self.is_goal_open:
                return None  # the controller commands, too
            if age_s[topic] <= COMMAND_S:
                return self.streams[topic].velocity
        return ZERO
