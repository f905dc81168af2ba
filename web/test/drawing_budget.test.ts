// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { DrawingBudget } from "../src/drawing_budget";

const FRAME_MS = 1000 / 60;

/** Budget with a fake clock, and frames that pass under control of the test. */
function screen() {
  let nowMs = 0;
  const asked: (() => void)[] = [];
  const budget = new DrawingBudget(() => nowMs, (call) => asked.push(call));
  return {
    budget,
    spend: (ms: number) => { nowMs += ms; },
    /** Frames for a time, unless drawing takes longer; returns the share of the time spent on drawing. */
    run(forMs: number, each: () => void): number {
      const beganMs = nowMs;
      let drawnMs = 0;
      while (nowMs < beganMs + forMs) {
        each();
        const frameMs = nowMs;
        for (const call of asked.splice(0)) call();
        drawnMs += nowMs - frameMs;
        nowMs = Math.max(nowMs, frameMs + FRAME_MS);
      }
      return drawnMs / (nowMs - beganMs);
    },
  };
}

for (const costMs of [1, 10, 30, 200, 900]) {
  test(`drawing of ${costMs} ms each takes at most a third of the time`, () => {
    const { budget, spend, run } = screen();
    const scene = {}, plot = {};
    let scenes = 0, plots = 0;
    const share = run(60_000, () => {
      budget.request(scene, () => { scenes += 1; spend(costMs); });
      budget.request(plot, () => { plots += 1; spend(costMs); });
    });
    assert.ok(share < 0.36, `${share}`);
    assert.ok(share > 0.1, `${share}`);
    assert.ok(Math.abs(scenes - plots) <= 1, `${scenes} and ${plots}`);
  });
}

test("a fast drawing is drawn in each frame, in full resolution", () => {
  const { budget, spend, run } = screen();
  const scene = {};
  let drawn = 0;
  run(10_000, () => budget.request(scene, (scale) => { assert.equal(scale, 1); drawn += 1; spend(4); }));
  assert.ok(drawn >= 590, `${drawn}`);
});

test("a slow drawing gets fewer pixels, and all of them again when it is fast", () => {
  const { budget, spend, run } = screen();
  const scene = {};
  let cost = 200, scale = 1;
  const draw = () => budget.request(scene, (given) => { scale = given; spend(cost * given ** 2); });
  run(30_000, draw);
  assert.ok(scale < 0.5 && scale >= 0.25, `${scale}`);
  assert.ok(cost * scale ** 2 <= 33, `${scale}`);
  const settled = scale;
  run(60_000, draw);
  assert.equal(scale, settled);
  cost = 2;
  run(60_000, draw);
  assert.equal(scale, 1);
});

test("a charged drawing delays the others", () => {
  const { budget, spend, run } = screen();
  budget.charge(() => spend(300));
  let waitedMs = 0, hasDrawn = false;
  budget.request({}, () => (hasDrawn = true));
  while (!hasDrawn) waitedMs += (run(FRAME_MS, () => undefined), FRAME_MS);
  assert.ok(waitedMs >= 500, `${waitedMs}`);
});

test("of an owner's requests the newest is drawn, and an exception does not block other drawings", () => {
  const { budget, run } = screen();
  const drawn: string[] = [];
  const owner = {};
  budget.request(owner, () => drawn.push("old"));
  budget.request(owner, () => { drawn.push("new"); throw new Error("fault"); });
  budget.request({}, () => drawn.push("other"));
  assert.throws(() => run(FRAME_MS, () => undefined));
  run(5 * FRAME_MS, () => undefined);
  assert.deepEqual(drawn, ["new", "other"]);
});
