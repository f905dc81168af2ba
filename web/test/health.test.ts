// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Health, LEVELS, worstFirst, type Level } from "../src/health";
import type { Helm } from "../src/helm";
import type { Stream } from "../src/stream";

test("a source that is silent is named before a warning of another", () => {
  const sources = LEVELS.map((level): [string, { level: Level }] => [`of ${level}`, { level }]);
  assert.deepEqual(worstFirst(sources).map(([name]) => name), ["of error", "of stale", "of warn"]);
});

/** What Health needs of an element. */
class Fake {
  children: unknown[] = [];
  textContent = "";
  className = "";
  classList = { add: (...names: string[]): void => void (this.className = names.join(" ")) };
  setAttribute = (): void => undefined;
  hasChildNodes = (): boolean => this.children.length > 0;
  append = (...added: unknown[]): void => void this.children.push(...added);
  replaceChildren = (...added: unknown[]): void => void (this.children = added);
  /** The text of the elements of a class inside. */
  of(name: string): string {
    return (this.className === name ? this.textContent : "") + this.children.map((each) => (each instanceof Fake ? each.of(name) : "")).join("");
  }
}

/** Statuses of a bridge, from test_units.py: each has one obstacle of the table. */
const { DIAGNOSTICS } = process.env;

test("each obstacle is named once its diagnostics arrive", { skip: !DIAGNOSTICS }, (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  Object.assign(globalThis, { document: { createElement: () => new Fake() } });
  const rows = JSON.parse(readFileSync(DIAGNOSTICS!, "utf8")) as { obstacle: string; sentence: string; status: object }[];
  assert(rows.length > 40);
  for (const { obstacle, sentence, status } of rows) {
    let report: (arrival: object) => void = () => undefined;
    const subscribe = (_: string, listener: typeof report): void => void (report = listener);
    const stream = Object.assign(new EventTarget(), { status: "open", isRecording: false, subscribe });
    const health = new Health(stream as unknown as Stream, { silentSeconds: 0 } as Helm);
    report({ value: { status: [status] } });
    assert(health.verdict.text.includes(sentence), `${obstacle}: ${health.verdict.text}`);
    assert((health.element as unknown as Fake).of("message").includes(sentence), obstacle);
    assert.notEqual(health.verdict.level, "ok", obstacle);
  }
});
