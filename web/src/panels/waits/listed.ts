// Leads to the list of waits from other parts of the page.
import type { App } from "../../base/app";
import type { WaitFilter } from "../../base/state";

/** Lists the waits of a thread, for an object or at a call site, with any length and class. */
export function listWaits(app: App, of: Partial<WaitFilter>): void {
  app.store.update({ waits: { least: 0, kind: "", ...of }, tab: "waits", dock: true });
}
