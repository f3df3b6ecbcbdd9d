// Stacks as a tree of functions for the flame graph: merged, placed, searched, and listed by function.
import type { Flame, FlameFrame } from "../../base/protocol";

/** A function in the tree. The root stands for everything. */
export interface FlameNode {
  readonly frame: FlameFrame | null;
  readonly parent: FlameNode | null;
  readonly depth: number;
  ns: number;
  count: number;
  /** The part that belongs to no child: in the tree of callers, the time at call sites in this function. */
  own: number;
  readonly children: FlameNode[];
  /** Time by place in the function. */
  readonly places: Map<string, number>;
  /** Time by thread id. */
  readonly threads: Map<number, number>;
}

/** A rectangle of the icicle: shares of the width, and the level. */
export interface Box {
  readonly node: FlameNode;
  readonly x: number;
  readonly width: number;
  readonly level: number;
  /** Whether the box is an ancestor of the zoomed function, and as wide as everything. */
  readonly above: boolean;
}

/** The sums of a function in all stacks. */
export interface FunctionLine {
  readonly name: string;
  readonly module: string;
  readonly ns: number;
  readonly own: number;
  readonly count: number;
}

/** Returns the tree, with callers at the top, or with call sites at the top and their callers below. */
export function flameTree(flame: Flame, bottomUp: boolean): FlameNode {
  const root = node(null, null);
  const index = new Map<FlameNode, Map<string, FlameNode>>();
  for (const stack of flame.stacks) {
    const frames = bottomUp ? stack.frames : [...stack.frames].reverse();
    let at = root;
    add(at, stack.ns, stack.count);
    for (const number of frames) {
      const frame = flame.frames[number];
      if (!frame) continue;
      const under = index.get(at) ?? new Map<string, FlameNode>();
      index.set(at, under);
      const key = `${frame.module}\n${frame.name}`;
      let next = under.get(key);
      if (!next) {
        next = node(frame, at);
        under.set(key, next);
        at.children.push(next);
      }
      at = next;
      add(at, stack.ns, stack.count);
      at.places.set(frame.text, (at.places.get(frame.text) ?? 0) + stack.ns);
      for (const thread of stack.threads) {
        if (thread.tid) at.threads.set(thread.tid, (at.threads.get(thread.tid) ?? 0) + thread.ns);
      }
    }
    at.own += stack.ns;
  }
  order(root);
  return root;
}

/** Returns the visible boxes of a tree, the top level first. */
export function layOut(zoomed: FlameNode, least: number): Box[] {
  const found: Box[] = [];
  for (let node: FlameNode | null = zoomed; node; node = node.parent) {
    found.unshift({ node, x: 0, width: 1, level: node.depth, above: node !== zoomed });
  }
  const waiting: Box[] = found.slice(-1);
  for (let box = waiting.shift(); box; box = waiting.shift()) {
    let x = box.x;
    for (const child of box.node.children) {
      const width = zoomed.ns ? child.ns / zoomed.ns : 0;
      if (width >= least) {
        const one = { node: child, x, width, level: child.depth, above: false };
        found.push(one);
        waiting.push(one);
      }
      x += width;
    }
  }
  return found;
}

/** Returns whether a function or one of its places contains a text. */
export function isHit(node: FlameNode, text: string): boolean {
  const word = text.toLowerCase();
  if (!node.frame || !word) return false;
  const words = [node.frame.name, node.frame.module, ...node.places.keys()];
  return words.some((one) => one.toLowerCase().includes(word));
}

/**
 * Returns the time of all functions that contain a text, with everything below them. Each part
 * counts once.
 */
export function hitTime(root: FlameNode, text: string): number {
  let sum = 0;
  const waiting = [root];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (isHit(node, text)) sum += node.ns;
    else waiting.push(...node.children);
  }
  return sum;
}

/** Returns the sums of each function. If a function calls itself, its time counts once. */
export function functionLines(flame: Flame): FunctionLine[] {
  const found = new Map<string, { -readonly [K in keyof FunctionLine]: FunctionLine[K] }>();
  for (const stack of flame.stacks) {
    const seen = new Set<string>();
    stack.frames.forEach((number, at) => {
      const frame = flame.frames[number];
      if (!frame) return;
      const key = `${frame.module}\n${frame.name}`;
      let line = found.get(key);
      if (!line) {
        line = { name: frame.name, module: frame.module, ns: 0, own: 0, count: 0 };
        found.set(key, line);
      }
      if (at === 0) line.own += stack.ns;
      if (seen.has(key)) return;
      seen.add(key);
      line.ns += stack.ns;
      line.count += stack.count;
    });
  }
  return [...found.values()];
}

/** Returns the frames from the outermost visible frame down to a node, without the root. */
export function pathOf(node: FlameNode): FlameNode[] {
  const path: FlameNode[] = [];
  for (let at: FlameNode | null = node; at?.frame; at = at.parent) path.unshift(at);
  return path;
}

/** Returns the node at a path of functions in another tree, or the last node on the way. */
export function sameNode(root: FlameNode, path: readonly FlameNode[]): FlameNode {
  let at = root;
  for (const one of path) {
    const next = at.children.find(
      ({ frame }) => frame?.name === one.frame?.name && frame?.module === one.frame?.module,
    );
    if (!next) break;
    at = next;
  }
  return at;
}

function node(frame: FlameFrame | null, parent: FlameNode | null): FlameNode {
  return {
    frame,
    parent,
    depth: parent ? parent.depth + 1 : 0,
    ns: 0,
    count: 0,
    own: 0,
    children: [],
    places: new Map(),
    threads: new Map(),
  };
}

function add(node: FlameNode, ns: number, count: number): void {
  node.ns += ns;
  node.count += count;
}

function order(root: FlameNode): void {
  const waiting = [root];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    node.children.sort((a, b) => b.ns - a.ns);
    waiting.push(...node.children);
  }
}
