import { BrokerError } from "@stele/wire";
import { inSlices, type Pauses } from "../../lib/time-slices.ts";
import type { Caller } from "../access/caller.ts";
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

interface CheckedCall {
  readonly caller: Pick<Caller, "signal">;
  readonly slices: Pauses;
}

/**
 * Checks the right to each filter of a call in slices: a call may name a thousand filters, and with many rules each check takes about 1 ms.
 * @throws BrokerError 200300 if the connection ends meanwhile; what `check` throws.
 */
export async function checkEach<T>(
  filters: Iterable<T>,
  { caller, slices }: CheckedCall,
  check: (filter: T) => void,
): Promise<void> {
  await inSlices(filters, slices, (filter) => {
    if (caller.signal.aborted) throw new BrokerError("busy", { details: "the connection has ended" });
    check(filter);
  });
}
