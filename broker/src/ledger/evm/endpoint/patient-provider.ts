import { pause } from "../../../lib/pause.ts";
import { withCalls } from "../../../lib/with-calls.ts";
import type { Clock } from "../../../ports/clock.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { EvmProvider } from "./rpc.ts";

/** How long to wait before repeating a request that exceeded a rate limit, in milliseconds. Most limits are per second. */
const pauseMs = 1_000;
/** Maximum number of repeats of a request that exceeds a rate limit. */
const repeatsMax = 10;

export interface PatientProviderOptions {
  readonly clock: Clock;
  /** Whether requests wait for a rate limit now. */
  readonly isPatient: () => boolean;
}

/**
 * A provider that repeats requests over a rate limit up to `repeatsMax` times while `isPatient` is true, with a pause before each. A start makes about 15
 * consecutive requests, and after a failure begins again with the first one. If a limit is below that number, no start would succeed without the waits.
 */
export function createPatientProvider(
  provider: EvmProvider,
  { clock, isPatient }: PatientProviderOptions,
): EvmProvider {
  const request: EvmProvider["request"] = async (call) => {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await provider.request(call);
      } catch (error) {
        const isOverLimit = error instanceof EndpointError && error.isOverLimit;
        if (!isOverLimit || repeats >= repeatsMax || !isPatient()) throw error;
        await pause(clock, pauseMs);
      }
    }
  };
  return withCalls(provider, { request });
}
