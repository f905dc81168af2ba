# SPDX-License-Identifier: Apache-2.0
"""Intent: what a vehicle must be told, by the acts of people and programs alone. It reads nothing of the bridge."""

import math

from vehicle import ZERO

CMD_VEL, STAMPED, HELM = "cmd_vel", "cmd_vel_stamped", "~/helm"
#: Own constant of the contract: lifetime of a command, s.
COMMAND_S = 0.5


class Intent:
    """Hold, and the newest command. `held` is None while it is unknown, as an act was not answered."""

    def __init__(self, life):
        self._life = life
        self.held, self.is_by_person = False, False
        self._velocity, self._commanded_s = ZERO, -math.inf
        #: Whether a goal may command the vehicle.
        self.is_goal_open = False
        self._answer, self._since_s, self._held_s = ZERO, -math.inf, math.inf

    def command(self, velocity):
        """Note a valid command."""
        self.wanted()  # until now
        self._life.drowsy_s = 0.0
        self._velocity, self._commanded_s = velocity, self._life.now_s
        self.wanted()

    def hold(self, held, *, by_person=False):
        """Note a hold, a resume, or an act without an answer. A drone that a person holds does not land by itself."""
        self.is_by_person = by_person
        was_held, self.held = self.held, held
        self._life.drowsy_s = 0.0
        if was_held and held is False:  # a release drops the commands from before it
            self._commanded_s = -math.inf
        self._since_s = self._held_s = self._life.now_s

    @property
    def is_commanded(self):
        """Whether there is a command now, even of zero."""
        return not self.held and self.uncommanded_s <= 0.0

    @property
    def uncommanded_s(self):
        """How long there has been no command, not even of zero, s; negative during one."""
        return self.held_for_s if self.held else self._life.now_s - self._commanded_s - COMMAND_S

    @property
    def held_for_s(self):
        """How long it has certainly been held, s."""
        return self._life.now_s - self._held_s if self.held else 0.0

    def wanted(self):
        """Return what the vehicle must be told, and for how long that has been so, s; None if it is not certain."""
        if (answer := self._wanted()) != self._answer:
            self._answer, self._since_s = answer, self._life.now_s
        return answer, self._life.now_s - self._since_s

    def _wanted(self):
        if self.held is not False:
            return ZERO if self.held else None
        if self.is_goal_open:
            return None  # the controller commands, too
        return self._velocity if self._life.now_s - self._commanded_s <= COMMAND_S else ZERO
