// Starts the page: asks for the opened trace, then lets each part fill its place.
import { follow, parse } from "./base/address";
import { ServerSource, type Source } from "./base/api";
import type { App } from "./base/app";
import { h } from "./base/dom";
import { Keys } from "./base/keys";
import type { Live } from "./base/protocol";
import { Signal } from "./base/signal";
import { firstView, Store, type View } from "./base/state";
import { followTheme } from "./base/theme";
import { Voice } from "./base/voice";
import { EmbeddedSource } from "./embedded/source";
import { isEmbedded } from "./embedded/store";
import { mountDock } from "./frame/dock";
import { mountHelp } from "./frame/help";
import { mountSearch } from "./frame/search";
import { mountShare } from "./frame/share";
import { mountShell } from "./frame/shell";
import { mountTopbar } from "./frame/topbar";
import { PANELS } from "./panels/index";
import { addPanelKeys } from "./panels/keys";
import { mountNotices } from "./panels/losses";
import { Timeline } from "./timeline/timeline";

async function start(): Promise<void> {
  const source: Source = isEmbedded() ? new EmbeddedSource() : new ServerSource();
  let trace = await source.json("trace", {});
  if (!location.hash && trace.view) history.replaceState(null, "", `#${trace.view}`);
  const store = new Store<View>(location.hash ? parse(location.hash) : firstView(innerWidth));
  const shell = mountShell(document.body);
  const themed = new Signal();
  const changed = new Signal();
  const voice = new Voice(shell.live, shell.toast);
  const app: App = {
    source,
    store,
    keys: new Keys(document),
    trace: () => trace,
    live: () => live,
    onChange: (listener) => changed.listen(listener),
    onTheme: (listener) => themed.listen(listener),
    announce: (text) => voice.announce(text),
    notify: (text, kind) => voice.notify(text, kind),
    zoomTo: (range) => timeline.zoomTo(range),
  };
  let live: Live | null = null;
  const steps = follow(store, () => timeline.motion.moving);
  const stepKey = (shift: boolean, label: string, does: string, press: () => boolean) =>
    ({ chars: ["z", "Z"], ctrl: true, shift, label, does, group: "View", press }) as const;
  app.keys.add(
    stepKey(
      false,
      "Ctrl+Z",
      "Go back to the previous view, like the browser's back key",
      steps.back,
    ),
    stepKey(true, "Ctrl+Shift+Z", "Go forward to the view before you went back", steps.forth),
  );
  followTheme(store, () => themed.emit());
  mountTopbar(shell, app);
  const timeline = new Timeline(shell, app);
  mountDock(shell.dock, PANELS, app);
  addPanelKeys(app, PANELS);
  mountNotices(shell.notices, app);
  mountSearch(shell.search, app);
  mountShare(shell.tools, app);
  mountHelp(shell.overlay, app);
  let wasGone = false;
  let asked = 0;
  let answered = 0;
  source.live(
    async (now) => {
      const mine = ++asked;
      live = now;
      const found = await source.json("trace", {}).catch(() => null);
      // A newer answer may arrive first, so an older answer is ignored. If there is no answer, the server is
      // gone.
      if (found === null || mine < answered) return;
      answered = mine;
      trace = found;
      changed.emit();
    },
    (gone) => {
      if (gone !== wasGone) shell.gone.hidden = !gone;
      wasGone = gone;
    },
  );
}

start().catch((error: unknown) => {
  const line = error instanceof Error ? error.message : String(error);
  document.body.replaceChildren(h("p", { class: "failure", role: "alert" }, line));
});
