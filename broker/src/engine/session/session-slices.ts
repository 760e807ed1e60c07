import { inSlices, type Pauses } from "../../lib/time-slices.ts";
import type { Session } from "./session.ts";

/** Stops sessions, and resolves when each has stopped: see {@link Session.stop}. In slices: each takes about 20 µs, and there may be tens of thousands. */
export async function stopEach(sessions: readonly Pick<Session, "stop">[], slices: Pauses): Promise<void> {
  const stops: Promise<void>[] = [];
  await inSlices(sessions, slices, (session) => void stops.push(session.stop()));
  await Promise.all(stops);
}

/** Lets restarted sessions read on, in slices. A session that stops meanwhile does nothing. Never rejects. */
export async function readOnEach(sessions: readonly Pick<Session, "readOn">[], slices: Pauses): Promise<void> {
  await inSlices(sessions, slices, (session) => session.readOn());
}
