import { TimeSlices } from "../time-slices.ts";

/** Time slices of the event loop; each call gives its own. Workers that should take turns share one. */
export function createLoopSlices(): TimeSlices {
  return new TimeSlices({ monotonic: () => performance.now(), soon: (action) => void setImmediate(action) });
}
