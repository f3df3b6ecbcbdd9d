// The tabs of the dock, in their order.
import type { Panel } from "../app";

export const PANELS: readonly Panel[] = [];
