# SPDX-License-Identifier: Apache-2.0
"""Draw docs/architecture.svg: the programs around the topics, for each protocol. `make reference` runs it."""

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from drone_bridge.kind import OWN, ProtocolKind, kinds

PICTURE = Path(__file__).with_name("architecture.svg")
WIDTH, ROW, TOP = 960, 46, 58
BOX, HEIGHT = 176, 34
#: Left edges of the columns: machines, bridges, topics, servers, and old programs.
MACHINE, BRIDGE, TOPICS, SERVER, PROGRAM = 8, 200, 392, 584, 776
SHARED = ("cmd_vel", "odom, tf", "imu/data", "image_raw", "battery_state", "diagnostics")
USERS = ("controllers", "page, rviz2", "bags", "your nodes")


def picture() -> str:
    """Return the drawing as SVG, in colours that suit light and dark pages."""
    rows = [kind for kind in kinds().values() if kind.name in OWN]
    height = TOP + ROW * (len(rows) + 2)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
            'font-size="13" text-anchor="middle">',
            "<!-- SPDX-License-Identifier: Apache-2.0; drawn by docs/make_picture.py -->",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
            *_headings(),
            *(line for number, kind in enumerate(rows) for line in _row(TOP + ROW * number, kind)),
            *_topics(len(rows)),
            *_users(TOP + ROW * len(rows) + 22),
            "</svg>\n",
        )
    )


def _headings() -> Iterator[str]:
    columns = (
        (MACHINE, "your machine"),
        (BRIDGE, "bridges"),
        (TOPICS, "ROS 2 topics"),
        (SERVER, "servers"),
        (PROGRAM, "your old program"),
    )
    for left, text in columns:
        yield f'<text x="{left + BOX / 2}" y="30" font-weight="bold" fill="#333">{text}</text>'


def _row(top: float, kind: ProtocolKind) -> Iterator[str]:
    yield from _box(MACHINE, top, kind.title, "#eceff1")
    yield from _box(BRIDGE, top, f"{kind.name}_bridge", "#bbdefb")
    if kind.server:
        yield from _box(SERVER, top, f"{kind.name}_server", "#c8e6c9")
        yield from _box(PROGRAM, top, kind.operator_role.name, "#eceff1")
    for left in (MACHINE, BRIDGE, *((TOPICS, SERVER) if kind.server else ())):
        yield from _arrow(left + BOX, top + HEIGHT / 2)


def _topics(rows: int) -> Iterator[str]:
    height = ROW * rows - ROW + HEIGHT
    yield f'<rect x="{TOPICS}" y="{TOP}" width="{BOX}" height="{height}" rx="6" fill="#fff3c4" stroke="#b59b3a"/>'
    step = height / len(SHARED)
    for number, topic in enumerate(SHARED):
        y = TOP + step * (number + 0.5) + 5
        yield f'<text x="{TOPICS + BOX / 2}" y="{y:.1f}" fill="#333" font-family="monospace">{topic}</text>'


def _users(top: float) -> Iterator[str]:
    gap = (SERVER + BOX - BRIDGE) / len(USERS)
    for number, user in enumerate(USERS):
        yield from _box(BRIDGE + gap * number + (gap - 128) / 2, top, user, "#e1bee7", width=128)
    middle = TOPICS + BOX / 2
    yield f'<path d="M{middle} {top - 34}V{top - 2}m-4 -6l4 6l4 -6m-4 -20l-4 -6m4 6l4 -6" stroke="#555" fill="none"/>'


def _box(left: float, top: float, text: str, colour: str, *, width: float = BOX) -> Iterator[str]:
    yield f'<rect x="{left:g}" y="{top:g}" width="{width}" height="{HEIGHT}" rx="6" fill="{colour}" stroke="#78909c"/>'
    x, y = left + width / 2, top + HEIGHT / 2 + 4.5
    yield f'<text x="{x:g}" y="{y:g}" fill="#222">{escape(text)}</text>'


def _arrow(left: float, y: float) -> Iterator[str]:
    """Draw an arrow in both directions, in the gap between two columns."""
    yield f'<path d="M{left + 1:g} {y:g}h14m-5 -4l5 4l-5 4m-4 -8l-5 4l5 4" stroke="#555" fill="none"/>'


if __name__ == "__main__":
    PICTURE.write_text(picture())
