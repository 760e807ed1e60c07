import { expect } from "vitest";
import type { Case } from "../case.ts";
import { textsOf } from "../context.ts";

export const subscribeCases: readonly Case[] = [
  {
    name: "SUBACK has the identifier of the SUBSCRIBE, and one code for each filter, in the order of the filters",
    v4: ["2.3.1-7", "3.8.4-1", "3.8.4-2", "3.8.4-4", "3.8.4-5", "3.9.3-1", "3.9.3-2", "4.7.1-2", "4.7.1-3"],
    v5: ["2.2.1-6", "3.8.4-1", "3.8.4-2", "3.8.4-5", "3.8.4-6", "3.8.4-7", "3.9.3-1", "3.9.3-2", "4.7.1-1", "4.7.1-2"],
    run: async (context) => {
      const peer = await context.connect();
      const filters = ["a", "a/#/b", "+/b/#", "a+", "#", "a/b#"];
      const subscriptions = filters.map((topic, index) => ({
        topic: topic === "#" ? `${context.topic}/#` : topic,
        qos: index % 3,
      }));
      peer.send({ cmd: "subscribe", messageId: 77, subscriptions });
      const refused = context.version === 5 ? 0x8f : 0x80;
      expect(await peer.next("suback")).toMatchObject({ messageId: 77, granted: [0, refused, 2, refused, 1, refused] });
    },
  },
  {
    name: "a SUBSCRIBE with the same filter replaces the subscription, and no event is lost",
    v4: ["3.8.4-3"],
    v5: ["3.8.4-3", "3.8.4-4"],
    run: async (context) => {
      const peer = await context.connect();
      await context.subscribe(peer, context.topic, { qos: 2 });
      await context.publish("before");
      await context.take(peer);
      await context.subscribe(peer, context.topic, { qos: 0 });
      await context.publish("after");
      expect(await peer.next("publish")).toMatchObject({ qos: 0, topic: context.topic });
      await peer.expectQuiet();
    },
  },
  {
    name: "overlapping filters deliver one copy, with the highest QoS of the filters and all subscription identifiers",
    v4: ["3.3.5-1"],
    v5: ["3.3.4-2", "3.3.4-3", "3.3.4-4"],
    run: async (context) => {
      const peer = await context.connect();
      const filters = [`${context.topic}/#`, `${context.topic}/+`];
      for (const [index, topic] of filters.entries()) {
        const properties = context.version === 5 ? { subscriptionIdentifier: index + 1 } : undefined;
        peer.send({ cmd: "subscribe", messageId: index + 1, subscriptions: [{ topic, qos: index }], properties });
        await peer.next("suback");
      }
      await context.publish("x", { topic: `${context.topic}/a`, qos: 1 });
      const event = await context.take(peer);
      expect(event.qos).toBe(1);
      if (context.version === 5) expect(event.properties?.subscriptionIdentifier).toEqual([1, 2]);
      await peer.expectQuiet();
    },
  },
  {
    name: "with No Local, a client does not get its own events",
    v5: ["3.8.3-3"],
    run: async (context) => {
      const peer = await context.connect();
      await context.subscribe(peer, context.topic, { nl: true, qos: 0 });
      await context.publish("own", {}, peer);
      await context.publish("other");
      expect(textsOf(await context.receive(peer, 1))).toEqual(["other"]);
    },
  },
  {
    name: "UNSUBACK has the packet identifier of the UNSUBSCRIBE, even if no subscription has any of the filters",
    v4: ["2.3.1-7", "3.10.4-4", "3.10.4-5", "3.10.4-6"],
    v5: ["2.2.1-6", "3.10.4-4", "3.10.4-5", "3.10.4-6", "3.11.3-1", "3.11.3-2"],
    run: async (context) => {
      const peer = await context.connect();
      await context.subscribe(peer, `${context.topic}/+`);
      peer.send({
        cmd: "unsubscribe",
        messageId: 9,
        unsubscriptions: [`${context.topic}/#`, `${context.topic}/+`, "a/#/b"],
      });
      const answer = await peer.next("unsuback");
      expect(answer.messageId).toBe(9);
      if (context.version === 5) expect(answer.granted).toEqual([0x11, 0, 0x8f]);
      peer.send({ cmd: "unsubscribe", messageId: 10, unsubscriptions: [`${context.topic}/+`] });
      expect(await peer.next("unsuback")).toMatchObject({ messageId: 10 });
    },
  },
  {
    name: "UNSUBSCRIBE removes only the filters that it names, and a delivery in progress is completed",
    v4: ["3.10.4-1", "3.10.4-2", "3.10.4-3"],
    v5: ["3.10.4-1", "3.10.4-2", "3.10.4-3"],
    run: async (context) => {
      const peer = await context.connect();
      await context.subscribe(peer, context.topic);
      await context.subscribe(peer, `${context.topic}/other`);
      await context.publish("under way", { qos: 1 });
      const { messageId } = await peer.next("publish");
      peer.send({ cmd: "unsubscribe", messageId: 9, unsubscriptions: [context.topic] });
      await peer.next("unsuback");
      peer.send({ cmd: "puback", messageId });
      await context.publish("no more");
      await context.publish("other", { topic: `${context.topic}/other` });
      expect(textsOf(await context.receive(peer, 1))).toEqual(["other"]);
    },
  },
];
