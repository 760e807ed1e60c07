import { describe, it } from "vitest";
import { createRandom } from "../../harness/random.ts";
import { until } from "../../harness/until.ts";
import { pass, type Treatment } from "../support/chain-proxy.ts";
import {
  cutAnswers,
  cutRequests,
  hangRequests,
  limitRate,
  refuseForRate,
  refuseRangesOver,
  refuseWith,
  sometimes,
  swallowAnswers,
} from "../support/chain-treatments.ts";
import { ChainScenario } from "../support/chain-scenario.ts";
import { staleNode } from "../support/stale-node.ts";

const random = createRandom(20_261_121);
/** Fraction of the requests that a fault hits now and then. */
const faultyFraction = 0.15;
const eventsAwaited = 40;
const refusalsAwaited = 8;
/** Time for two request timeouts and the delay before the broker reports an outage, in milliseconds. */
const reportMs = 60_000;

/** Each of the tests with several faults takes 40 s. */
const timeoutMs = 300_000;

const ownError = refuseWith({ code: -32_603, message: "internal error" });
const nowAndThen = (treatment: Treatment): Treatment => sometimes(faultyFraction, { treatment, random });

type Faults = readonly (readonly [what: string, treatment: Treatment])[];

/** Publishing continues under these faults. */
const bearable: Faults = [
  ["answers 25 requests per second and refuses others with 429", limitRate(25)],
  ["sometimes cuts the connection in the middle of an answer", nowAndThen(cutAnswers)],
  ["sometimes cuts the connection before it reads the request", nowAndThen(cutRequests)],
  ["sometimes answers with an internal error", nowAndThen(ownError)],
  [
    "is a load balancer with a chain node 1 to 4 blocks behind",
    (passage) => (random.fraction() < faultyFraction ? staleNode(1 + random.below(4))(passage) : pass(passage)),
  ],
];

/** These faults hit every request: no publish succeeds until they end. */
const always: Faults = [
  ["answers every request with 429", refuseForRate],
  ["processes every request but cuts every answer in the middle", cutAnswers],
  ["cuts every connection", cutRequests],
];

/** As above. The broker notices only after its timeouts, so each has a test of its own. */
const silent: Faults = [
  ["neither processes nor answers any request", hangRequests],
  ["processes every request but answers none", swallowAnswers],
];

/** Runs the faults one after another on one broker, since starts take most of the processor time. After each fault, checks all events so far. */
async function inTurn(faults: Faults, meet: (scenario: ChainScenario) => Promise<unknown>): Promise<void> {
  await using scenario = await ChainScenario.start();
  for (const [what, treatment] of faults) {
    try {
      scenario.proxy.treat(treatment);
      await meet(scenario);
      await scenario.expectRecovered();
    } catch (error) {
      throw new Error(`an endpoint that ${what}: ${String(error)}`, { cause: error });
    }
    scenario.load.start(scenario.broker.url);
  }
}

function namesOf(faults: Faults): string {
  return faults.map(([what]) => what).join(", then ");
}

/** Waits until publishes fail and the broker reports the outage. */
async function untilReported(scenario: ChainScenario): Promise<void> {
  await scenario.untilRefused(refusalsAwaited);
  await until("the broker reports that it is not ready", async () => !(await scenario.client.isReady()), {
    timeoutMs: reportMs,
  });
}

describe("a faulty endpoint", () => {
  it.concurrent(
    `an endpoint that ${namesOf(bearable)}: publishing continues; no event is lost, duplicated or skipped`,
    () => inTurn(bearable, (scenario) => scenario.untilAcknowledged(eventsAwaited)),
    timeoutMs,
  );

  it.concurrent.each([[namesOf(always), always], ...silent.map((fault) => [fault[0], [fault]] as const)] as const)(
    "an endpoint that %s: acknowledged events are on the chain once, refused ones are not; publishing resumes by itself",
    (_what, faults) => inTurn(faults, untilReported),
    timeoutMs,
  );

  it.concurrent("an endpoint that only answers errors: acknowledged events are on the chain once, refused ones are not; publishing resumes", async () => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat(ownError);
    await scenario.untilRefused(refusalsAwaited);
    await scenario.expectRecovered();
  });

  it.concurrent("an endpoint that refuses log searches over more than 7 blocks: the broker reads all events, even after the loss of its store", async () => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat(refuseRangesOver(7));
    await scenario.untilAcknowledged(eventsAwaited);
    await scenario.load.stop();
    await scenario.anvil.request("anvil_mine", ["0x300"]);
    await scenario.restartWithoutStore();
    scenario.load.start(scenario.broker.url);
    await scenario.expectRecovered();
  });

  it.concurrent("an endpoint that is unreachable for a while: no event is lost or duplicated; publishing resumes by itself", async () => {
    await using scenario = await ChainScenario.start();
    await scenario.proxy.refuse();
    await scenario.untilRefused(refusalsAwaited);
    await scenario.proxy.listen();
    await scenario.expectRecovered();
  });
});
