// SPDX-License-Identifier: Apache-2.0
// The commands that a bridge follows, by its diagnostics: unknown just after a hold, and of any bridge in a recording.
import assert from "node:assert/strict";
import test from "node:test";
import type { Fleet } from "../src/fleet";
import type { Helm, Vehicle } from "../src/helm";
import { Links } from "../src/links";
import type { Stream } from "../src/stream";

test("the rate of commands is that of a whole second in which the vehicle follows them", (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  let nowMs = 0, report: (arrival: object) => void = () => undefined;
  context.mock.method(performance, "now", () => nowMs);
  const vehicle = { topic: "/d1/cmd_vel_stamped", node: "robot_bridge", held: {} } as Vehicle;
  const stream = Object.assign(new EventTarget(), { status: "open", isRecording: false, subscribe: (_: string, listener: typeof report) => (report = listener) });
  const helm = Object.assign(new EventTarget(), { vehicles: [vehicle], link: {} });
  const fleet = Object.assign(new EventTarget(), { subject: { prefix: "/d1/", vehicle } });
  const links = new Links(stream as unknown as Stream, helm as unknown as Helm, fleet as unknown as Fleet);
  const send = (atMs: number): number => {
    nowMs = atMs;
    const status = (name: string, rate: string): object => ({ name, level: 0, message: "", values: [{ key: "commands_per_second", value: rate }] });
    report({ receivedMs: nowMs, value: { status: [status("camera", "7"), status("d1/robot_bridge: link", "20.0"), status("robot_bridge: link", "3")] } });
    return links.commandRate("/d1/", vehicle);
  };
  assert.deepEqual([send(1_000), (vehicle.held = null, send(2_000)), send(3_000), (nowMs = 7_000, links.commandRate("/d1/", vehicle))], [NaN, NaN, 20, NaN]);
  stream.isRecording = true;
  assert.deepEqual(["/d1/", "/", "/d2/"].map((prefix) => links.commandRate(prefix, undefined)), [20, 3, NaN]);
});
