# SPDX-License-Identifier: Apache-2.0
"""Acts: what people, programs and nature do in a life, one after another, by their own random numbers.

An act is a generator that yields the time to wait, s. Their number is limited, so that the shortest prefix of them that
still breaks an invariant can be found.
"""

import math
import random


class Acts:
    """All acts of a life, with their script."""

    def __init__(self, life, limit=None):
        self.rng, self.number, self.script = random.Random(f"{life.seed} acts"), 0, []
        #: Time of the newest line of the script.
        self.newest_s = life.now_s
        self._life, self._limit = life, math.inf if limit is None else limit

    @property
    def have_ended(self):
        return self.number >= self._limit

    def swarm(self, weights):
        """Return some of the acts, and some of them often: such mixes reach more states than a uniform one."""
        shares = {name: weight * self.rng.choice((0.0, 0.3, 1.0, 5.0)) for name, weight in weights.items()}
        return shares if any(shares.values()) else weights

    def begin(self, actor, text):
        """Note an act."""
        self.number += 1
        self.say(f"{self.number}. {actor} {text}")

    def say(self, text):
        self.newest_s, self._life.drowsy_s = self._life.now_s, 0.0
        self.script.append((self._life.lived_s, text))

    def play(self, act):
        """Execute an act beside others."""

        def step():
            delay_s = next(act, None)
            if delay_s is not None:
                self._life.after(delay_s, step)

        step()
