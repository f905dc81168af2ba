// SPDX-License-Identifier: Apache-2.0
// What the page shows at a time: one vehicle with all topics of its namespace.

import type { Helm, Vehicle } from "./helm";
import type { Stream } from "./stream";

/** A vehicle or, where nothing can be steered, the graph as a whole. */
export interface Subject {
  /** Its namespace with slashes on both ends. */
  prefix: string;
  name: string;
  vehicle?: Vehicle;
}

/** Sends "change" when there are other subjects, or another one is chosen. */
export class Fleet extends EventTarget {
  subjects: Subject[] = [];
  #chosen = "";
  #stream: Stream;
  #helm: Helm;

  constructor(stream: Stream, helm: Helm) {
    super();
    this.#stream = stream;
    this.#helm = helm;
    stream.addEventListener("graph", () => this.#look());
    helm.addEventListener("change", () => this.#look());
  }

  get subject(): Subject {
    return this.subjects.find((subject) => subject.prefix === this.#chosen) ?? this.subjects[0]
      ?? { prefix: "/", name: "" };
  }

  choose(prefix: string): void {
    this.#chosen = prefix;
    this.dispatchEvent(new Event("change"));
  }

  /** Whether a topic or a service is in a namespace, and not in that of another vehicle within it. */
  isIn(prefix: string, name: string): boolean {
    const isWithin = (other: string): boolean => other.length > prefix.length && other.startsWith(prefix) && name.startsWith(other);
    return name.startsWith(prefix) && !this.subjects.some((other) => isWithin(other.prefix));
  }

  /** The topics of the subject, or of another one, by their names below its namespace. */
  topics(prefix = this.subject.prefix): Map<string, string> {
    const topics = new Map<string, string>();
    for (const [topic, channel] of this.#stream.topics) {
      if (this.isIn(prefix, topic)) topics.set(topic.slice(prefix.length), channel.schemaName);
    }
    return topics;
  }

  #look(): void {
    const subjects = this.#helm.vehicles.map((vehicle): Subject => {
      const prefix = vehicle.topic.slice(0, vehicle.topic.lastIndexOf("/") + 1);
      return { prefix, name: vehicle.name, vehicle };
    });
    // Where nothing takes commands (a bag that is played, say) namespaces with cameras or odometry are as good.
    if (subjects.length === 0) {
      const prefixes = new Set<string>();
      const bridges = new Map<string, string>();
      for (const [topic, { schemaName }] of this.#stream.topics) {
        // Our bridges are known by a topic of their own; who has one is a vehicle, and what else has odometry isn't.
        const [, prefix = "", bridge = ""] = /^(.*\/)(\w+)_(?:bridge|server)\/\w+$/.exec(topic) ?? [];
        if (bridge && bridge !== "web") bridges.set(prefix, bridge);
        if (schemaName === "nav_msgs/msg/Odometry") prefixes.add(topic.slice(0, topic.lastIndexOf("/") + 1));
      }
      for (const prefix of bridges.size > 0 ? bridges.keys() : prefixes) {
        subjects.push({ prefix, name: prefix.replaceAll("/", " ").trim() || (bridges.get(prefix) ?? "vehicle") });
      }
    }
    this.subjects = subjects;
    this.dispatchEvent(new Event("change"));
  }
}
