# SPDX-License-Identifier: Apache-2.0
"""Obstacle: what keeps a vehicle from moving, or data from coming, with its sentence and its remedy. Pure.

Log, diagnostics, the page, `drone-bridge doctor`, `Vehicle`, services and goals take their words from this table, and
docs/reference/obstacles.md is generated from it. Where several obstacles are found, they are named in the order of the
table: what breaks the path of a command is nearest to the start of its way, so that curing a later one changes nothing.
"""

from enum import Enum, unique


@unique
class Obstacle(Enum):
    """Row of the table: the reason, with its facts in braces, and the remedy. Both are clauses without a full stop."""

    # Programs and nodes don't find each other.
    DISCOVERY = (
        "{variable} is {value}: nodes find {found}",
        "unset {variable} in every shell, then start all nodes again",
    )
    NODE_NAME = (
        "{number} nodes are named {name}",
        "end one of them, or give it a name or a namespace of its own",
    )
    GAVE_WAY = (
        "another active node is named {name}, and was before this one",
        "end it, or give it a name or a namespace of its own; if it was killed, or is out of reach, restart this one",
    )
    SHARED = (
        "{vehicles} follow the same {topic}",
        "end all but one, or start each with namespace:=NAME of its own",
    )
    CLOCK = "/clock is published by {nodes}", "set publish_clock to false in all nodes but one"
    SECOND_ODOMETRY = (
        "{topic} is published by {nodes}",
        "let one of them use another topic",
    )
    SECOND_TRANSFORM = (
        "the transform of {frame} is published on /tf by this node, and by another: {nodes}",
        "set publish_tf:=false beside a filter (EKF) or SLAM; give each vehicle a frame_prefix of its own",
    )
    NO_TIME = (
        "use_sim_time is true and no time comes on /clock: all stamps are 0",
        "play with --clock, start the simulation, or set use_sim_time to false",
    )
    INACTIVE = "this node is not active", "its log has the reason; otherwise activate it"
    # There is no link.
    OWN_ADDRESS = (
        "{address}, on which it listens, is no longer an address of this machine",
        "give the machine this address, or start again with its new one, or with 0.0.0.0 for all of them",
    )
    PORT_IN_USE = "{address} is in use by {users}", "end that program, or choose another by {argument}"
    DENIED = (
        "{path} can't be opened: it belongs to the group {group}, and this process is not in it",
        "run `sudo usermod -aG {group} $USER`, then log in again",
    )
    NO_DEVICE = (
        "{path} does not exist; serial devices are: {found}",
        "connect it, or name another; if it disappears at once, run `sudo apt remove brltty`",
    )
    UNREACHABLE = "there is no link: {problem}", "switch the peer on, or name its address"
    DISCONNECTED = "no peer is connected", "switch it on, or name its address"
    # The link carries nothing useful.
    NO_PACKET = (
        "{link}: {rate} are no packet: {sample}: {reason}",
        "compare the baud rate and the kind of robot with those of the peer",
    )
    UNGREETED = (
        "{peer} does not answer {step} of the handshake as expected: {sent}",
        "remove what it reports, or compare handshake() of its class",
    )
    UNANSWERED = (
        "{step} of the handshake was sent {number} times to {peer}, and nothing came back",
        "switch it on, and compare its address or serial line, its baud rate, and handshake() of its class",
    )
    BLOCKED = "{peer} answers, but none of its reports reaches UDP port {ports}", "allow it in this machine's firewall"
    NO_REPORT = "{peer} sends packets, but no report: {reason}", "let decode_report() return Telemetry for each report"
    UNSENT = (
        "no report has had a value for {topics}",
        "let decode_report() return one, or leave it out of the class's topics",
    )
    SILENT = "{peer} has been silent for {silence}", "restart it once it stands, if it stays silent"
    SILENT_IN_FLIGHT = (
        "{peer} has been silent for {silence}, and last reported that it flies",
        "keep clear of it, bring this machine nearer, and restart nothing before it stands",
    )
    NO_VIDEO = "no video comes from {peer}", "{advice}"
    # The vehicle must not move, or does not.
    HOLD = "holding: {reason}", "run `drone-bridge resume`, or press Resume on the page, to let it follow commands"
    HELM = "a person is at the helm", "release the helm on the page, then press Resume there"
    DISOBEYS = "the robot does not obey: {reason}", "remove the cause, then resume it: only that greets it again"
    GROUNDED = "the drone is on the ground", "take off first: press Takeoff on the page, or call take_off"
    LANDING = "it lands {when}, as {cause}: {prevention}", "keep clear of it"
    UNABLE_TO_LAND = "it has to land and can't be commanded to, {reason}", "land it by hand"
    BATTERY = "the battery has less than {charge} left (limits.low_battery)", "charge it, and land first if it flies"
    UNREPORTED = (
        "{limits} the vehicle's {missing}, not reported so far: it gets no velocities",
        "set the limit to 0 for a vehicle that never reports it",
    )
    ODOMETRY = (
        "{limits} odometry, and the vehicle's {reason}: it gets {allowed}",
        "take the helm, or wait for the landing",
    )
    FENCE = (
        "limits.fence_radius is uncertain: {reason}",
        "to set it anew, clean up and configure the bridge",
    )
    # Commands or measurements contradict each other, or come too late.
    COMMANDERS = (
        "{nodes} send commands on {topic} at the same time",
        "end all but one: a program that was left open, such as a teleop, stops the vehicle again and again",
    )
    OTHER_TYPE = (
        "{topic} has type {followed} here; no command passes between it and {ignored}",
        "end the others, or let all use one type",
    )
    OVERRULED = "{topic} is ignored while commands come on {other}", "end one of the programs"
    UNFOLLOWED = "nothing is followed of a command with {wanted}: {reason}", "{advice}"
    NO_SUBSCRIBER = (
        "nothing subscribes to {topics}, so the operator's commands move no vehicle",
        "start the vehicle's node, or remap its topic",
    )
    INCOMPATIBLE = "{topic} does not fit {node}: {problem}", "let both use one type, and a compatible QoS"
    SELDOM = (
        "a command comes on {topic} every {gap}, and the vehicle stops after {timeout} without one (command_timeout)",
        "publish 10 or 20 per second: with `drone-bridge topic pub`, by `-r 20`",
    )
    SLOW_METHOD = "{method}() took {took}, and has {limit}", "let it return at once, and wait in a thread of its own"
    STALLED = "this process was stalled (machine overloaded?)", "run less on this machine"
    DOUBT = "{doubts}", "{advice}"
    DRIFT = (
        "commands have stopped, and this drone drifts",
        "it holds its position once it reports a plausible velocity",
    )

    def __init__(self, reason: str, remedy: str) -> None:
        self._reason, self._remedy = reason, remedy
        #: Key of the condition in diagnostics.
        self.key = self.name.lower()
        #: Place in the order in which obstacles are named.
        self.rank = len(type(self).__members__)

    def reason(self, **facts: object) -> str:
        """Return why nothing happens, a clause. Without facts, their names are in braces."""
        return self._reason.format_map(_Facts(facts))

    def remedy(self, **facts: object) -> str:
        """Return what to do, a clause."""
        return self._remedy.format_map(_Facts(facts))

    def sentence(self, **facts: object) -> str:
        """Return reason and remedy as one sentence."""
        return f"{self.reason(**facts)}: {self.remedy(**facts)}."


class _Facts(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"
