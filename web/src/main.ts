// Starts the page: asks what the trace is, then lets each part fill its place.
import { follow, parse } from "./address";
import { ServerSource, type Source } from "./api";
import type { App } from "./app";
import { mountDock } from "./dock";
import { h } from "./dom";
import { EmbeddedSource } from "./embedded/source";
import { isEmbedded } from "./embedded/store";
import { mountHelp } from "./help";
import { Keys } from "./keys";
import { PANELS } from "./panels/index";
import { addPanelKeys } from "./panels/keys";
import { mountNotices } from "./panels/losses";
import type { Live } from "./protocol";
import { mountSearch } from "./search";
import { mountShell } from "./shell";
import { Signal } from "./signal";
import { firstView, Store, type View } from "./state";
import { followTheme } from "./theme";
import { Timeline } from "./timeline/timeline";
import { mountTopbar } from "./topbar";
import { Voice } from "./voice";

async function start(): Promise<void> {
  const source: Source = isEmbedded() ? new EmbeddedSource() : new ServerSource();
  let trace = await source.json("trace", {});
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
  follow(store, () => timeline.motion.moving);
  followTheme(store, () => themed.emit());
  mountTopbar(shell, app);
  const timeline = new Timeline(shell, app);
  mountDock(shell.dock, PANELS, app);
  addPanelKeys(app, PANELS);
  mountNotices(shell.notices, app);
  mountSearch(shell.search, app);
  mountHelp(shell.overlay, app);
  let wasGone = false;
  let asked = 0;
  let answered = 0;
  source.live(
    async (now) => {
      const mine = ++asked;
      live = now;
      const found = await source.json("trace", {}).catch(() => null);
      // Answers may overtake each other: an older one says less. None: the server is gone.
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
