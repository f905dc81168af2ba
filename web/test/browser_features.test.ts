// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { areFinite, attempt, gamepads, mendLanguage, missing, storage } from "../src/browser_features";

const set = (name: string, descriptor: PropertyDescriptor): unknown => Object.defineProperty(globalThis, name, { configurable: true, ...descriptor });
const refused = (): never => { throw new DOMException("Access is denied.", "SecurityError"); };

afterEach(() => { for (const name of ["localStorage", "navigator"]) set(name, { value: undefined }); });

for (const [kind, descriptor] of Object.entries<PropertyDescriptor>({
  refused: { get: refused },
  missing: { value: null },
  "refused at each use": { value: { getItem: refused, setItem: refused, removeItem: refused } },
  full: { value: { getItem: () => null, setItem: refused, removeItem: () => undefined } },
})) {
  test(`where storage is ${kind}, settings last as long as the page`, () => {
    set("localStorage", descriptor);
    assert.equal(storage.get("theme"), undefined);
    storage.set("theme", '"dark"');
    assert.equal(storage.read("theme"), "dark");
    storage.remove("theme");
    assert.equal(storage.get("theme"), undefined);
    assert.ok(missing.sentences.some((sentence) => sentence.includes("Settings")));
  });
}

test("a stored value of another program is no setting", () => {
  for (const text of ["{", "null", "undefined"]) {
    set("localStorage", { value: { getItem: () => text } });
    assert.equal(storage.read("layers"), undefined);
  }
});

for (const [kind, navigator] of Object.entries<object | undefined>({
  "without the interface": {}, "that refuses it": { getGamepads: refused }, "with nothing at all": undefined, "without a list": { getGamepads: () => null },
})) {
  test(`a browser ${kind} has no gamepads`, () => {
    set("navigator", { value: navigator });
    assert.deepEqual(gamepads(), []);
    assert.ok(missing.sentences.some((sentence) => sentence.includes("gamepads")));
  });
}

test("only gamepads that are connected count", () => {
  set("navigator", { value: { getGamepads: () => [null, { connected: false }, undefined, { connected: true, id: "own" }] } });
  assert.deepEqual(gamepads().map(({ id }) => id), ["own"]);
});

test("each missing feature is reported once", () => {
  const before = missing.sentences.length;
  for (const _ of [1, 2]) attempt("Nothing", () => { throw new Error("it is a test."); }, undefined);
  assert.deepEqual(missing.sentences.slice(before), ["Nothing: it is a test."]);
});

for (const [language, wanted] of Object.entries({ "en-US@posix": "en", C: "en", "": "en", de: "de" })) {
  test(`with the language ${language}, numbers are formatted`, () => {
    set("navigator", { value: { language } });
    mendLanguage();
    assert.equal(navigator.language, wanted);
    assert.equal(new Intl.NumberFormat(navigator.language).format(1), "1");
  });
}

test("a transform with a number that is none is not drawn", () => {
  const rotation = { x: 0, y: 0, z: 0, w: 1 };
  assert.ok(areFinite({ x: 1, y: 2, z: 3 }, rotation));
  for (const value of [NaN, Infinity]) {
    assert.ok(!areFinite({ x: 1, y: value, z: 3 }, rotation));
    assert.ok(!areFinite({ x: 1, y: 2, z: 3 }, { ...rotation, w: value }));
  }
});
