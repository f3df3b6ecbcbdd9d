// Parts of all detail views: lists of facts, call sites, stacks and links.
import { h } from "../base/dom";
import type { ObjectRef, ThreadRef } from "../base/protocol";
import type { Range } from "../base/state";

/** Links from the details to other things. */
export interface Links {
  readonly thread: (thread: ThreadRef) => HTMLElement;
  readonly object: (object: ObjectRef) => HTMLElement;
  readonly time: (ns: number, range: Range) => HTMLElement;
  readonly wait: (id: number, range: Range, text: string) => HTMLElement;
}

/** Returns a list of named facts. */
export function facts(lines: readonly (readonly [string, string | HTMLElement])[]): HTMLElement {
  const list = h("dl", { class: "facts" });
  for (const [name, value] of lines) list.append(h("dt", {}, name), h("dd", {}, value));
  return list;
}

/** Returns a call site as code, or a dash if there is none. */
export function site(name: string): HTMLElement {
  return name ? h("code", { title: name }, name) : h("span", {}, "unknown");
}

/** Returns a call stack, the innermost frame first; nothing if the stack is not known. */
export function stack(title: string, frames: readonly string[]): HTMLElement[] {
  if (!frames.length) return [];
  const items = frames.map((frame) => h("li", {}, h("code", {}, frame)));
  return [h("h3", {}, title), h("ol", { class: "stack", "aria-label": title }, ...items)];
}
