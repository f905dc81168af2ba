// SPDX-License-Identifier: Apache-2.0
// What a vehicle does and by whose commands, of which only those that arrive are certain.
import assert from "node:assert/strict";
import test from "node:test";
import { Activity } from "../src/activity";
import type { Vehicle } from "../src/helm";
import type { Message, Stream } from "../src/stream";

/** Return the words for a vehicle by its topics, and the newest message of each. */
function words(vehicle: Partial<Vehicle> | undefined, messages: Record<string, Message> = {}, isHeld = false): string[] {
  const subscribe = (topic: string, listener: Function): (() => void) => (topic in messages && listener({ value: messages[topic], timeS: 0 }), () => undefined);
  const stream = { isRecording: !vehicle, subscribe, silentS: () => 0 } as unknown as Stream;
  const activity = new Activity(stream);
  const types = new Map(Object.keys(messages).map((topic) => [topic.slice(1), topic.endsWith("/state") ? "drone_bridge/msg/ControllerState" : topic.endsWith("/hold_status") ? "drone_bridge/msg/HoldStatus" : ""]));
  activity.follow({ prefix: "/", name: "" }, types);
  return activity.doing(vehicle as Vehicle | undefined, isHeld).slice(1, 3) as string[];
}

const state = (state: string): Record<string, Message> => ({ "/drone_controller/state": { behaviour: "land_on_pad", state, reason: "It is late." } });
const status = (commander: string, pilot_name = ""): Record<string, Message> => ({ "/dronegui_bridge/hold_status": { commander, pilot_name } });
const commanders = { "/cmd_vel": ["driver", "teleop"], "/cmd_vel_goal": ["drone_controller"] };

for (const [name, seen, text] of [
  ["one of two nodes on a topic", words({ commanders }, status("/cmd_vel")), ["Commanded", "by driver or teleop"]],
  ["the node of the followed topic", words({ commanders }, { ...status("/cmd_vel_goal"), "/flying": { data: true } }), ["Flying", "by drone_controller"]],
  ["a node that is not discovered yet", words({ commanders: {} }, status("/cmd_vel")), ["Commanded", "by commands on /cmd_vel"]],
  ["none of its nodes", words({ commanders }, { ...status(""), ...state("idle"), "/landed": { data: true } }), ["Landed", "no commands"]],
  ["a node of which nothing is known", words({ commanders: { "/cmd_vel": ["driver"] } }), ["Unknown", "driver may command it"]],
  ["a controller", words({ commanders }, { ...status("/cmd_vel_goal"), ...state("approaching") }), ["land on pad: approaching", "It is late (drone_controller)"]],
  ["nobody while it is held", words({ commanders }, state("approaching"), true), ["On hold", "driver and drone_controller and teleop are ignored until Resume"]],
  ["another person", words({ commanders: { "/cmd_vel": ["a"] }, pilot: "other", pilot_name: "Anne" }, state("approaching")), ["Steered by Anne", "a is overruled, land on pad: approaching"]],
  ["a person who is not followed", words({ commanders, pilot: "you", refused_helm: "each command is refused: it is late." }), ["The helm is not followed", "each command is refused: it is late."]],
  ["a node whose name was not recorded", words(undefined, status("/cmd_vel")), ["Commanded", "by commands on /cmd_vel"]],
  ["a person in a recording", words(undefined, { ...status("", "Anne"), ...state("approaching"), "/landed": { data: true } }), ["Landed", "Anne is at the helm"]],
  ["a node that turns it on the spot", words({ commanders }, { ...status("/cmd_vel"), "/odom": { pose: { covariance: [0] }, twist: { covariance: [0], twist: { linear: { x: 0, y: 0, z: 0 }, angular: { z: -0.5 } } } } }), ["Turning", "by driver or teleop"]],
  ["an old recording", words(undefined), ["Unknown", "its commands are unknown"]],
] as const) test(`a vehicle is commanded by ${name}`, () => assert.deepEqual(seen, text));
