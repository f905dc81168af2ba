# SPDX-License-Identifier: Apache-2.0
"""DuplicateNodes: other runs of a node's full name on the network, by their signs of life; which gives way. Pure.

Two bridges of one name drive two vehicles by the same commands. On one machine the later one waits for the lock of the
name. Across machines each run publishes `~/hold_status` every second, and decides by those of the others:

| this run | the other run, if active | then |
|---|---|---|
| in its first SETTLED_S | is past them, or has the lesser id | this one gives way, until the other is inactive |
| in its first SETTLED_S | in its own, with the greater id | the other one gives way |
| past its first SETTLED_S | any, such as after an outage of the network | both go on, and warn |

A run that gives way is not resumed by silence: the other one may only be out of reach.
"""

#: Time in which a run gives way, and that for which a sign of life is valid, s.
SETTLED_S = SIGN_S = 3.0
MAX_RUNS = 16


class DuplicateNodes:
    """Other runs of one node's name. For one thread, but `count` and `first` for any."""

    def __init__(self, run: str, now_s: float) -> None:
        """`run` is the id of this run, which starts now."""
        self._run, self._settled_at = run, now_s + SETTLED_S
        self._seen: dict[str, float] = {}  # times of the last signs, by run; replaced
        #: Id of the active run to which this one has given way; empty for none.
        self.first = ""

    def is_settled(self, now_s: float) -> bool:
        """Return whether this run is past its first SETTLED_S."""
        return now_s >= self._settled_at

    def sign(self, run: str, now_s: float, *, is_active: bool, is_settled: bool) -> bool:
        """Record a sign of life of a run, and return whether this one gives way to it."""
        if run == self._run:
            return False
        self._seen = dict([*self._seen.items()][-MAX_RUNS:]) | {run: now_s}
        if is_active and not self.is_settled(now_s) and (is_settled or run < self._run):
            self.first = run
            return True
        if run == self.first and not is_active:
            self.first = ""
            self._seen = {each: at for each, at in self._seen.items() if each != run}  # its farewell
        return False

    def count(self, now_s: float) -> int:
        """Return the number of runs with a sign of life in the last SIGN_S, with this one."""
        return 1 + sum(now_s - at < SIGN_S for at in self._seen.values())
