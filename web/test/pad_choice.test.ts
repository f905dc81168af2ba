// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { StopButtons, chosenPad, type Pad } from "../src/pad_choice";

const pad = (id: string, pressed = false, more: Partial<Pad> = {}): Pad =>
  ({ index: 0, id, mapping: "standard", axes: [0, 0, 0, 0], buttons: [{ pressed: false }, { pressed }], ...more });

test("STOP counts on every pad, once for each press", () => {
  const stop = new StopButtons();
  assert.equal(stop.look([pad("one"), pad("two")]), false);
  assert.equal(stop.look([pad("one"), pad("two", true)]), true);
  assert.equal(stop.look([pad("one"), pad("two", true)]), false);
  assert.equal(stop.look([pad("one", true), pad("two", true)]), true);
  assert.equal(stop.look([pad("one"), pad("two")]), false);
  assert.equal(stop.look([pad("one", true), pad("two")]), true);
});

test("a button that was never released is no press", () => {
  const stop = new StopButtons();
  assert.equal(stop.look([pad("stuck", true)]), false);
  assert.equal(stop.look([]), false);
  assert.equal(stop.look([pad("stuck", true)]), false);
  assert.equal(stop.look([pad("no buttons", false, { buttons: [] })]), false);
  stop.look([pad("stuck")]);
  assert.equal(stop.look([pad("stuck", true)]), true);
});

test("the steering pad is the chosen one, else one with known axes", () => {
  const [unknown, known, other] = [pad("unknown", false, { mapping: "" }), pad("known"), pad("other")];
  const isMapped = ({ mapping }: Pad): boolean => mapping === "standard";
  assert.equal(chosenPad([unknown, known, other], undefined, isMapped), known);
  assert.equal(chosenPad([unknown, known, other], "other", isMapped), other);
  assert.equal(chosenPad([unknown, known], "other", isMapped), known);
  assert.equal(chosenPad([unknown], undefined, isMapped), unknown);
  assert.equal(chosenPad([pad("a keyboard", false, { axes: [] })], undefined, isMapped), undefined);
});
