// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { LEVELS, worstFirst, type Level } from "../src/health";

test("a source that is silent is named before a warning of another", () => {
  const sources = LEVELS.map((level): [string, { level: Level }] => [`of ${level}`, { level }]);
  assert.deepEqual(worstFirst(sources).map(([name]) => name), ["of error", "of stale", "of warn"]);
});
