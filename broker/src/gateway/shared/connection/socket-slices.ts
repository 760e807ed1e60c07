import { TimeSlices } from "../../../lib/time-slices.ts";

/** Time slices of the event loop that connections share, such as those of one protocol: one read of a socket may bring thousands of tiny packets. */
export function createSocketSlices(): TimeSlices {
  return new TimeSlices({
    monotonic: () => performance.now(),
    soon: (action) => void setImmediate(action),
  });
}
