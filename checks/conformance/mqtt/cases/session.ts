import { expect } from "vitest";
import type { Case } from "../case.ts";
import { textsOf } from "../context.ts";

export const sessionCases: readonly Case[] = [
  {
    name: "a stored session resumes with the events published since its connection ended",
    v4: ["3.1.2-4", "3.1.2-5", "3.1.4-3", "3.2.2-2", "3.2.2-3", "4.1.0-1", "4.1.0-2", "4.5.0-1"],
    v5: ["3.1.2-5", "3.1.2-6", "3.1.2-23", "3.1.4-4", "3.2.2-3", "4.1.0-1", "4.5.0-1"],
    run: async (context) => {
      const first = await context.open();
      expect(await context.sendConnect(first, "kept", context.storedSession)).toMatchObject({ sessionPresent: false });
      await context.subscribe(first, context.topic);
      first.drop();
      await context.publish("one", { qos: 1 });
      await context.publish("two", { qos: 1 });
      const second = await context.open();
      expect(await context.sendConnect(second, "kept", context.storedSession)).toMatchObject({ sessionPresent: true });
      expect(textsOf(await context.receive(second, 2))).toEqual(["one", "two"]);
    },
  },
  {
    name: "a clean start drops the client's former session",
    v4: ["3.1.2-6", "3.2.2-1", "3.1.4-3"],
    v5: ["3.1.2-4", "3.2.2-2", "3.1.4-4"],
    run: async (context) => {
      const first = await context.connect("kept", context.storedSession);
      await context.subscribe(first, context.topic);
      first.drop();
      const second = await context.open();
      expect(await context.sendConnect(second, "kept")).toMatchObject({ sessionPresent: false });
      await context.publish("x");
      await second.expectQuiet();
    },
  },
  {
    name: "without a Session Expiry Interval, a session ends with its connection",
    v5: ["4.1.0-2"],
    run: async (context) => {
      const first = await context.connect("short");
      await context.subscribe(first, context.topic);
      first.send({ cmd: "disconnect", reasonCode: 0 });
      await first.expectClosed();
      const second = await context.open();
      expect(await context.sendConnect(second, "short", { clean: false })).toMatchObject({ sessionPresent: false });
    },
  },
  {
    name: "after a reconnect, unacknowledged events are sent again in order, with DUP and their packet identifiers",
    v4: ["3.3.1-1", "4.4.0-1", "4.6.0-1", "2.3.1-3"],
    v5: ["3.3.1-1", "4.4.0-1", "4.3.2-3", "4.3.3-3"],
    run: async (context) => {
      const first = await context.connect("kept", context.storedSession);
      await context.subscribe(first, context.topic);
      await context.publish("one", { qos: 1 });
      await context.publish("two", { qos: 1 });
      const [one, two] = [await first.next("publish"), await first.next("publish")];
      first.drop();
      const second = await context.connect("kept", context.storedSession);
      const again = await context.receive(second, 2);
      expect(again.map(({ messageId, dup }) => [messageId, dup])).toEqual([
        [one.messageId, true],
        [two.messageId, true],
      ]);
      expect(textsOf(again)).toEqual(["one", "two"]);
    },
  },
  {
    name: "after PUBREC only PUBREL is sent again, until PUBCOMP",
    v4: ["4.3.3-1", "4.4.0-1"],
    v5: ["4.3.3-4", "4.3.3-5", "4.3.3-6", "4.4.0-1"],
    run: async (context) => {
      const first = await context.connect("kept", context.storedSession);
      await context.subscribe(first, context.topic);
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: context.topic, payload: "two", qos: 2, messageId: 1 });
      const { messageId } = await first.next("publish");
      first.send({ cmd: "pubrec", messageId });
      expect(await first.next("pubrel")).toMatchObject({ messageId });
      first.drop();
      const second = await context.connect("kept", context.storedSession);
      expect(await second.next("pubrel")).toMatchObject({ messageId });
      second.send({ cmd: "pubcomp", messageId });
      await second.expectQuiet();
      second.drop();
      await (await context.connect("kept", context.storedSession)).expectQuiet();
    },
  },
  {
    name: "an unacknowledged event is sent again even after it has expired",
    v5: ["4.3.3-7", "4.4.0-1"],
    run: async (context) => {
      const first = await context.connect("kept", context.storedSession);
      await context.subscribe(first, context.topic);
      const writer = await context.connect("writer");
      const properties = { messageExpiryInterval: 8 }; // long enough for the first delivery on a busy machine
      writer.send({ cmd: "publish", topic: context.topic, payload: "old", qos: 2, messageId: 1, properties });
      const { messageId } = await first.next("publish");
      first.drop();
      const clock = await context.connect("clock", { keepalive: 6 });
      await clock.expectEnded(0x8d); // The broker ends it after 9 s, 1.5 times its keep-alive. Then "old" has expired.
      const again = await context.take(await context.connect("kept", context.storedSession));
      expect(again).toMatchObject({ messageId, dup: true, payload: Buffer.from("old") });
      expect(again.properties?.messageExpiryInterval).toBe(0);
    },
  },
  {
    name: "an event that the client refuses is not sent again",
    v5: ["4.4.0-2"],
    run: async (context) => {
      const first = await context.connect("kept", context.storedSession);
      await context.subscribe(first, context.topic);
      await context.publish("refused", { qos: 1 });
      const { messageId } = await first.next("publish");
      first.send({ cmd: "puback", messageId, reasonCode: 0x80 });
      await first.expectQuiet();
      first.drop();
      await (await context.connect("kept", context.storedSession)).expectQuiet();
    },
  },
  {
    name: "a will is published when the connection is lost",
    v4: ["3.1.2-8", "3.1.2-16"],
    v5: ["3.1.2-7", "3.1.2-8", "3.1.2-14"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const will = { topic: context.topic, payload: "lost", qos: 1, retain: false };
      (await context.connect("lost", { will })).drop();
      expect(await context.take(reader)).toMatchObject({ payload: Buffer.from("lost"), qos: 1, retain: false });
    },
  },
  {
    name: "a will is published when the client breaks the protocol",
    v4: ["3.1.2-8", "4.8.0-1"],
    v5: ["3.1.2-8"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const will = { topic: context.topic, payload: "broken", qos: 1, retain: false };
      (await context.connect("broken", { will })).sendBytes(Buffer.of(0, 0));
      expect(textsOf(await context.receive(reader, 1))).toEqual(["broken"]);
    },
  },
  {
    name: "no will is published after DISCONNECT",
    v4: ["3.1.2-10", "3.1.2-12", "3.14.4-3"],
    v5: ["3.1.2-10", "3.14.4-3"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const will = { topic: context.topic, payload: "left", qos: 1, retain: false };
      const leaving = await context.connect("leaving", { will });
      leaving.send({ cmd: "disconnect", reasonCode: 0 });
      await leaving.expectClosed();
      await context.publish("after");
      expect(textsOf(await context.receive(reader, 1))).toEqual(["after"]);
    },
  },
  {
    name: "a will is published after a DISCONNECT with any reason but 0x00",
    v5: ["3.1.2-8"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      for (const reasonCode of [0x04, 0x80, 0x81, 0x99]) {
        const will = { topic: context.topic, payload: `left with ${reasonCode}`, qos: 1, retain: false };
        (await context.connect("leaving", { will })).send({ cmd: "disconnect", reasonCode });
        expect(textsOf(await context.receive(reader, 1))).toEqual([`left with ${reasonCode}`]);
      }
    },
  },
  {
    name: "if a client reconnects within its Will Delay Interval, its will is not published",
    v5: ["3.1.3-9", "3.1.2-10"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const will = {
        topic: context.topic,
        payload: "late",
        qos: 1,
        retain: false,
        properties: { willDelayInterval: 4 }, // long enough for a reconnect on a busy machine
      };
      (await context.connect("back", { ...context.storedSession, will })).drop();
      await context.connect("back", context.storedSession);
      const clock = await context.connect("clock", { keepalive: 3 });
      await clock.expectEnded(0x8d); // The broker ends it after 4.5 s, 1.5 times its keep-alive. Then the delay is over.
      await context.publish("after");
      expect(textsOf(await context.receive(reader, 1))).toEqual(["after"]);
    },
  },
];
