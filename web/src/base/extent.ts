// The time range of a trace.
import type { TraceInfo } from "./protocol";
import type { Range } from "./state";

/**
 * Returns the time range of a trace. Open waits and holds last until their process ended, maybe
 * long after the last event.
 */
export function wholeOf({ first_ns: from, end_ns, processes }: TraceInfo): Range {
  const to = processes.reduce((end, one) => Math.max(end, one.end_ns ?? 0), end_ns);
  return { from, to: Math.max(to, from + 1) };
}
