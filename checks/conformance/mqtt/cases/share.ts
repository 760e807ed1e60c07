import { expect } from "vitest";
import type { Case } from "../case.ts";
import { type Context, textsOf } from "../context.ts";

/** The filter of a share that only this run uses. */
function shareOf({ topic }: Context): string {
  return `$share/name/${topic}`;
}

export const shareCases: readonly Case[] = [
  {
    name: "a shared filter is refused without a share name, with a wildcard in its share name, and without a topic filter",
    v5: ["4.8.2-1", "4.8.2-2"],
    run: async (context) => {
      const peer = await context.connect();
      const filters = ["$share//a", "$share/+/a", "$share/n#/a", "$share/n+/a", "$share/name", "$share/name/"];
      const subscriptions = [...filters, shareOf(context)].map((topic) => ({ topic, qos: 1 }));
      peer.send({ cmd: "subscribe", messageId: 1, subscriptions });
      expect((await peer.next("suback")).granted).toEqual([...filters.map(() => 0x8f), 1]);
    },
  },
  {
    name: "a share gives each event to one session, with the QoS that this session was granted",
    v5: ["4.8.2-3"],
    run: async (context) => {
      const first = await context.connect("first");
      const second = await context.connect("second");
      await context.subscribe(first, shareOf(context), { qos: 1 });
      await context.subscribe(second, shareOf(context), { qos: 0 });
      await context.publish("one");
      await context.publish("two");
      const [one, two] = [await context.take(first), await context.take(second)];
      expect([one.qos, two.qos]).toEqual([1, 0]);
      expect(textsOf([one, two]).toSorted()).toEqual(["one", "two"]);
      await first.expectQuiet();
      await second.expectQuiet();
    },
  },
  {
    name: "an event of QoS 2 of a share stays with its session, which completes it after a reconnect",
    v5: ["4.8.2-4"],
    run: async (context) => {
      const first = await context.connect("first", context.storedSession);
      await context.subscribe(first, shareOf(context));
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: context.topic, payload: "two", qos: 2, messageId: 1 });
      const { messageId } = await first.next("publish");
      const second = await context.connect("second");
      await context.subscribe(second, shareOf(context));
      first.drop();
      await second.expectQuiet();
      const again = await context.connect("first", context.storedSession);
      expect(await context.take(again)).toMatchObject({ messageId, dup: true, qos: 2 });
      await second.expectQuiet();
    },
  },
  {
    name: "an event of QoS 2 of a share goes to no other session when its own session ends",
    v5: ["4.8.2-5"],
    run: async (context) => {
      const first = await context.connect("first");
      await context.subscribe(first, shareOf(context));
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: context.topic, payload: "two", qos: 2, messageId: 1 });
      await first.next("publish");
      const second = await context.connect("second");
      await context.subscribe(second, shareOf(context));
      first.send({ cmd: "disconnect", reasonCode: 0 });
      await first.expectClosed();
      await context.publish("after");
      expect(textsOf(await context.receive(second, 1))).toEqual(["after"]);
    },
  },
  {
    name: "an event of a share that one session refuses goes to no other session",
    v5: ["4.8.2-6"],
    run: async (context) => {
      const first = await context.connect("first");
      const second = await context.connect("second");
      await context.subscribe(first, shareOf(context), { qos: 1 });
      await context.publish("refused");
      const { messageId } = await first.next("publish");
      await context.subscribe(second, shareOf(context), { qos: 1 });
      first.send({ cmd: "puback", messageId, reasonCode: 0x80 });
      await first.expectQuiet();
      first.drop();
      await context.publish("after");
      expect(textsOf(await context.receive(second, 1))).toEqual(["after"]);
    },
  },
];
