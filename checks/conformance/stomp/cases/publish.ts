import { expect } from "vitest";
import { type Case, inAll, since11 } from "../case.ts";

export const publishCases: readonly Case[] = [
  {
    name: "a SEND is answered by its RECEIPT, and delivered as a MESSAGE with the same body, destination and eventId",
    covers: {
      "1.0": ["receipt-1", "receipt-2", "message-1", "message-2", "message-3", "subscribe-2", "subscribe-6"],
      ...since11("receipt-1", "message-1"),
    },
    run: async (context) => {
      const peer = await context.connect();
      const id = await context.subscribe(peer);
      const { headers: answer, body } = await peer.ask(
        "SEND",
        { destination: context.topic, "content-type": "text/plain" },
        "héllo",
      );
      expect(body).toHaveLength(0);
      const first = await peer.next("MESSAGE");
      expect(first.headers).toMatchObject({
        destination: context.topic,
        subscription: id,
        "message-id": answer["eventId"],
        eventId: answer["eventId"],
        "content-type": "text/plain",
        "content-length": "6",
      });
      expect(first.body.toString()).toBe("héllo");
      await peer.ask("SEND", { destination: context.topic }, "more");
      expect((await peer.next("MESSAGE")).headers["message-id"]).not.toBe(answer["eventId"]);
    },
  },
  {
    name: "user defined headers are passed through",
    covers: { "1.0": ["message-3"], ...since11("send-2") },
    run: async (context) => {
      const peer = await context.subscribed();
      await context.publish("x", { "svc-format": "json", priority: "5", "x-trace": "a b" });
      expect((await peer.next("MESSAGE")).headers).toMatchObject({
        "svc-format": "json",
        priority: "5",
        "x-trace": "a b",
      });
    },
  },
  {
    name: "a SEND with an empty body is delivered",
    covers: { "1.0": ["message-3"], ...since11("message-1") },
    run: async (context) => {
      const peer = await context.subscribed();
      await context.publish("");
      expect((await peer.next("MESSAGE")).body).toHaveLength(0);
    },
  },
  {
    name: "a SEND without destination gets an ERROR with its receipt-id",
    covers: { "1.0": ["send-1", "error-1"], ...since11("send-1", "send-3", "error-1", "error-2") },
    run: async (context) => {
      for (const other of [{}, { Destination: context.topic }]) {
        const error = await context.expectError((peer) => peer.send("SEND", { receipt: "none", ...other }, "x"));
        expect(error.headers["receipt-id"]).toBe("none");
        expect(Number(error.headers["code"])).toBeGreaterThan(100_000);
      }
    },
  },
  {
    name: "an ERROR has the content-length and content-type of its body",
    covers: { "1.0": ["error-1"], "1.2": ["type-2"] },
    run: async (context) => {
      const { headers, body } = await context.expectError((peer) => peer.send("SEND", {}, "x"));
      expect(headers).toMatchObject({ "content-type": "text/plain", "content-length": String(body.length) });
      expect(body.toString()).toContain("destination");
    },
  },
  {
    name: "a SEND that cannot be published gets an ERROR with the code of the catalogue",
    covers: { "1.0": ["error-1"], ...since11("send-3", "error-2") },
    run: async (context) => {
      const refused = [
        [{ destination: "a/+" }, "100106"],
        [{ destination: "t".repeat(2_000) }, "100102"],
        [{ destination: context.topic, groupId: "nowhere" }, "200211"],
      ] as const;
      for (const [headers, code] of refused) {
        const error = await context.expectError((peer) => peer.send("SEND", { ...headers, receipt: "r" }, "x"));
        expect(error.headers).toMatchObject({ code, "receipt-id": "r" });
      }
    },
  },
  {
    name: "every frame except CONNECT gets a RECEIPT if it has a receipt header",
    covers: inAll("receipt-1"),
    run: async (context) => {
      const peer = await context.connect({ receipt: "none" });
      const id = await context.subscribe(peer, { ack: "client" });
      await peer.ask("SEND", { destination: context.topic }, "1");
      const ackHeaders = context.ackHeaders(await peer.next("MESSAGE"));
      if (context.version !== "1.0") await peer.ask("NACK", ackHeaders);
      await peer.ask("ACK", ackHeaders);
      for (const end of ["COMMIT", "ABORT"]) {
        await peer.ask("BEGIN", { transaction: "t" });
        await peer.ask("SEND", { destination: context.topic, transaction: "t" }, "2");
        await peer.ask(end, { transaction: "t" });
      }
      await peer.ask("UNSUBSCRIBE", { id });
      await peer.ask("DISCONNECT");
    },
  },
  {
    name: "the receipts of a connection come in the order of its frames",
    covers: inAll("receipt-1"),
    run: async (context) => {
      const peer = await context.connect();
      const receipts = Array.from({ length: 10 }, (_, index) => `order-${index}`);
      for (const [index, receipt] of receipts.entries()) {
        if (index % 3 === 2) peer.send("BEGIN", { transaction: receipt, receipt });
        else peer.send("SEND", { destination: context.topic, receipt }, receipt);
      }
      const answers: (string | undefined)[] = [];
      for (const _ of receipts) answers.push((await peer.next("RECEIPT")).headers["receipt-id"]);
      expect(answers).toEqual(receipts);
    },
  },
  {
    name: "the events of a connection keep the order of its SEND frames, whatever their sizes",
    covers: { "1.0": ["subscribe-2"], ...since11("message-1") },
    run: async (context) => {
      const peer = await context.subscribed();
      const texts = Array.from({ length: 20 }, (_, index) => `${index}${"x".repeat((index % 5) * 200)}`);
      for (const text of texts) peer.send("SEND", { destination: context.topic }, text);
      expect(await context.take(peer, texts.length)).toEqual(texts);
    },
  },
  {
    name: "two SENDs with the same svc-publish-key are one event",
    covers: { "1.0": ["receipt-1"], ...since11("receipt-1") },
    run: async (context) => {
      const peer = await context.subscribed();
      const key = { "svc-publish-key": `key-${context.topic}` };
      const ids = [await context.publish("once", key), await context.publish("once", key)];
      expect(ids[1]).toBe(ids[0]);
      await context.publish("other");
      const { headers, body } = await peer.next("MESSAGE");
      expect(body.toString()).toBe("once");
      expect(headers).not.toHaveProperty("svc-publish-key"); // an instruction to the broker, not an extension
      expect(await context.take(peer, 1)).toEqual(["other"]);
    },
  },
  {
    name: "the broker answers DISCONNECT after it has handled all earlier frames, then closes the connection",
    covers: { "1.0": ["disconnect-1"], ...since11("disconnect-1") },
    run: async (context) => {
      const subscriber = await context.subscribed();
      const peer = await context.connect();
      for (let index = 0; index < 5; index += 1) peer.send("SEND", { destination: context.topic }, `${index}`);
      expect((await peer.ask("DISCONNECT")).headers["receipt-id"]).toMatch(/./);
      await peer.expectClosed();
      expect(await context.take(subscriber, 5)).toEqual(["0", "1", "2", "3", "4"]);
    },
  },
  {
    name: "the broker ignores frames after DISCONNECT",
    covers: { "1.0": ["disconnect-1"], ...since11("disconnect-2") },
    run: async (context) => {
      const subscriber = await context.subscribed();
      const peer = await context.connect();
      peer.send("DISCONNECT");
      peer.send("SEND", { destination: context.topic, receipt: "late" }, "late");
      await peer.expectClosed();
      await context.publish("marker");
      expect(await context.take(subscriber, 1)).toEqual(["marker"]);
    },
  },
];
