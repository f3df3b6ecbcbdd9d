// A wait and its chain: the holder of the object, the wait of this holder, and so on to the root cause.
import { h } from "../base/dom";
import type { Doing, Holder, Wait } from "../base/protocol";
import { count, duration, plural } from "../base/units";
import { facts, type Links, site, stack } from "./parts";
import type { Later } from "./selected";

const CLASSES: Readonly<Record<Wait["wait_class"], string>> = {
  contended: "waited",
  idle: "was idle",
  join: "joined",
  timeout: "waited in vain",
  cancelled: "was cancelled waiting",
  unknown: "waited, for an unknown reason,",
  gil: "waited for the interpreter's lock,",
};

/** Returns the view of a wait: the wait itself, then each step to the root cause. */
export function chainView(chain: readonly Wait[], later: Later, links: Links): HTMLElement[] {
  const [first, ...rest] = chain;
  if (!first) return [h("p", {}, "Nothing is known of this wait.")];
  const steps = h("ol", { class: "chain" });
  steps.append(step(first, links, true));
  for (const wait of rest) steps.append(step(wait, links, false));
  for (const wait of later.waits) {
    const line = step(wait, links, false);
    line.prepend(h("div", { class: "because" }, "and meanwhile"));
    steps.append(line);
  }
  const last = later.waits[later.waits.length - 1] ?? chain[chain.length - 1] ?? first;
  steps.append(later.cycle ? cycle(last, links) : root(last, links));
  return [
    heading(first, links),
    itself(first, links),
    h("h3", {}, "Because of"),
    steps,
    ...stack("Waited in", first.stack),
    ...stack(isTaking(first) ? "Held from" : "Released at", first.owner_stack),
  ];
}

/** Whether the owner's stack is from taking the object, and not from releasing it. */
function isTaking(wait: Wait): boolean {
  return wait.owner_stack[0] === wait.owner_site;
}

function rangeOf(wait: Wait) {
  return { from: wait.t_ns, to: wait.t_ns + wait.dur_ns };
}

function heading(wait: Wait, links: Links): HTMLElement {
  const verb = CLASSES[wait.wait_class];
  return h("h2", {}, links.thread(wait.thread), ` ${verb} for `, links.object(wait.object));
}

function itself(wait: Wait, links: Links): HTMLElement {
  const length = duration(wait.dur_ns) + (wait.open ? ", and it never ended" : "");
  const lines: [string, string | HTMLElement][] = [
    ["For", h("strong", {}, length)],
    ...divided(wait),
    ["Class", wait.mode === "shared" ? `${wait.wait_class}, shared` : wait.wait_class],
    ["Since", links.time(wait.t_ns, rangeOf(wait))],
    ["At", site(wait.site)],
    ["Object", `${wait.kind} ${wait.object.object}`],
  ];
  if (wait.ready_ns !== null) lines.push(["Had no processor", duration(wait.ready_ns)]);
  if (wait.queue_depth > 1) lines.push(["Waiting by then", count(wait.queue_depth)]);
  if (wait.waker) {
    lines.push(["Ended by", links.thread(wait.waker)]);
    if (wait.waker_site) lines.push(["", site(wait.waker_site)]);
  }
  return facts(lines);
}

/** The two parts of a contended wait: while held, and until awake. */
function divided({ held_ns, wake_ns, open, waker }: Wait): [string, string][] {
  if (held_ns === null || wake_ns === null) return [];
  const held: [string, string] = ["While held", duration(held_ns)];
  // If no waker is known, the end of the hold is not known either.
  const known = !open && (wake_ns > 0 || waker !== null);
  return known ? [held, ["Until awake", duration(wake_ns)]] : [held];
}

/** A step: who waited for what, and who held it. The first words lead to that wait. */
function step(wait: Wait, links: Links, isFirst: boolean): HTMLElement {
  const text = `${wait.thread.label} ${CLASSES[wait.wait_class]} ${duration(wait.dur_ns)}`;
  const own = isFirst ? h("span", {}, text) : links.wait(wait.wait_id, rangeOf(wait), text);
  const item = h("li", { class: wait.wait_class }, own, " for ", links.object(wait.object));
  if (isShared(wait)) {
    item.append(...holders(wait, links));
  } else if (wait.owner) {
    const since = wait.owner_since_ns;
    const before =
      since === null ? "" : `, had it for ${duration(Math.max(0, wait.t_ns - since))} then`;
    item.append(
      h("div", { class: "because" }, "held by ", links.thread(wait.owner), before),
      wait.owner_site ? h("div", { class: "because" }, "taken at ", site(wait.owner_site)) : "",
    );
  } else if (wait.waker) {
    item.append(h("div", { class: "because" }, "until it was ended by ", links.thread(wait.waker)));
  } else {
    item.append(h("div", { class: "because" }, "the holder and the waker are not known"));
  }
  return item;
}

/** Whether threads other than the first owner had the object, or the first owner had it again. */
function isShared({ holders }: Wait): boolean {
  return holders !== null && (holders.threads_total > 1 || holders.taken > 0);
}

/**
 * All holders during the wait with their shares, and how often others took the object before the
 * thread got it.
 */
function holders(wait: Wait, links: Links): HTMLElement[] {
  const { threads = [], threads_total = 0, taken = 0 } = wait.holders ?? {};
  const lines = threads.map(({ thread, holds, ns }) =>
    h(
      "div",
      { class: "because" },
      "held by ",
      links.thread(thread),
      `: ${duration(ns)} in ${plural(holds, "hold")}`,
    ),
  );
  const more = threads_total - threads.length;
  if (more > 0) lines.push(h("div", { class: "because" }, `and by ${plural(more, "thread")} more`));
  const again = `other threads took it ${plural(taken, "time")} while ${wait.thread.label} waited`;
  if (taken > 0) lines.push(h("div", { class: "because" }, again));
  if (wait.owner_site) {
    const first = wait.owner
      ? [links.thread(wait.owner), " had it first, taken at "]
      : ["taken at "];
    lines.push(h("div", { class: "because" }, ...first, site(wait.owner_site)));
  }
  return lines;
}

/** Threads that wait for one another wait forever. */
function cycle(last: Wait, links: Links): HTMLElement {
  const item = h("li", { class: "root cycle" });
  const verdict = last.open ? " waits itself, see above: a deadlock" : " waited itself, see above";
  if (last.owner) item.append(links.thread(last.owner), verdict);
  return item;
}

/** The root cause: what the thread with the longest holds did meanwhile. */
function root(last: Wait, links: Links): HTMLElement {
  const item = h("li", { class: "root" });
  const most = last.holders?.threads[0];
  const thread = most?.thread ?? last.owner ?? last.waker;
  if (!thread) {
    item.append("The chain ends here");
    return item;
  }
  item.append("Root: ", links.thread(thread), most ? ` ${whatItDid(most)}` : NOT_KNOWN);
  return item;
}

const NOT_KNOWN = " was not waiting for anything traced";
const DID: Readonly<Record<string, string>> = {
  running: "ran",
  ready: "was ready to run, and had no processor",
  preempted: "had lost its processor",
  contended: "waited for another thread",
  idle: "was idle",
  join: "waited for the end of a thread",
  timeout: "waited until the time limit",
  cancelled: "waited, and was cancelled",
  unknown: "waited for an unknown reason",
  gil: "waited for the GIL",
};
/** Activities with a smaller share of the time are left out. */
const LITTLE = 0.05;

/** Returns what a holder did while it had the object, as far as the trace says. */
export function whatItDid({ ns, doing }: Pick<Holder, "ns" | "doing">): string {
  const much = doing.filter((one) => one.ns >= LITTLE * ns);
  const known = much.filter((one) => one.state !== "not waiting");
  const rest = much.find((one) => one.state === "not waiting");
  if (!known.length)
    return "was not waiting for anything traced: whether it ran or slept is not recorded";
  const parts = known.map((one) => `${did(one)} for ${duration(one.ns)}`);
  if (rest) parts.push(`did something unknown for ${duration(rest.ns)}`);
  return `${parts.join(", ")}, of the ${duration(ns)} of its holds`;
}

function did({ state, call }: Doing): string {
  if (state === "asleep") return `was asleep in ${call || "a system call"}`;
  return DID[state] ?? state;
}
