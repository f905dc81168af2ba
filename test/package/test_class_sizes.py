# SPDX-License-Identifier: Apache-2.0
"""Sizes of the package's classes: nobody can hold, or check, one with too many attributes or lines."""

import ast

from architecture import MODULES

MOST_ATTRIBUTES, MOST_LINES = 16, 300
#: Larger classes, by subject. One that has shrunk below the limits is taken out; none comes in without a reason.
DECLARATIONS = {"SeekParameters", "ProtocolKind", "Measurement", "Robot"}
PHYSICS = {"ArDroneFlight", "EmulatedArdrone", "EmulatedBody", "SeekTarget", "TiltControl", "VelocityControl"}
KITS = {
    "LinkLoop",
    "WireLog",
    "CameraTopics",
    "ProtocolNode",
    "Vehicle",
}
TOOLS = {"RecordingView", "WebBridge", "Replay"}
LARGER = DECLARATIONS | PHYSICS | KITS | TOOLS


def attributes(node):
    """Return the attributes that a class gives itself, also the fields of a dataclass."""
    fields = {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
    stored = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return fields | {each.attr for each in stored if ast.unparse(each.value) == "self"}


def inherited(node, by_name):
    """Return the attributes of the bases of a class, as far as the package has them."""
    bases = [by_name[name] for base in node.bases if (name := ast.unparse(base).partition("[")[0]) in by_name]
    return {name for base in bases for name in attributes(base) | inherited(base, by_name)}


def test_classes_are_small_but_for_named_ones():
    nodes = [
        node for path in MODULES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    ]
    by_name = {node.name: node for node in nodes}
    larger = {}
    for node in nodes:
        size = len(attributes(node) - inherited(node, by_name)), node.end_lineno - node.lineno + 1
        if size[0] > MOST_ATTRIBUTES or size[1] > MOST_LINES:
            larger[node.name] = size
    assert larger.keys() == LARGER, larger
