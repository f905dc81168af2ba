// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeldKeys, type Key } from "../src/held_keys";

const press = (code: string, more: Partial<Key> = {}): Key => ({ code, key: code, repeat: false, ctrlKey: false, altKey: false, metaKey: false, ...more });

test("a key is held from its press to its release", () => {
  const keys = new HeldKeys();
  assert.equal(keys.down(press("KeyW")), true);
  assert.equal(keys.down(press("KeyW", { repeat: true })), false);
  assert.deepEqual([...keys.codes], ["KeyW"]);
  assert.equal(keys.up(press("KeyW")), true);
  assert.deepEqual([...keys.codes], []);
});

for (const modifier of ["Meta", "Control", "Alt", "AltGraph", "Shift", "OS", "ContextMenu"]) {
  test(`${modifier} releases all keys, when it is pressed and when it is released`, () => {
    const keys = new HeldKeys();
    keys.down(press("KeyW"));
    keys.down(press("KeyA"));
    assert.equal(keys.down(press(`${modifier}Left`, { key: modifier })), true);
    assert.deepEqual([...keys.codes], []);
    // It is still down, and repeats.
    assert.equal(keys.down(press("KeyW", { repeat: true })), false);
    keys.down(press("KeyW"));
    assert.equal(keys.up(press(`${modifier}Left`, { key: modifier })), true);
    assert.deepEqual([...keys.codes], []);
  });
}

test("a key with a modifier that was pressed elsewhere releases all keys, and is ignored", () => {
  for (const flag of ["ctrlKey", "altKey", "metaKey"]) {
    const keys = new HeldKeys();
    keys.down(press("KeyW"));
    keys.down(press("KeyA", { [flag]: true }));
    assert.deepEqual([...keys.codes], []);
  }
});

test("a key that was held before counts only when it is pressed anew", () => {
  const keys = new HeldKeys();
  assert.equal(keys.down(press("KeyW", { repeat: true })), false);
  assert.deepEqual([...keys.codes], []);
  assert.equal(keys.down(press("KeyW")), true);
});
