import { expect } from "vitest";
import { publish, utf8 } from "../bytes.ts";
import type { Case } from "../case.ts";
import { textsOf } from "../context.ts";

export const publishCases: readonly Case[] = [
  {
    name: "a PUBLISH of each QoS is answered as the standard says, with its packet identifier",
    v4: ["2.3.1-6", "3.3.4-1", "4.3.2-2", "4.3.3-2"],
    v5: ["2.2.1-5", "3.3.4-1", "4.3.2-4", "4.3.3-8", "4.3.3-11"],
    run: async (context) => {
      const peer = await context.connect();
      peer.send({ cmd: "publish", topic: context.topic, payload: "0", qos: 0 });
      peer.send({ cmd: "publish", topic: context.topic, payload: "1", qos: 1, messageId: 11 });
      expect(await peer.next("puback")).toMatchObject({ messageId: 11 });
      peer.send({ cmd: "publish", topic: context.topic, payload: "2", qos: 2, messageId: 12 });
      expect(await peer.next("pubrec")).toMatchObject({ messageId: 12 });
      peer.send({ cmd: "pubrel", messageId: 12 });
      expect(await peer.next("pubcomp")).toMatchObject({ messageId: 12 });
    },
  },
  {
    name: "a PUBLISH of QoS 0 has no packet identifier",
    v4: ["2.3.1-5"],
    v5: ["2.2.1-2"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      await context.publish("\u0001\u0002", { qos: 1 });
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: context.topic, payload: "ab", qos: 0 });
      const [, second] = await context.receive(reader, 2);
      expect([String(second?.payload), second?.messageId]).toEqual(["ab", undefined]);
    },
  },
  {
    name: "an event is delivered with the lower QoS of publish and subscription, and without the DUP flag",
    v4: ["3.8.4-6", "3.3.1-2", "3.3.1-3", "4.3.1-1", "2.3.1-4", "3.3.2-3", "4.3.2-1"],
    v5: ["3.8.4-8", "3.3.1-2", "3.3.1-3", "4.3.1-1", "2.2.1-4", "3.3.2-3", "4.3.2-1", "4.3.2-2", "4.3.3-1", "4.3.3-2"],
    run: async (context) => {
      const readers = await Promise.all(
        [0, 1, 2].map(async (qos) => {
          const reader = await context.connect(`reader-${qos}`);
          await context.subscribe(reader, `${context.topic}/+`, { qos: qos as 0 | 1 | 2 });
          return reader;
        }),
      );
      const writer = await context.connect("writer");
      const topic = `${context.topic}/a`;
      writer.send({ cmd: "publish", topic, payload: "0", qos: 0 });
      writer.sendBytes(publish(context.version, { first: 0x3a, topic: utf8(topic), packetId: 1 })); // with the DUP flag
      writer.send({ cmd: "publish", topic, payload: "2", qos: 2, messageId: 2 });
      for (const [granted, reader] of readers.entries()) {
        for (const [published, event] of (await context.receive(reader, 3)).entries()) {
          expect(event).toMatchObject({ topic, qos: Math.min(granted, published), dup: false, retain: false });
          if (event.qos > 0) expect(event.messageId).toBeGreaterThan(0);
        }
      }
    },
  },
  {
    name: "events of a topic keep their order, and so do their acknowledgements",
    v4: ["4.6.0-2", "4.6.0-3", "4.6.0-5", "4.6.0-6"],
    v5: ["4.6.0-5", "4.6.0-6"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const writer = await context.connect("writer");
      const numbers = Array.from({ length: 30 }, (_, index) => index + 1);
      for (const messageId of numbers) {
        writer.send({
          cmd: "publish",
          topic: context.topic,
          payload: `${messageId}`,
          qos: 1 + (messageId % 2),
          messageId,
        });
      }
      for (const messageId of numbers) {
        expect(await writer.next(messageId % 2 === 0 ? "puback" : "pubrec")).toMatchObject({ messageId });
      }
      expect(textsOf(await context.receive(reader, 30))).toEqual(numbers.map(String));
    },
  },
  {
    name: "a repeated QoS 2 PUBLISH is one event until PUBREL, and a new event after it",
    v4: ["4.3.3-2"],
    v5: ["4.3.3-10", "4.3.3-12", "4.3.3-11"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const writer = await context.connect("writer");
      const send = (payload: string, dup: boolean): void =>
        writer.send({ cmd: "publish", topic: context.topic, payload, qos: 2, messageId: 7, dup });
      for (const dup of [false, true, true]) {
        send("once", dup);
        expect(await writer.next("pubrec")).toMatchObject({ messageId: 7 });
      }
      writer.send({ cmd: "pubrel", messageId: 7 });
      await writer.next("pubcomp");
      send("again", false);
      await writer.next("pubrec");
      expect(textsOf(await context.receive(reader, 2))).toEqual(["once", "again"]);
    },
  },
  {
    name: "after PUBACK or a refusing PUBREC, the same packet identifier means a new event",
    v5: ["4.3.2-5", "4.3.3-9"],
    run: async (context) => {
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: "\u00fcmlaut", payload: "x", qos: 2, messageId: 1 });
      expect(await writer.next("pubrec")).toMatchObject({ reasonCode: 0x90 });
      writer.send({ cmd: "publish", topic: context.topic, payload: "x", qos: 2, messageId: 1, dup: true });
      expect((await writer.next("pubrec")).reasonCode ?? 0).toBe(0);
      writer.send({ cmd: "pubrel", messageId: 1 });
      await writer.next("pubcomp");
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      for (const dup of [false, true]) {
        writer.send({ cmd: "publish", topic: context.topic, payload: `${dup}`, qos: 1, messageId: 2, dup });
        await writer.next("puback");
      }
      expect(textsOf(await context.receive(reader, 2))).toEqual(["false", "true"]);
    },
  },
  {
    name: "a refused publish gets a reason code in 5.0, and in 3.1.1 ends the connection",
    v4: ["3.3.5-2", "4.8.0-2"],
    v5: ["3.4.2-1", "3.4.2-2", "3.5.2-1"],
    run: async (context) => {
      const writer = await context.connect("writer");
      writer.send({ cmd: "publish", topic: "\u00fcmlaut", payload: "x", qos: 1, messageId: 1 });
      if (context.version === 4) await writer.expectClosed();
      else expect(await writer.next("puback")).toMatchObject({ messageId: 1, reasonCode: 0x90 });
    },
  },
  {
    name: "wildcards at the start of a filter match no topic that begins with $",
    v4: ["4.7.2-1"],
    v5: ["4.7.2-1"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, `+/${context.topic}/#`);
      await context.publish("hidden", { topic: `$own/${context.topic}/a` });
      await context.publish("shown", { topic: `own/${context.topic}/a` });
      expect(textsOf(await context.receive(reader, 1))).toEqual(["shown"]);
    },
  },
  {
    name: "topic names are compared character by character",
    v4: ["4.7.3-4"],
    v5: ["4.7.3-4"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, `${context.topic}/A b`);
      for (const name of ["a b", "A B", "A b/", "/A b"].map((text) => `${context.topic}/${text}`)) {
        if (!name.endsWith("/")) await context.publish(name, { topic: name });
      }
      await context.publish("same", { topic: `${context.topic}/A b` });
      expect(textsOf(await context.receive(reader, 1))).toEqual(["same"]);
    },
  },
  {
    name: "all properties of a publish reach the subscriber unaltered, user properties in order",
    v5: ["3.3.2-4", "3.3.2-15", "3.3.2-16", "3.3.2-17", "3.3.2-18", "3.3.2-20"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const properties = {
        payloadFormatIndicator: true,
        contentType: "text/plain",
        responseTopic: "answers/\u00e9",
        correlationData: Buffer.of(0, 1, 255),
        userProperties: { b: ["1", "2"], a: "3" },
      };
      await context.publish("x", { properties });
      const { properties: found = {} } = await context.take(reader);
      const { userProperties = {}, ...rest } = found;
      const { userProperties: sent, ...others } = properties;
      expect(rest).toEqual(others);
      const own = Object.entries(userProperties).filter(([name]) => !name.startsWith("svc-"));
      expect(own).toEqual(Object.entries(sent));
    },
  },
  {
    name: "an expired message is not delivered, and a later one carries what is left of its expiry interval",
    v5: ["3.3.2-5", "3.3.2-6", "4.3.3-13"],
    run: async (context) => {
      const first = await context.connect("reader", context.storedSession);
      await context.subscribe(first, context.topic);
      first.drop();
      const writer = await context.connect("writer");
      writer.send({
        cmd: "publish",
        topic: context.topic,
        payload: "gone",
        qos: 2,
        messageId: 1,
        properties: { messageExpiryInterval: 1 },
      });
      await writer.next("pubrec");
      await context.publish("left", { properties: { messageExpiryInterval: 100 } });
      const clock = await context.connect("clock", { keepalive: 1 });
      await clock.expectEnded(0x8d); // The broker ends it after 1.5 s, 1.5 times its keep-alive. Then "gone" has expired.
      writer.send({ cmd: "pubrel", messageId: 1 });
      expect((await writer.next("pubcomp")).reasonCode ?? 0).toBe(0);
      const again = await context.connect("reader", context.storedSession);
      const event = await context.take(again);
      expect(String(event.payload)).toBe("left");
      const { messageExpiryInterval = 0 } = event.properties ?? {};
      expect(messageExpiryInterval).toBeLessThan(100);
      expect(messageExpiryInterval).toBeGreaterThan(50);
    },
  },
  {
    name: "a topic alias of the client replaces the topic name, on one connection only",
    v5: ["3.3.2-7", "3.3.2-12"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const writer = await context.connect("writer");
      await context.publish("one", { properties: { topicAlias: 1 } }, writer);
      await context.publish("two", { topic: "", properties: { topicAlias: 1 } }, writer);
      expect(textsOf(await context.receive(reader, 2))).toEqual(["one", "two"]);
      const other = await context.connect("writer");
      other.send({ cmd: "publish", topic: "", payload: "x", qos: 0, properties: { topicAlias: 1 } });
      await other.expectEnded(0x82);
    },
  },
  {
    name: "topic aliases of the broker stay within the client's Topic Alias Maximum",
    v5: ["3.1.2-26", "3.1.2-27", "3.3.2-11"],
    run: async (context) => {
      const some = await context.connect("some", { properties: { topicAliasMaximum: 1 } });
      const none = await context.connect("none");
      for (const reader of [some, none]) await context.subscribe(reader, `${context.topic}/#`, { qos: 0 });
      for (const name of ["a", "b", "a"]) await context.publish(name, { topic: `${context.topic}/${name}` });
      const aliases = (await context.receive(some, 3)).map(({ topic, properties }) => [topic, properties?.topicAlias]);
      expect(aliases).toEqual([
        [`${context.topic}/a`, 1],
        [`${context.topic}/b`, undefined],
        ["", 1],
      ]);
      for (const { properties } of await context.receive(none, 3)) expect(properties).not.toHaveProperty("topicAlias");
    },
  },
  {
    name: "an event above the client's Maximum Packet Size counts as delivered",
    v5: ["3.1.2-24", "3.1.2-25"],
    run: async (context) => {
      const reader = await context.connect("reader", { properties: { maximumPacketSize: 200, receiveMaximum: 1 } });
      await context.subscribe(reader, context.topic);
      await context.publish("x".repeat(300));
      await context.publish("small");
      expect(textsOf(await context.receive(reader, 1))).toEqual(["small"]);
    },
  },
  {
    name: "at most Receive Maximum events are in flight, and pings are still answered",
    v5: ["3.3.4-9", "3.3.4-10", "4.9.0-1", "4.9.0-2", "4.9.0-3"],
    run: async (context) => {
      const reader = await context.connect("reader", { properties: { receiveMaximum: 2 } });
      await context.subscribe(reader, context.topic);
      for (const text of ["one", "two", "three"]) await context.publish(text);
      const [one, two] = [await reader.next("publish"), await reader.next("publish")];
      expect(textsOf([one, two])).toEqual(["one", "two"]);
      await reader.expectQuiet();
      reader.send({ cmd: "puback", messageId: one.messageId });
      expect(String((await reader.next("publish")).payload)).toBe("three");
    },
  },
  {
    name: "more publishes in flight than Receive Maximum end the connection",
    v5: ["3.3.4-7"],
    run: async (context) => {
      const peer = await context.open();
      const { properties } = await context.sendConnect(peer, "client");
      const most = properties?.receiveMaximum ?? 65_535;
      for (let messageId = 1; messageId <= most + 1; messageId += 1) {
        peer.send({ cmd: "publish", topic: context.topic, payload: "", qos: 2, messageId });
      }
      for (let packet = await peer.any(); ; packet = await peer.any()) {
        if (packet?.cmd === "pubrec") continue;
        expect(packet).toMatchObject({ cmd: "disconnect", reasonCode: 0x93 });
        return;
      }
    },
  },
];
