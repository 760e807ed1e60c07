import { beforeAll, describe, expect, it } from "vitest";
import { answerStatus } from "../../harness/behaviours.ts";
import { codeOf } from "../../harness/client.ts";
import { accept, type Behaviour, type Receiver } from "../../harness/receiver.ts";
import { untilHolds } from "../../harness/until.ts";
import { useReceivers } from "../../harness/use.ts";
import type { RunningWorld, World } from "../../harness/world.ts";
import { idsOf, publishAtOnce, publishMany } from "./publishes.ts";

interface Context {
  readonly world: RunningWorld;
  readonly receive: (behaviour?: Behaviour) => Promise<Receiver>;
  /** Runs a check of the admin listing. In a cluster, repeats it until it holds. */
  readonly checkListing: (check: () => Promise<void>) => Promise<void>;
}

type Check = () => Promise<void>;

/** A test that something survives a restart. `prepare` runs before the restart, and returns the check that runs after it. */
type Survival = readonly [name: string, prepare: (context: Context) => Promise<Check>];

const survivals: readonly Survival[] = [
  ["the admin listing counts pending and notified events, before and after a restart", keepsCounts],
  ["a subscription receives, in order, the events published before and after a restart", continuesInOrder],
  ["a subscription that a 410 suspended continues from its cursor when it is resumed after a restart", staysSuspended],
  ["a closed topic stays closed after a restart", staysClosed],
];

/** Tests what survives a restart. All tests share one restart, because a restart takes longer than the tests. */
export function describeRestart(world: World, running: () => RunningWorld): void {
  describe(`a restart on the ${world.name}`, () => {
    const test = world.isSlow ? it.concurrent : it;
    // In a cluster, the counts of another node's subscriptions lag in the listing.
    const checkListing = world.isCluster === true ? untilHolds : (check: Check) => check();
    const receive = useReceivers();
    const checks = new Map<string, Check>();
    beforeAll(async () => {
      const context = { world: running(), receive, checkListing };
      const prepareOne = async ([name, prepare]: Survival) => checks.set(name, await prepare(context));
      await Promise.all(survivals.map(prepareOne));
      await context.world.stop();
      await context.world.resume();
    });

    test.each(survivals)("%s", async (name) => {
      const check = checks.get(name);
      if (check === undefined) throw new Error(`"${name}" is not prepared`);
      await check();
    });
  });
}

async function keepsCounts({ world, receive, checkListing }: Context): Promise<Check> {
  const receiver = await receive();
  await world.client.open("counted/a");
  await world.client.open("counted/b");
  const byName = await world.client.subscribe({ topic: "counted/a", url: receiver.url });
  const byPattern = await world.client.subscribe({ topic: "counted/+", url: receiver.url });
  await publishMany(world.client, "counted/a", 3);
  await publishMany(world.client, "counted/b", 2);
  await receiver.waitForCount(8);
  await receiver.refuse();
  await publishMany(world.client, "counted/a", 4);
  await publishMany(world.client, "counted/b", 1);
  const expectCounts = async (): Promise<void> => {
    const name = { notifiedEventCount: "3", notifyingEventCount: "4" };
    const pattern = { notifiedEventCount: "5", notifyingEventCount: "5" };
    expect(await world.client.findSubscription(byName)).toMatchObject(name);
    expect(await world.client.findSubscription(byPattern)).toMatchObject(pattern);
  };
  await checkListing(expectCounts);
  return async () => {
    await checkListing(expectCounts);
    await receiver.resume();
    await receiver.waitForCount(17);
  };
}

async function continuesInOrder({ world, receive }: Context): Promise<Check> {
  const receiver = await receive();
  await world.client.open("continued/1");
  const id = await world.client.subscribe({ topic: "continued/1", url: receiver.url });
  const first = await publishAtOnce(world.client, "continued/1", 20);
  await receiver.waitForCount(20);
  await receiver.refuse();
  const second = await publishAtOnce(world.client, "continued/1", 20);
  return async () => {
    const third = await publishAtOnce(world.client, "continued/1", 20);
    await receiver.resume();
    const expected = idsOf([...first, ...second, ...third]);
    expect(idsOf(await receiver.waitForCount(60))).toEqual(expected);
    expect(receiver.attempts.every(({ subscriptionId }) => subscriptionId === id)).toBe(true);
  };
}

async function staysSuspended({ world, receive, checkListing }: Context): Promise<Check> {
  const receiver = await receive();
  await world.client.open("gone");
  const subscriptionId = await world.client.subscribe({ topic: "gone", url: receiver.url });
  const first = await publishMany(world.client, "gone", 2);
  await receiver.waitForCount(2);
  receiver.setBehaviour(answerStatus(410));
  const second = await publishMany(world.client, "gone", 3);
  await receiver.waitFor("the attempt that is answered 410", () => receiver.attempts.length === 3);
  receiver.setBehaviour(accept);
  return async () => {
    const third = await publishMany(world.client, "gone", 1);
    const entry = { notifiedEventCount: "2", notifyingEventCount: "4", subscribeId: subscriptionId };
    await checkListing(async () => {
      expect(await world.client.findSubscription(subscriptionId)).toMatchObject(entry);
    });
    expect(receiver.attempts).toHaveLength(3);
    await world.client.subscribe({ topic: "gone", url: receiver.url, subscriptionId });
    expect(idsOf(await receiver.waitForCount(6))).toEqual(idsOf([...first, ...second, ...third]));
  };
}

async function staysClosed({ world }: Context): Promise<Check> {
  await world.client.open("closed/5");
  await world.client.publish("closed/5", "before");
  await world.client.close("closed/5");
  return async () => {
    expect(await codeOf(world.client.publish("closed/5", "after"))).toBe(100112);
    expect(await world.client.exist("closed/5")).toBe(true);
  };
}
