// The top bar: the name and state of the trace, and the switches for the whole page.
import type { App } from "../base/app";
import { button } from "../base/dom";
import { wholeOf } from "../base/extent";
import type { Theme } from "../base/state";
import { plain } from "../base/text";
import { duration, plural } from "../base/units";
import type { Shell } from "./shell";

const NEXT: Readonly<Record<Theme, Theme>> = { auto: "light", light: "dark", dark: "auto" };
const NAMES: Readonly<Record<Theme, string>> = { auto: "auto", light: "light", dark: "dark" };

export function mountTopbar(shell: Shell, app: App): void {
  const theme = button("", () => app.store.update({ theme: NEXT[app.store.get().theme] }), {
    id: "theme",
    title: "Theme: like the system, light, or dark",
  });
  shell.tools.append(theme);
  app.store.watch(["theme"], (view) => {
    theme.textContent = `Theme: ${NAMES[view.theme]}`;
  });

  const describe = () => {
    const trace = app.trace();
    const whole = wholeOf(trace);
    document.title = `${plain(trace.name)} – PTT`;
    shell.title.textContent = plain(trace.name);
    shell.title.title = plain(trace.name);
    shell.summary.textContent = [
      duration(whole.to - whole.from),
      plural(trace.events, "event"),
      plural(trace.threads, "thread"),
      plural(trace.objects, "object"),
      trace.state === "complete" ? null : trace.state,
      trace.state === "running" && !trace.follow ? "not followed: the figures do not change" : null,
    ]
      .filter((part) => part !== null)
      .join(" · ");
  };
  describe();
  app.onChange(describe);
}
