// The causes of waiting: the holders of an object, and the waits of a thread.
import { h } from "../base/dom";
import type { ReportObject, ReportThread } from "../base/protocol";
import { duration, plural } from "../base/units";

const SHOWN = 12;

/**
 * Returns the holders of an object while others waited. If none is known, returns the wakers of
 * these waits.
 */
export function holdersOf(item: ReportObject): HTMLElement {
  const facts = [
    `used by ${plural(item.threads, "thread")}`,
    item.max_waiters > 1 ? `up to ${item.max_waiters} waiting` : "",
    item.generations > 1 ? `${item.generations} objects at this address` : "",
    item.init_site ? `initialized at ${item.init_site}` : "",
    item.first_site && item.first_site !== item.init_site ? `first used at ${item.first_site}` : "",
  ];
  const title = `${item.kind} ${item.name || item.object}`;
  const lines = item.blamed.length
    ? item.blamed.map((blame) =>
        line(
          duration(blame.wait_caused_ns),
          `while ${threadName(blame)} held it, ${blame.released ? "released" : "taken"} at ${place(blame.site)}`,
        ),
      )
    : item.wakers.map((waker) =>
        line(plural(waker.count, "wait"), `ended by ${threadName(waker)} at ${place(waker.site)}`),
      );
  return about(title, facts.filter(Boolean).join(", "), lines);
}

/** Returns the objects that a thread waited for, the places, and the causes. */
export function causesOf(item: ReportThread): HTMLElement {
  const lines = item.waited_for.map((cause) => {
    const what =
      cause.kind === "thread"
        ? "the end of a thread"
        : `${cause.kind} ${cause.name || cause.object}`;
    const where = cause.site ? ` at ${cause.site}` : "";
    const whom = cause.because_of_tid ? `, because of thread ${cause.because_of_tid}` : "";
    const theirs = cause.because_of_site ? ` at ${cause.because_of_site}` : "";
    const kind = cause.class === "contended" ? "" : ` (${cause.class})`;
    return line(duration(cause.wait_ns), `${what}${where}${kind}${whom}${theirs}`);
  });
  const title = `thread ${item.tid} ${item.name}`.trim();
  return about(title, `not waiting for ${duration(item.running_ns)}`, lines);
}

function about(title: string, facts: string, lines: readonly HTMLElement[]): HTMLElement {
  const more = lines.length - SHOWN;
  return h(
    "div",
    {},
    h("h2", {}, title),
    h("p", {}, facts),
    h("ul", {}, ...lines.slice(0, SHOWN)),
    more > 0 ? h("p", {}, `${more} more`) : null,
  );
}

function line(amount: string, text: string): HTMLElement {
  return h("li", {}, h("b", {}, amount), ` ${text}`);
}

function threadName(thread: { readonly tid: number | null; readonly name: string }): string {
  if (thread.tid === null) return "an unknown thread";
  return `thread ${thread.tid}${thread.name ? ` (${thread.name})` : ""}`;
}

function place(site: string): string {
  return site || "an unknown place";
}
