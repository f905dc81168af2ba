# SPDX-License-Identifier: Apache-2.0
"""Record: the end of a life for people: acts, log, and what the vehicle was told."""

import itertools

#: Time that is told, s.
KEPT_S = 120.0


def told(home):
    """Return the last two minutes of a life, a line for each act, log line, and change of what the vehicle was told."""
    since_s = home.life.lived_s - KEPT_S
    events = [
        *((at_s, 0, f"ACT   {text}") for at_s, text in home.acts.script),
        *((at_s, 1, f"LOG   {level}: {line}") for at_s, level, line in home.lines),
        *((at_s, 2, f"WIRE  {text}") for at_s, text in home.vehicle.wire_log),
    ]
    kept = sorted(each for each in events if each[0] >= since_s)
    lines = []
    for text, group in itertools.groupby(kept, key=lambda each: each[2]):
        (at_s, *_), *others = group
        lines.append(f"{at_s:10.3f} {text[:300]}" + (f"  (and {len(others)} more)" if others else ""))
    return "\n".join(lines)
