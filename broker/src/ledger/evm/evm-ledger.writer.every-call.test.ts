import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isBrokerError } from "@stele/wire";
import type { BatchOutcome } from "../../ports/ledger.ts";
import { connectionLost, connectionRefused, type Interceptor, passAll } from "./testing/intercepted-provider.ts";
import { type Writer, WriterWorld } from "./testing/writer-world.ts";

/** Number of runs at the same time; different requests fail in each. */
const runsAtOnce = 6;
const deadlineMs = 1200;
/** Step between the first failing requests of two runs, where several consecutive requests fail. With CHECKS_ROUNDS set, tries every request as the first. */
const startStep = process.env["CHECKS_ROUNDS"] === undefined ? 3 : 1;

/** What happens to a failing request. */
const faults: Readonly<Record<string, Interceptor>> = {
  "does not reach the endpoint": async () => {
    throw connectionRefused();
  },
  "gets no answer and is not processed": async () => {
    throw connectionLost();
  },
  "gets no answer but is processed": async (_, pass) => {
    await pass();
    throw connectionLost();
  },
  "gets an error": async () => {
    throw Object.assign(new Error("internal error"), { code: -32_603 });
  },
};

type Answer = BatchOutcome["status"] | number;

/** Publishes events while `fault` handles `failing` consecutive requests, the first one being request number `from`. Returns the number of requests. */
async function run(from: number, failing: number, fault: Interceptor): Promise<number> {
  const world = await WriterWorld.join(shared, `run ${from} ${failing} ${worlds++}`);
  await (await world.createFirstWriter()).ledger.stop();
  let writer = await startAgain(world);
  let requests = 0;
  world.provider.current = async (request, pass) => {
    if (request.method === "eth_getBlockByNumber") return pass(); // Not counted: how many polls there are depends on the clock.
    requests += 1;
    return requests >= from && requests < from + failing ? fault(request, pass) : pass();
  };
  const answers = new Map<string, Answer>();
  const publish = async (text: string): Promise<void> => {
    answers.set(text, await answerOf(writer.append(text)));
  };
  await Promise.all(["a", "b", "c"].map(publish));
  await publish("d");
  const last = Promise.all(["e", "f"].map(publish));
  await new Promise((resolve) => setImmediate(resolve)); // Both appends have started.
  await writer.abandon();
  await last;
  writer = await startAgain(world);
  await publish("g");
  const counted = requests;
  world.provider.current = passAll;
  while ((await answerOf(writer.append("end"))) !== "committed");
  await writer.ledger.stop();
  expectAnswersMatch(answers, await world.published());
  return counted;
}

async function startAgain(world: WriterWorld): Promise<Writer> {
  for (;;) {
    try {
      return await world.createWriter({ deadlineMs, registry: world.registryAddress });
    } catch (error) {
      if (!isBrokerError(error, "chainUnreachable")) throw error;
    }
  }
}

async function answerOf(outcome: Promise<BatchOutcome | undefined>): Promise<Answer> {
  try {
    return (await outcome)?.status ?? "rejected";
  } catch (error) {
    if (isBrokerError(error)) return error.code;
    throw error;
  }
}

function expectAnswersMatch(answers: ReadonlyMap<string, Answer>, published: readonly string[]): void {
  for (const [text, answer] of answers) {
    const times = published.filter((other) => other === text).length;
    if (answer === "committed") expect({ text, answer, times }).toEqual({ text, answer, times: 1 });
    else if (answer === 200201)
      expect(times).toBeLessThanOrEqual(1); // The outcome was unknown.
    else expect({ text, answer, times }).toEqual({ text, answer: answer === 200202 ? 200202 : 200205, times: 0 });
  }
}

let shared: WriterWorld;
let worlds = 0;

beforeEach(async () => {
  shared = await WriterWorld.start();
});

afterEach(async () => {
  await shared.stop();
});

describe.each(Object.entries(faults))("when a request %s", (_, fault) => {
  test.each([1, 4])(
    "each acknowledged event is on the chain once, and no failed event is on it (consecutive requests: %i)",
    async (failing) => {
      const requests = await run(Number.POSITIVE_INFINITY, 0, fault);
      expect(requests).toBeGreaterThan(20);
      const step = failing === 1 ? 1 : startStep;
      const starts = Array.from({ length: Math.ceil(requests / step) }, (_, index) => 1 + index * step).values();
      const runOthers = async (): Promise<void> => {
        for (const from of starts) await run(from, failing, fault);
      };
      await Promise.all(Array.from({ length: runsAtOnce }, runOthers));
    },
    120_000,
  );
});
