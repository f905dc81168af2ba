# SPDX-License-Identifier: Apache-2.0
"""HoldState: hold and helm of a vehicle, row by row of the state's table."""

import math

import pytest

from drone_bridge.session.hold_state import (
    AT_HELM,
    CALLED,
    HELM_ENDED,
    HELM_ENDS_AFTER_S,
    NOBODY,
    HelmPilot,
    HoldState,
    InControl,
)

LATER_S = HELM_ENDS_AFTER_S + 0.01


def seen(state, now_s):
    """Return who is in control, the reason of a hold, and whether other commands than the helm's are accepted."""
    return state.control(now_s), state.reason(now_s), state.is_free


FREE, AT_THE_HELM = (InControl.FREE, "", True), (InControl.HELM, "", False)
HELD, HELD_BY_THE_HELM = (InControl.HELD_BY_MACHINE, CALLED, False), (InControl.HELD_BY_MACHINE, HELM_ENDED, False)
PRESSED = "Anne pressed STOP"
HELD_BY_PERSON = InControl.HELD_BY_PERSON, PRESSED, False


def test_the_initial_state_is_free_unless_it_was_on_hold_before():
    assert seen(HoldState(), 0.0) == FREE
    assert seen(HoldState(CALLED), 0.0) == HELD


def test_a_hold_lasts_until_it_is_released():
    state = HoldState()
    assert state.hold(CALLED)
    assert seen(state, 1e6) == HELD
    assert not state.hold(CALLED)
    state.release(1e6)
    assert seen(state, 1e6) == FREE


def test_a_helm_excludes_others_and_its_timeout_holds():
    state = HoldState()
    assert state.steer(10.0)
    assert seen(state, 10.0 + HELM_ENDS_AFTER_S) == AT_THE_HELM
    assert not state.steer(10.5)  # the same person
    assert seen(state, 10.5 + HELM_ENDS_AFTER_S) == AT_THE_HELM
    assert not state.end_helm(10.5 + HELM_ENDS_AFTER_S)
    assert seen(state, 10.5 + LATER_S) == seen(state, 8 * 3600.0) == HELD_BY_THE_HELM  # before it was detected
    assert state.end_helm(10.5 + LATER_S)
    assert not state.end_helm(10.5 + LATER_S)
    assert seen(state, 1e6) == HELD_BY_THE_HELM


@pytest.mark.parametrize("is_noticed", [True, False])
@pytest.mark.parametrize("by_helm", [True, False])
def test_after_its_timeout_a_helm_may_be_taken_again_or_released_like_a_hold(by_helm, is_noticed):
    state = HoldState()
    state.steer(10.0)
    if is_noticed:
        state.end_helm(20.0)
    assert by_helm is bool(state.steer(20.0) if by_helm else state.release(20.0))
    assert seen(state, 20.0) == (AT_THE_HELM if by_helm else FREE)


def test_the_helm_may_be_retaken_after_the_process_was_killed():
    state = HoldState(AT_HELM)
    assert seen(state, 0.0) == (InControl.HELD_BY_MACHINE, AT_HELM, False)
    assert state.steer(0.0)
    assert seen(state, 0.0) == AT_THE_HELM
    assert state.attended_s == 0.0


@pytest.mark.parametrize("steered_s", [10.1, 20.0])
def test_a_requested_hold_outlasts_a_helm_until_it_is_released(steered_s):
    state = HoldState()
    state.steer(10.0)
    assert state.hold(CALLED)
    assert seen(state, 10.0) == HELD
    assert not state.steer(steered_s)
    assert seen(state, steered_s) == HELD
    state.release(steered_s + 0.1)
    assert seen(state, steered_s + 0.1) == AT_THE_HELM  # without others in between


ANNE, BEN = HelmPilot("1", "Anne"), HelmPilot("2", "Ben")


@pytest.mark.parametrize("reason", ["", CALLED])
def test_a_vehicle_has_one_pilot_until_the_helm_has_ended(reason):
    state = HoldState(reason)
    assert state.claim(ANNE, 10.0)
    assert state.pilot(10.0) == NOBODY
    state.steer(10.0)
    assert not state.claim(BEN, 10.0 + HELM_ENDS_AFTER_S)
    assert state.pilot(10.0 + HELM_ENDS_AFTER_S) == ANNE
    assert state.claim(HelmPilot("1", "Anna"), 10.5)  # another person of the same page server
    assert state.pilot(10.5) == ("1", "Anna")
    assert state.pilot(10.0 + LATER_S) == NOBODY
    assert state.claim(BEN, 10.0 + LATER_S)
    state.steer(12.0)
    assert state.pilot(12.0) == BEN
    state.hold(PRESSED)
    assert state.claim(ANNE, 12.0)  # a STOP ends any helm


def test_the_timeout_of_a_helm_during_a_hold_changes_nothing():
    state = HoldState(CALLED)
    assert not state.steer(10.0)
    assert not state.end_helm(20.0)
    assert seen(state, 20.0) == HELD
    state.release(20.0)
    assert seen(state, 20.0) == FREE


def test_a_repeated_hold_clears_the_helm_whose_timeout_then_does_not_hold():
    state = HoldState(CALLED)
    state.steer(10.0)
    assert not state.hold(CALLED)
    state.release(10.1)
    assert seen(state, 10.1) == seen(state, 20.0) == FREE


@pytest.mark.parametrize("before", ["", HELM_ENDED])
def test_a_refused_command_takes_the_helm_but_does_not_attend(before):
    state = HoldState(before)
    assert state.steer(10.0, "its clock is wrong")
    assert seen(state, 10.0) == (InControl.REFUSED_HELM, "", False)
    assert state.attended_s == -math.inf
    assert not state.steer(10.5)
    assert (seen(state, 10.5), state.attended_s) == (AT_THE_HELM, 10.5)
    assert not state.steer(11.0, "its clock is wrong")
    assert (state.control(11.0), state.attended_s) == (InControl.REFUSED_HELM, 10.5)
    assert seen(state, 11.0 + LATER_S) == HELD_BY_THE_HELM


@pytest.mark.parametrize("before", [CALLED, AT_HELM])
def test_a_hold_by_a_person_replaces_one_by_a_machine_and_never_the_reverse(before):
    state = HoldState(before)
    assert state.hold(PRESSED)
    assert not state.hold("Ben pressed STOP")
    assert not state.hold(CALLED)
    assert not state.steer(10.0)
    assert not state.end_helm(20.0)
    assert seen(state, 20.0) == HELD_BY_PERSON


def test_a_person_attends_at_the_helm_in_control_and_by_a_resume():
    state = HoldState()
    for now_s in (10.0, 10.5):
        state.steer(now_s)
        assert state.attended_s == now_s
    state.hold(CALLED)
    state.steer(11.0)
    assert state.attended_s == 10.5
    state.release(12.0)
    assert state.attended_s == 12.0


def test_a_vehicle_that_may_have_been_held_before_waits_for_a_person():
    state = HoldState("its file can't be read")
    assert not state.steer(10.0)
    assert not state.hold(CALLED)
    assert seen(state, 10.0) == (InControl.HELD_BY_PERSON, "its file can't be read", False)
    state.release(12.0)
    assert seen(state, 12.0) == FREE
