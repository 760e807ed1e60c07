import type { Event } from "../../domain/event.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { EventOrigin, OriginSource } from "../broker.ts";

export interface LoadOriginsOptions {
  readonly signal: CancelSignal;
  /** Called after `failures` consecutive failed loads. Resolves when it is time to try again. */
  readonly onFailed: (error: unknown, failures: number) => Promise<void>;
  /** Called before a wait for the store or the chain. */
  readonly onWait: () => void;
}

/** The origins of events, in the order of the events; undefined if `signal` aborts first. Cached origins need no wait. */
export async function loadOrigins(
  events: readonly Event[],
  source: OriginSource,
  { signal, onFailed, onWait }: LoadOriginsOptions,
): Promise<readonly EventOrigin[] | undefined> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        return await loadEach(events, source, { signal: controller.signal, onWait });
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
  { signal, onWait }: { readonly signal: AbortSignal; readonly onWait: () => void },
): Promise<readonly EventOrigin[]> {
  if (events.some((event) => source.find(event) === undefined)) onWait();
  const origins: EventOrigin[] = [];
  for (const event of events) origins.push(source.find(event) ?? (await source.load(event, signal)));
  return origins;
}
