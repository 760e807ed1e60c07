import { TimeSlices } from "../../../lib/time-slices.ts";

/** Slices of the event loop that the connections of a listener share: thousands of tiny packets may come in one read of a socket. */
export function createSocketSlices(): TimeSlices {
  return new TimeSlices({
    monotonic: () => performance.now(),
    soon: (action) => void setImmediate(action),
  });
}
