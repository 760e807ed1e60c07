import type { Event } from "../../domain/event.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { EventOrigin, OriginSource } from "../broker.ts";

export interface LoadOriginsOptions {
  readonly signal: CancelSignal;
  /** The store did not answer, for so many times in a row. Returns when it is worth another try. */
  readonly onFailed: (error: unknown, failures: number) => Promise<void>;
}

/** Where events come from, in their order; undefined where `signal` aborts first. What is known already takes no time. */
export async function loadOrigins(
  events: readonly Event[],
  source: OriginSource,
  { signal, onFailed }: LoadOriginsOptions,
): Promise<readonly EventOrigin[] | undefined> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        return await loadEach(events, source, controller.signal);
      } catch (error) {
        await onFailed(error, failures);
      }
    }
    return undefined;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function loadEach(
  events: readonly Event[],
  source: OriginSource,
  signal: AbortSignal,
): Promise<readonly EventOrigin[]> {
  const origins: EventOrigin[] = [];
  for (const event of events) origins.push(source.find(event) ?? (await source.load(event, signal)));
  return origins;
}
