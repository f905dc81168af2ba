// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Departure } from "../src/departure";

test("a vehicle whose bridge has ended is landed or stopped, with an age", () => {
  const departure = new Departure();
  assert.deepEqual([departure.text, departure.ageS(5000)], ["", 0]);
  departure.left(1000, "Landed", false);
  departure.left(3000, "", true);
  assert.deepEqual([departure.text, departure.ageS(5000)], ["Landed", 4]);
  departure.came();
  assert.deepEqual([departure.text, departure.ageS(5000)], ["", 0]);
  departure.left(6000, "Flying at 0.5 m/s", false);
  assert.equal(departure.text, "Stopped");
});

test("the motion of a vehicle whose bridge was silent before is not reported", () => {
  const departure = new Departure();
  departure.left(1000, "Landed", true);
  assert.equal(departure.text, "Gone");
});
