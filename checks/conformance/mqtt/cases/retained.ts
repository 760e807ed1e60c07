import { expect } from "vitest";
import type { Case } from "../case.ts";
import { type Context, textsOf } from "../context.ts";
import type { Peer } from "../peer.ts";

/** The messages that a new subscriber of the topic gets at once, each as its text and retain flag. */
async function retainedAt(context: Context, topic = context.topic): Promise<readonly string[]> {
  const reader = await context.connect(`reader-${context.newId()}`);
  await context.subscribe(reader, `${context.topic}/end`);
  await context.subscribe(reader, topic);
  await context.publish("end", { topic: `${context.topic}/end` });
  const found: string[] = [];
  for (let event = await context.take(reader); String(event.payload) !== "end"; event = await context.take(reader)) {
    found.push(`${String(event.payload)} ${event.retain}`);
  }
  return found;
}

function subscribeWith(context: Context, peer: Peer, rh: 0 | 1 | 2): Promise<void> {
  return context.subscribe(peer, context.topic, { rh, qos: 0 });
}

export const retainedCases: readonly Case[] = [
  {
    name: "a new subscriber gets the last retained message of the topic, with the retain flag",
    v4: ["3.3.1-5", "3.3.1-6", "3.3.1-8"],
    v5: ["3.3.1-5", "3.3.1-9"],
    run: async (context) => {
      await context.publish("first", { retain: true });
      await context.publish("last", { retain: true });
      expect(await retainedAt(context)).toEqual(["last true"]);
    },
  },
  {
    name: "a message without the retain flag does not change the retained message",
    v4: ["3.3.1-12"],
    v5: ["3.3.1-8"],
    run: async (context) => {
      expect(await retainedAt(context)).toEqual([]);
      await context.publish("kept", { retain: true });
      await context.publish("passing");
      expect(await retainedAt(context)).toEqual(["kept true"]);
    },
  },
  {
    name: "a retained message of QoS 0 replaces the former one",
    v4: ["3.3.1-7"],
    v5: ["3.3.1-5"],
    run: async (context) => {
      await context.publish("before", { retain: true });
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: context.topic, payload: "after", qos: 0, retain: true });
      await context.publish("x", { topic: `${context.topic}/other` }, writer);
      expect(await retainedAt(context)).toEqual(["after true"]);
    },
  },
  {
    name: "an empty retained message is delivered, removes the retained message, and is not retained itself",
    v4: ["3.3.1-10", "3.3.1-11"],
    v5: ["3.3.1-6", "3.3.1-7"],
    run: async (context) => {
      await context.publish("gone", { retain: true });
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      await context.take(reader);
      await context.publish("", { retain: true });
      expect(textsOf(await context.receive(reader, 1))).toEqual([""]);
      expect(await retainedAt(context)).toEqual([]);
    },
  },
  {
    name: "an existing subscriber gets a retained message without the retain flag",
    v4: ["3.3.1-9"],
    v5: ["3.3.1-12"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      await context.publish("x", { retain: true });
      expect(await context.take(reader)).toMatchObject({ retain: false });
    },
  },
  {
    name: "with Retain As Published, a message keeps its retain flag",
    v5: ["3.3.1-13"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic, { rap: true });
      await context.publish("one", { retain: true });
      await context.publish("two");
      expect((await context.receive(reader, 2)).map(({ retain }) => retain)).toEqual([true, false]);
    },
  },
  {
    name: "Retain Handling decides at which SUBSCRIBE retained messages are sent",
    v5: ["3.3.1-9", "3.3.1-10", "3.3.1-11", "3.8.4-4"],
    run: async (context) => {
      await context.publish("kept", { retain: true });
      const reader = await context.connect("reader");
      await subscribeWith(context, reader, 2);
      await context.publish("live 1");
      expect(textsOf(await context.receive(reader, 1))).toEqual(["live 1"]);
      await subscribeWith(context, reader, 1); // the subscription exists already
      await context.publish("live 2");
      expect(textsOf(await context.receive(reader, 1))).toEqual(["live 2"]);
      await subscribeWith(context, reader, 0);
      expect(textsOf(await context.receive(reader, 1))).toEqual(["kept"]);
      const other = await context.connect("other");
      await subscribeWith(context, other, 1);
      expect(textsOf(await context.receive(other, 1))).toEqual(["kept"]);
    },
  },
  {
    name: "retained messages are not part of a session, and remain when it ends",
    v4: ["3.1.2-7"],
    run: async (context) => {
      await context.publish("kept", { retain: true });
      (await context.connect("client", context.storedSession)).drop();
      await context.connect("client");
      expect(await retainedAt(context)).toEqual(["kept true"]);
    },
  },
  {
    name: "a will with the retain flag is a retained message",
    v4: ["3.1.2-17"],
    v5: ["3.1.2-15"],
    run: async (context) => {
      const reader = await context.connect("watch");
      await context.subscribe(reader, context.topic);
      const will = { topic: context.topic, payload: "lost", qos: 1, retain: true };
      (await context.connect("lost", { will })).drop();
      await context.take(reader);
      expect(await retainedAt(context)).toEqual(["lost true"]);
    },
  },
];
