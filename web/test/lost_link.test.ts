// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { LostLink } from "../src/lost_link";

const AT_MS = new Date(2030, 0, 1, 22, 41).getTime();

test("the end of a launch or a server is reported as such, and not again as a lost connection", () => {
  const link = new LostLink();
  assert.equal(link.text, "");
  assert.equal(link.ageS(AT_MS), 0);
  link.lost(AT_MS, 1001, "The launch has ended.");
  link.lost(AT_MS + 60_000, 1006, "");
  assert.match(link.text, /launch has ended.*22:41/);
  assert.equal(link.ageS(AT_MS + 90_000), 90);
  link.found();
  assert.equal(link.text, "");
  link.lost(AT_MS, 1001, "");
  assert.match(link.text, /server has ended/);
});

test("a broken connection is reported with its time", () => {
  const link = new LostLink();
  link.lost(AT_MS, 1006, "");
  assert.match(link.text, /since 22:41/);
  assert.ok(link.ageS(AT_MS) > 0);
});
