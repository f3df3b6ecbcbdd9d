// The panel of losses: everything that is missing from the trace, and a notice in the top bar that leads
// here.
import type { App, Panel } from "../base/app";
import { button, h } from "../base/dom";
import { count, plural } from "../base/units";

export const LOSSES: Panel = {
  id: "losses",
  title: "Losses",
  help: "Missing parts of the trace, and why they are missing",
  mount,
};

const CLASSES =
  "A wait is contended when another thread has the object. Other waits are not contention and are counted apart: waits " +
  "for work (a condition variable that a signal ends, a semaphore that is posted), for the end of a thread, up to a time " +
  "limit or a cancellation.";

function mount(element: HTMLElement, app: App): void {
  const body = h("div", { class: "panel-text losses" });
  const draw = () => body.replaceChildren(...sections(app));
  element.append(body);
  draw();
  app.onChange(draw);
}

function sections(app: App): HTMLElement[] {
  const trace = app.trace();
  const losses = trace.losses.map(
    (loss) => `${loss.path}: ${plural(loss.count, "event")} (${loss.cause})`,
  );
  const uncovered = trace.uncovered.map((module) => `${module.module}: ${module.why}`);
  const state = {
    running: "The recording goes on: events of the last seconds may still be missing.",
    complete: "The recording came to its end.",
    killed:
      "The recorder was killed: events in its buffers are missing until you recover the trace.",
    recovered: "The recording was cut off and recovered: its last moments may be missing.",
  }[trace.state];
  return [
    section(
      "Lost events",
      losses,
      trace.lost ? `${plural(trace.lost, "event")} lost` : "No events were lost.",
    ),
    section(
      "Modules that were not covered",
      uncovered,
      uncovered.length
        ? "The trace lacks some actions of these modules."
        : "All modules were covered.",
    ),
    section(
      "Damaged parts",
      trace.damages,
      trace.damages.length ? "These could not be read." : "No damage was found.",
    ),
    section("Remarks", trace.remarks, trace.remarks.length ? "" : "None."),
    section("Recording", [state], trace.level ? `Recorded at level ${trace.level}.` : ""),
    section("What is contention", [], CLASSES),
  ];
}

function section(title: string, lines: readonly string[], text: string): HTMLElement {
  return h(
    "section",
    {},
    h("h2", {}, title),
    text ? h("p", {}, text) : null,
    lines.length ? h("ul", {}, ...lines.map((line) => h("li", {}, line))) : null,
  );
}

/** Shows in the top bar that something is missing. */
export function mountNotices(place: HTMLElement, app: App): void {
  const draw = () => {
    const trace = app.trace();
    const said = [
      trace.lost ? `${count(trace.lost)} lost` : "",
      trace.uncovered.length ? `${trace.uncovered.length} not covered` : "",
      trace.damages.length ? `${trace.damages.length} damaged` : "",
      trace.state === "recovered" ? "recovered" : "",
      trace.state === "killed" ? "recorder killed" : "",
    ].filter(Boolean);
    const go = () => app.store.update({ tab: LOSSES.id, dock: true });
    const notice = button(`▲ ${said.join(", ")}`, go, {
      class: "notice",
      title: "What is missing",
    });
    place.replaceChildren(...(said.length ? [notice] : []));
  };
  draw();
  app.onChange(draw);
}
