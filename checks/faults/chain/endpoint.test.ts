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
const share = 0.15;
const untilAnsweredEvents = 40;
const refusals = 8;
/** Two requests in a row that time out, and what the broker waits on top before it tells. */
const reportMs = 60_000;

const ownError = refuseWith({ code: -32_603, message: "internal error" });
const nowAndThen = (treatment: Treatment): Treatment => sometimes(share, { treatment, random });

/** Under these, publishing goes on. */
const bearable: readonly (readonly [string, Treatment])[] = [
  ["takes so many requests a second and refuses others with 429", limitRate(25)],
  ["cuts the connection in the middle of an answer now and then", nowAndThen(cutAnswers)],
  ["cuts the connection before it has the request now and then", nowAndThen(cutRequests)],
  ["answers an error of its own now and then", nowAndThen(ownError)],
];

/** Faults of all requests: nothing can be published until they are over. */
const always: readonly (readonly [string, Treatment])[] = [
  ["refuses everything for its rate", refuseForRate],
  ["takes no request and times out", hangRequests],
  ["does what it is asked and times out", swallowAnswers],
  ["does what it is asked and cuts every answer in the middle", cutAnswers],
  ["cuts every connection", cutRequests],
];

describe("an endpoint that (issue: faults)", () => {
  it.concurrent.each(bearable)("%s: publishing goes on, nothing is lost or twice", async (_what, treatment) => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat(treatment);
    await scenario.untilAcknowledged(untilAnsweredEvents);
    await scenario.expectRecovered();
  });

  it.concurrent.each(always)("%s: answers are honest, and work resumes by itself", async (_what, treatment) => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat(treatment);
    await scenario.untilRefused(refusals);
    await until("the broker tells that it is not ready", async () => !(await scenario.client.isReady()), {
      timeoutMs: reportMs,
    });
    await scenario.expectRecovered();
  });

  it.concurrent("answers every request with an error of its own: answers are honest, and work resumes by itself", async () => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat(ownError);
    await scenario.untilRefused(refusals);
    await scenario.expectRecovered();
  });

  it.concurrent("searches logs over few blocks only: all is read, by the live broker and by one that begins", async () => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat(refuseRangesOver(7));
    await scenario.untilAcknowledged(untilAnsweredEvents);
    await scenario.load.stop();
    await scenario.anvil.request("anvil_mine", ["0x300"]);
    await scenario.restartWithoutStore();
    scenario.load.start(scenario.broker.url);
    await scenario.expectRecovered();
  });

  it.concurrent("is two nodes behind a balancer, one of which is some blocks behind: nothing is skipped", async () => {
    await using scenario = await ChainScenario.start();
    scenario.proxy.treat((passage) =>
      random.fraction() < share ? staleNode(1 + random.below(4))(passage) : pass(passage),
    );
    await scenario.untilAcknowledged(untilAnsweredEvents);
    await scenario.expectRecovered();
  });

  it.concurrent("is reached no more and then again, with all connections cut", async () => {
    await using scenario = await ChainScenario.start();
    await scenario.proxy.refuse();
    await scenario.untilRefused(refusals);
    await scenario.proxy.listen();
    await scenario.expectRecovered();
  });
});
