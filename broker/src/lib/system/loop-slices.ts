import { TimeSlices } from "../time-slices.ts";

/** The time slices of this process's event loop. */
export function createLoopSlices(): TimeSlices {
  return new TimeSlices({ monotonic: () => performance.now(), soon: (action) => void setImmediate(action) });
}
