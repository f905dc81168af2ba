// SPDX-License-Identifier: Apache-2.0
// Message as a tree that follows the newest one. Unfolded entries stay unfolded.

import { h, icon, setText } from "./dom";
import { unitOf } from "./fields";
import type { Message } from "./stream";

/** Maximum number of list entries shown. The rest is counted. */
const MOST_ENTRIES = 36;
const LONGEST_TEXT = 400;

interface Branch {
  element: HTMLElement;
  show: (value: unknown) => void;
}

export class MessageTree {
  readonly element = h("div.tree");
  #root?: Branch;

  /** `onPlot` gets the path of a number to plot. */
  constructor(private topic: string, private onPlot: (path: string) => void) {}

  show(message: Message): void {
    if (!this.#root) {
      this.#root = this.#entries("", message);
      this.element.append(this.#root.element);
    }
    this.#root.show(message);
  }

  /** Entries of an object or a list, created as they arrive. */
  #entries(path: string, first: unknown): Branch {
    const element = h("div.entries");
    const more = h("div.hint");
    const branches = new Map<string, Branch>();
    const isList = Array.isArray(first) || ArrayBuffer.isView(first);
    const show = (value: unknown): void => {
      const all = isList ? Array.from(value as ArrayLike<unknown>).slice(0, MOST_ENTRIES).map((each, index): [string, unknown] => [String(index), each]) : Object.entries(value as object);
      const names = new Set(all.map(([name]) => name));
      for (const [name, branch] of branches) {
        if (names.has(name)) continue;
        branch.element.remove();
        branches.delete(name);
      }
      for (const [name, each] of all) {
        let branch = branches.get(name);
        if (!branch) {
          branch = this.#branch(isList ? `${path}[${name}]` : path ? `${path}.${name}` : name, name, each);
          branches.set(name, branch);
          element.insertBefore(branch.element, more);
        }
        branch.show(each);
      }
      const left = isList ? (value as ArrayLike<unknown>).length - all.length : 0;
      setText(more, left > 0 ? `and ${left} more` : "");
    };
    element.append(more);
    return { element, show };
  }

  #branch(path: string, name: string, first: unknown): Branch {
    if (first === null || typeof first !== "object") return this.#leaf(path, name, first);
    const sum = h("span.value");
    const element = h("details", { "data-path": path }, h("summary", {}, h("span.key", {}, name), sum));
    element.open = !("length" in first) && Object.keys(first).length <= 8;
    let entries: Branch | undefined;
    const show = (value: unknown): void => {
      setText(sum, summary(value));
      if (!element.open) return;
      if (!entries) element.append((entries = this.#entries(path, value)).element);
      entries.show(value);
    };
    let last: unknown;
    element.addEventListener("toggle", () => last !== undefined && show(last));
    return { element, show: (value) => show((last = value)) };
  }

  #leaf(path: string, name: string, first: unknown): Branch {
    const value = h("span.value");
    const unit = unitOf(this.topic, path);
    const isNumber = ["number", "bigint", "boolean"].includes(typeof first);
    const element = h("div.leaf", { "data-path": path }, h("span.key", {}, name), value, unit && h("span.unit", {}, unit),
      isNumber && h("button.small", { "aria-label": `Plot ${path}`, title: "Plot", onclick: () => this.onPlot(path) }, icon("plot")));
    return { element, show: (each) => setText(value, text(each)) };
  }
}

function summary(value: unknown): string {
  if (ArrayBuffer.isView(value) || Array.isArray(value)) {
    const { length } = value as ArrayLike<unknown>;
    return length === 1 ? "1 entry" : `${length} entries`;
  }
  return "";
}

function text(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) || !Number.isFinite(value) ? String(value) : String(Number(value.toPrecision(6)));
  const full = String(value);
  return full.length > LONGEST_TEXT ? `${full.slice(0, LONGEST_TEXT)} …` : full;
}
