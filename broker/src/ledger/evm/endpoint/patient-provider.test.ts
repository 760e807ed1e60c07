import { expect, it } from "vitest";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { EndpointError } from "./endpoint-error.ts";
import { createPatientProvider } from "./patient-provider.ts";

const overLimit = new EndpointError("answered HTTP 429", { reach: "unreached", isOverLimit: true });
const refused = new EndpointError("the connection was refused", { reach: "unreached" });

/** Makes a request, which fails with these errors before it is answered, and waits for `waitMs`. Returns its outcome and how often it was sent. */
async function ask(failures: readonly Error[], { isPatient = true, waitMs = 60_000 } = {}) {
  const clock = new VirtualClock();
  let sent = 0;
  const request = async (): Promise<unknown> => {
    sent += 1;
    const failure = failures[sent - 1];
    if (failure !== undefined) throw failure;
    return "0x1";
  };
  const provider = createPatientProvider({ request, failure: () => undefined }, { clock, isPatient: () => isPatient });
  const asking = provider.request({ method: "eth_chainId" }).catch((error: unknown) => error);
  await clock.advance(waitMs);
  return { outcome: await asking, sent };
}

it("repeats a request each second while it exceeds a rate limit", async () => {
  expect(await ask([overLimit, overLimit, overLimit], { waitMs: 3_000 })).toEqual({ outcome: "0x1", sent: 4 });
});

it("gives up after ten repeats", async () => {
  expect(await ask(Array.from({ length: 20 }, () => overLimit))).toEqual({ outcome: overLimit, sent: 11 });
});

it("does not repeat a request that failed otherwise, or after the start", async () => {
  expect(await ask([refused])).toEqual({ outcome: refused, sent: 1 });
  expect(await ask([overLimit], { isPatient: false })).toEqual({ outcome: overLimit, sent: 1 });
});
