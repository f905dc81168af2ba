// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { NeutralGate } from "../src/neutral_gate";

test("a lever that was left halfway counts only once it has been at neutral", () => {
  const gate = new NeutralGate<string>();
  assert.equal(gate.pass("z", "pad 5", 0.5), 0);
  assert.equal(gate.pass("z", "pad 5", 0.7), 0);
  assert.deepEqual(gate.closed, ["z"]);
  assert.equal(gate.pass("z", "pad 5", 0), 0);
  assert.equal(gate.pass("z", "pad 5", 0.7), 0.7);
  assert.deepEqual(gate.closed, []);
});

test("each input has its own gate", () => {
  const gate = new NeutralGate<string>();
  gate.pass("x", "pad 3", 0);
  assert.equal(gate.pass("z", "pad 5", -1), 0);
  assert.equal(gate.pass("x", "pad 3", 1), 1);
});

test("another pad, axis or direction must return to neutral, and so must all when the helm is taken", () => {
  const gate = new NeutralGate<string>();
  for (const source of ["one 3", "two 3", "two 2", "two 2 reversed", "one 3"]) {
    assert.equal(gate.pass("x", source, 0.5), 0);
    gate.pass("x", source, 0);
    assert.equal(gate.pass("x", source, 0.5), 0.5);
  }
  gate.close();
  assert.equal(gate.pass("x", "one 3", 0.5), 0);
});
