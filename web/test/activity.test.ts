// SPDX-License-Identifier: Apache-2.0
// What a vehicle does and by whose commands, of which only those that arrive are certain.
import assert from "node:assert/strict";
import test from "node:test";
import { Activity } from "../src/activity";
import type { Vehicle } from "../src/helm";
import type { Message, Stream } from "../src/stream";

/** Return the words for a vehicle by its topics, the newest message of each, and the commands per second. */
function words(vehicle: Partial<Vehicle> | undefined, rate: number, messages: Record<string, Message> = {}, isHeld = false): string[] {
  const subscribe = (topic: string, listener: Function): (() => void) => (topic in messages && listener({ value: messages[topic], timeS: 0 }), () => undefined);
  const stream = { isRecording: !vehicle, nowS: 0.5, subscribe, silentS: () => 0 } as unknown as Stream;
  const activity = new Activity(stream);
  const types = new Map(Object.keys(messages).map((topic) => [topic.slice(1), topic.endsWith("/state") ? "drone_bridge/msg/ControllerState" : ""]));
  activity.follow({ prefix: "/", name: "" }, types);
  return activity.doing(vehicle as Vehicle | undefined, isHeld, rate).slice(1, 3) as string[];
}

const state = (state: string): Record<string, Message> => ({ "/drone_controller/state": { behaviour: "land_on_pad", state, reason: "It is late." } });

for (const [name, seen, text] of [
  ["one of two nodes", words({ commanders: ["driver", "rover_controller"] }, 20), ["Commanded", "by driver or rover_controller"]],
  ["none of two nodes", words({ commanders: ["driver", "rover_controller"] }, 0), ["Idle", "no commands from driver or rover_controller"]],
  ["a node of which nothing is known", words({ commanders: ["driver"] }, NaN), ["Unknown", "driver may command it"]],
  ["a controller", words({ commanders: ["driver", "drone_controller"] }, 20, state("approaching")), ["land on pad: approaching", "It is late (drone_controller)"]],
  ["a node beside an idle controller", words({ commanders: ["driver", "drone_controller"] }, 20, { ...state("idle"), "/flying": { data: true } }), ["Flying", "by driver or drone_controller"]],
  ["an idle controller", words({ commanders: ["drone_controller"] }, 0, { ...state("idle"), "/landed": { data: true } }), ["Landed", "no commands from drone_controller"]],
  ["nobody while it is held", words({ commanders: ["a", "b"] }, 20, state("approaching"), true), ["On hold", "a and b are ignored until Resume"]],
  ["another person", words({ commanders: ["a"], pilot: "other", pilot_name: "Anne" }, 20, state("approaching")), ["Steered by Anne", "a is overruled, land on pad: approaching"]],
  ["a node whose name was not recorded", words(undefined, 20), ["Unknown", "by recorded commands"]],
  ["a person in a recording", words(undefined, 20, { ...state("approaching"), "/robot_bridge/helm": {} }), ["Steered", "by a person at the helm"]],
] as const) test(`a vehicle is commanded by ${name}`, () => assert.deepEqual(seen, text));
