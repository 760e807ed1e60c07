import { expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { type Behaviour, type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

/** The callback timeout is longer than an order's own deadline of 30 s, so that a hanging receiver holds the order until that deadline. */
const env = { STELE_CALLBACK_TIMEOUT_MS: "60000", STELE_LOG_LEVEL: "error" };
/** Longest time of a stop. Its deadline is 10 s; a broken broker takes 29 s. */
const stopMsMax = 8000;
/** The admin API runs this many orders that wait for a receiver at once. */
const ordersAtOnce = 8;
/** Longest time until other operators are served. A broken broker takes 29 s. */
const servedMsMax = 8000;

const refuse: Behaviour = (_attempt, response) => void response.writeHead(500).end();
const hang: Behaviour = () => {};

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function ask(broker: BrokerProcess, path: string, body?: string): Promise<Answer> {
  const order = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body };
  const answer = await fetch(`${broker.url}/admin/v1/subscriptions${path}`, order);
  return { status: answer.status, body: await answer.json() };
}

/** Creates a subscription with one dead letter. Its receiver hangs from then on. */
async function subscribeHanging(broker: BrokerProcess, receiver: Receiver): Promise<string> {
  await using client = new Client(broker.url);
  receiver.setBehaviour(refuse);
  await client.open("a");
  const query = `topic=a&url=${encodeURIComponent(receiver.url)}&onFailure=skip&attemptsMax=1`;
  const id = String(await (await fetch(`${broker.url}/rest/subscribe?${query}`)).json());
  await client.publish("a", "x");
  const hasLetter = async (): Promise<boolean> =>
    ((await ask(broker, `/${id}/dead-letters`)).body as { items: unknown[] }).items.length === 1; // As the OpenAPI document says.
  await until("the event is a dead letter", hasLetter);
  receiver.setBehaviour(hang);
  receiver.forget();
  return id;
}

it.each([
  { order: "test", body: "{}", answer: { status: 503, body: { code: 200_300 } } },
  { order: "redeliver", body: '{"all":true}', answer: { status: 200, body: { events: 0, letters: { left: 1 } } } },
])(
  "a broker that stops ends a running order $order whose receiver hangs, and answers the caller",
  async ({ order, body, answer }) => {
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    await using broker = await startBroker({ dataDir: folder.path, env });
    const id = await subscribeHanging(broker, receiver);
    const answered = ask(broker, `/${id}/${order}`, body).catch((error: unknown) => error);
    await receiver.waitFor("the receiver is called", () => receiver.attempts.length === 1);
    const stoppedAt = performance.now();
    const exit = await broker.stop();
    expect(performance.now() - stoppedAt).toBeLessThan(stopMsMax);
    expect(exit).toMatchObject({ code: 0 });
    expect(await answered).toMatchObject(answer);
    expect(broker.stdout()).not.toContain("the store is not started");
  },
);

it("while a redelivery of a subscription runs, further redeliveries of this subscription are refused, and other operators are served", async () => {
  using folder = createTempFolder();
  await using receiver = await startReceiver();
  await using broker = await startBroker({ dataDir: folder.path, env });
  const id = await subscribeHanging(broker, receiver);
  const early: Answer[] = [];
  const order = { path: `/${id}/redeliver`, body: '{"all":true}' };
  const answered = askAll(broker, order, (answer) => void early.push(answer));
  await receiver.waitFor("the receiver is called", () => receiver.attempts.length === 1);
  await until("all redeliveries but one are answered", () => early.length === ordersAtOnce - 1);
  await expectServed(broker, id);
  expect(await broker.stop()).toMatchObject({ code: 0 });
  const statuses = (await answered).map(({ status }) => status).toSorted((a, b) => a - b);
  expect(statuses).toEqual([200, ...Array.from({ length: ordersAtOnce - 1 }, () => 409)]);
});

it("eight test orders whose receiver hangs leave room for other operators", async () => {
  using folder = createTempFolder();
  await using receiver = await startReceiver();
  await using broker = await startBroker({ dataDir: folder.path, env });
  const id = await subscribeHanging(broker, receiver);
  const answered = askAll(broker, { path: `/${id}/test`, body: "{}" });
  await receiver.waitFor("the receiver is called", () => receiver.attempts.length === ordersAtOnce);
  await expectServed(broker, id);
  expect(await broker.stop()).toMatchObject({ code: 0 });
  for (const { status } of await answered) expect(status).toBe(503);
});

/** Sends the order eight times at once. The test awaits the answers later, so an early rejection must not count as unhandled. */
function askAll(
  broker: BrokerProcess,
  { path, body }: { readonly path: string; readonly body: string },
  onAnswer: (answer: Answer) => void = () => {},
): Promise<readonly Answer[]> {
  const one = async (): Promise<Answer> => {
    const answer = await ask(broker, path, body);
    onAnswer(answer);
    return answer;
  };
  const answered = Promise.all(Array.from({ length: ordersAtOnce }, one));
  answered.catch(() => undefined);
  return answered;
}

async function expectServed(broker: BrokerProcess, id: string): Promise<void> {
  const startedAt = performance.now();
  const answers = await Promise.all([ask(broker, "?limit=10"), ask(broker, `/${id}/pause`, "{}")]);
  expect(answers).toMatchObject([{ status: 200 }, { status: 200 }]);
  expect(performance.now() - startedAt).toBeLessThan(servedMsMax);
}
