// The tabs of the dock, in their order.
import type { Panel } from "../base/app";
import { COMPARE } from "./compare/compare";
import { CONTENTION } from "./contention";
import { CRITICAL } from "./critical";
import { EVENTS } from "./events/events";
import { FINDINGS } from "./findings";
import { FLAME } from "./flame/flame";
import { LOSSES } from "./losses";
import { ORDER } from "./order/order";
import { OVER_TIME } from "./over_time/over_time";
import { STATISTICS } from "./statistics";
import { WAITS } from "./waits/waits";

export const PANELS: readonly Panel[] = [
  EVENTS,
  CONTENTION,
  FINDINGS,
  STATISTICS,
  ORDER,
  CRITICAL,
  LOSSES,
  FLAME,
  WAITS,
  COMPARE,
  OVER_TIME,
];
