// Changes of a lock: moments at which its waits or holds became longer or shorter.
import type { App } from "../../base/app";
import { button } from "../../base/dom";
import type { LengthChange, LockOverTime } from "../../base/protocol";
import type { Range } from "../../base/state";
import { duration, exact, plural } from "../../base/units";

/** Returns a link that compares the parts before and after a change of a lock. */
export function changeLink(
  app: App,
  change: LengthChange,
  lock: LockOverTime,
  edges: readonly number[],
): HTMLElement {
  const go = () => {
    const { before, after } = around(change, lock.changes, edges);
    app.store.update({ other: before, mark: after });
  };
  const title = "Compare the parts before and after: keep the first as A, and mark the second";
  return button(changeText(change), go, { class: "link", title });
}

/**
 * Returns a change in words, as in `holds: 30.1 µs → 250 µs (median of 90 holds and 40 holds) from
 * 1.015 956 557 s on`.
 */
export function changeText(change: LengthChange): string {
  const { what, t_ns, before, after, before_ns, after_ns } = change;
  const medians = `${duration(before_ns)} → ${duration(after_ns)}`;
  return `${what}s: ${medians} (median of ${plural(before, what)} and ${plural(after, what)}) from ${exact(t_ns)} on`;
}

/**
 * Returns the parts before and after a change, up to the next change of its kind or the ends of the
 * trace.
 */
export function around(
  change: LengthChange,
  changes: readonly LengthChange[],
  edges: readonly number[],
): { before: Range; after: Range } {
  const same = changes.filter(({ what }) => what === change.what).map(({ t_ns }) => t_ns);
  const at = same.indexOf(change.t_ns);
  const from = same[at - 1] ?? edges[0] ?? 0;
  const to = same[at + 1] ?? edges[edges.length - 1] ?? 0;
  return {
    before: { from, to: change.t_ns },
    after: { from: change.t_ns, to: Math.max(to, change.t_ns + 1) },
  };
}
