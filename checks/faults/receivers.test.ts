import { describe, expect, it } from "vitest";
import { answerStatus, endlessFailure, endlessSuccess, hang, redirectTo, reset, slow } from "../harness/behaviours.ts";
import { accept, type Behaviour, type Receiver, startReceiver } from "../harness/receiver.ts";
import { until } from "../harness/until.ts";
import { useReceivers, useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const eventCount = 300;
const attemptTimeoutMs = 1500;

const bad: readonly (readonly [string, Behaviour])[] = [
  ["is slow", slow(500)],
  ["answers 500", answerStatus(500)],
  ["hangs", hang],
  ["redirects", redirectTo("http://127.0.0.1:65535/elsewhere")],
  ["sends an endless body with its 500", endlessFailure],
  ["resets the connection", reset],
];

describe("a bad receiver delays only its own subscriptions", () => {
  const env = {
    STELE_CALLBACK_TIMEOUT_MS: String(attemptTimeoutMs),
    STELE_CALLBACK_BACKOFF_MIN_MS: "100",
    STELE_CALLBACK_BACKOFF_MAX_MS: "500",
    STELE_LOG_LEVEL: "error",
  };
  const running = useWorld(embeddedWorld, { env });
  const receive = useReceivers();

  /** Publishes to a topic with a healthy and a bad receiver, and waits until the healthy one has everything. */
  async function publishToBoth(topic: string, badReceiver: Receiver): Promise<readonly string[]> {
    const { client } = running();
    const healthy = await receive();
    await client.open(topic);
    await client.subscribe({ topic, url: badReceiver.url });
    await client.subscribe({ topic, url: healthy.url });
    const sent = await Promise.all(
      Array.from({ length: eventCount }, (_, index) => client.publish(topic, `event ${index}`)),
    );
    const accepted = await healthy.waitForCount(eventCount);
    const ids = sent.map(({ eventId }) => eventId).toSorted((a, b) => sequenceOf(a) - sequenceOf(b));
    expect(accepted.map(({ eventId }) => eventId)).toEqual(ids);
    return ids;
  }

  it.each(bad)(
    "a receiver that %s delays only its own subscription, which gets everything in order once the receiver recovers",
    async (what, behaviour) => {
      const receiver = await receive(behaviour);
      const ids = await publishToBoth(`bad ${what}`, receiver);
      // The healthy receiver has everything, while the bad one is still at its first events.
      expect(receiver.accepted().length).toBeLessThan(eventCount / 10);
      await receiver.waitFor("a further attempt", () => receiver.attempts.length >= 2);
      receiver.setBehaviour(accept);
      const accepted = await receiver.waitForCount(eventCount);
      expect(accepted.map(({ eventId }) => eventId)).toEqual(ids);
      expectOneAtATime(receiver, ids);
    },
  );

  it("a receiver that refuses connections delays only its own subscription", async () => {
    const receiver = await receive();
    await receiver.refuse();
    const ids = await publishToBoth("bad refuses", receiver);
    expect(receiver.attempts).toEqual([]);
    await receiver.resume();
    expect((await receiver.waitForCount(eventCount)).map(({ eventId }) => eventId)).toEqual(ids);
  });

  it("a receiver that answers 200 with an endless body is read up to the limit, and delays nobody", async () => {
    const receiver = await receive(endlessSuccess);
    const ids = await publishToBoth("bad endless", receiver);
    await receiver.waitFor("every event", () => receiver.attempts.length >= eventCount);
    expect(receiver.attempts.map(({ event }) => event.eventId)).toEqual(ids);
  });

  it("a receiver that redirects is retried, and the target of the redirect is not called", async () => {
    const { client } = running();
    const target = await receive();
    const receiver = await receive(redirectTo(target.url));
    await client.open("redirected");
    await client.subscribe({ topic: "redirected", url: receiver.url });
    await client.publish("redirected", "x");
    await receiver.waitFor("two attempts", () => receiver.attempts.length >= 2);
    expect(target.attempts).toEqual([]);
  });

  it("a receiver that hangs does not delay a healthy receiver, even with a hundred subscriptions", async () => {
    const { client } = running();
    const hanging = await startReceiver({ behaviour: hang });
    const healthy = await receive();
    await client.open("many");
    for (let index = 0; index < 100; index += 1) await client.subscribe({ topic: "many", url: hanging.url });
    await client.subscribe({ topic: "many", url: healthy.url });
    for (let index = 0; index < 20; index += 1) await client.publish("many", `event ${index}`);
    await healthy.waitForCount(20);
    expect(hanging.accepted()).toEqual([]);
    await hanging[Symbol.asyncDispose]();
  });

  it("a receiver that refuses connections does not hinder publishers: the broker stays ready and counts every event as waiting", async () => {
    const { client } = running();
    await client.open("waiting");
    const id = await client.subscribe({ topic: "waiting", url: "http://127.0.0.1:65535/" });
    for (let index = 0; index < 50; index += 1) await client.publish("waiting", `event ${index}`);
    expect((await client.http.send({ method: "GET", path: "/health/ready" })).status).toBe(200);
    await until("all 50 events wait", async () => (await client.findSubscription(id))?.notifyingEventCount === "50");
  });
});

function sequenceOf(eventId: string): number {
  return Number(eventId.split("-")[1]);
}

/** Checks that each attempt repeats the last event or sends the next one. */
function expectOneAtATime(receiver: Receiver, ids: readonly string[]): void {
  let index = 0;
  for (const { event } of receiver.attempts) {
    if (event.eventId !== ids[index]) index += 1;
    expect(event.eventId).toBe(ids[index]);
  }
}
