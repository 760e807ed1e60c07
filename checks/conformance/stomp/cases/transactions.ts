import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Case, since11 } from "../case.ts";
import { expectLeft } from "../context.ts";

const atomic = { "1.0": ["begin-2", "send-2"], ...since11("begin-2") };

export const transactionCases: readonly Case[] = [
  {
    name: "the SENDs of a transaction are published at its COMMIT, together and in order",
    covers: {
      ...atomic,
      "1.0": ["begin-1", "begin-2", "send-2", "commit-1"],
      ...since11("begin-1", "begin-2", "commit-1"),
    },
    run: async (context) => {
      const subscriber = await context.subscribed();
      const peer = await context.connect();
      await peer.ask("BEGIN", { transaction: "t" });
      for (const text of ["1", "2", "3"])
        await peer.ask("SEND", { destination: context.topic, transaction: "t" }, text);
      await context.publish("before");
      expect(await context.take(subscriber, 1)).toEqual(["before"]);
      await peer.ask("COMMIT", { transaction: "t" });
      const messages = [
        await subscriber.next("MESSAGE"),
        await subscriber.next("MESSAGE"),
        await subscriber.next("MESSAGE"),
      ];
      expect(messages.map(({ body }) => body.toString())).toEqual(["1", "2", "3"]);
      const blocks = messages.map(({ headers }) => headers["eventId"]?.split("-").at(-1));
      expect(new Set(blocks).size).toBe(1);
    },
  },
  {
    name: "a COMMIT publishes nothing if one of its SENDs is refused",
    covers: { ...atomic, ...since11("begin-2", "send-3", "error-2") },
    run: async (context) => {
      const subscriber = await context.subscribed();
      const peer = await context.connect();
      await peer.ask("BEGIN", { transaction: "t" });
      peer.send("SEND", { destination: context.topic, transaction: "t" }, "good");
      peer.send("SEND", { destination: "a/+/b", transaction: "t" }, "bad");
      peer.send("COMMIT", { transaction: "t", receipt: "r" });
      await peer.expectRefused();
      await context.publish("marker");
      expect(await context.take(subscriber, 1)).toEqual(["marker"]);
    },
  },
  {
    name: "ABORT drops the SENDs of its transaction",
    covers: { "1.0": ["abort-1", "begin-2"], ...since11("abort-1", "begin-2") },
    run: async (context) => {
      const subscriber = await context.subscribed();
      const peer = await context.connect();
      await peer.ask("BEGIN", { transaction: "t" });
      await peer.ask("SEND", { destination: context.topic, transaction: "t" }, "never");
      await peer.ask("ABORT", { transaction: "t" });
      await peer.ask("BEGIN", { transaction: "t" });
      await peer.ask("COMMIT", { transaction: "t" });
      await context.publish("marker");
      expect(await context.take(subscriber, 1)).toEqual(["marker"]);
    },
  },
  {
    name: "a transaction that is open when its connection ends is aborted",
    covers: { "1.0": ["begin-2"], ...since11("begin-3") },
    run: async (context) => {
      const subscriber = await context.subscribed();
      for (const isRegular of [true, false]) {
        const peer = await context.connect();
        await peer.ask("BEGIN", { transaction: "t" });
        await peer.ask("SEND", { destination: context.topic, transaction: "t" }, "never");
        if (isRegular) await peer.ask("DISCONNECT");
        else peer.drop();
      }
      await context.publish("marker");
      expect(await context.take(subscriber, 1)).toEqual(["marker"]);
    },
  },
  {
    name: "an ACK in a transaction takes effect at COMMIT",
    covers: { "1.0": ["ack-2", "begin-2"], ...since11("ack-3", "begin-2") },
    run: async (context) => {
      const id = randomUUID();
      const peer = await context.connect();
      await context.subscribe(peer, { ack: "client", "svc-subscriptionId": id });
      await context.publish("1");
      await context.publish("2");
      const [first, second] = [await peer.next("MESSAGE"), await peer.next("MESSAGE")];
      for (const transaction of ["kept", "dropped"]) await peer.ask("BEGIN", { transaction });
      context.settle(peer, "ACK", { message: first, transaction: "kept" });
      context.settle(peer, "ACK", { message: second, transaction: "dropped" });
      await peer.ask("COMMIT", { transaction: "kept" });
      await peer.ask("DISCONNECT");
      await expectLeft(context, id, ["2"]);
    },
  },
  {
    name: "a NACK in a transaction takes effect at COMMIT",
    covers: since11("nack-1", "begin-2"),
    run: async (context) => {
      const peer = await context.subscribed({ ack: "client-individual" });
      await context.publish("1");
      const message = await peer.next("MESSAGE");
      await peer.ask("BEGIN", { transaction: "t" });
      context.settle(peer, "NACK", { message, transaction: "t" });
      await context.publish("2");
      expect(await context.take(peer, 1)).toEqual(["2"]);
      await peer.ask("COMMIT", { transaction: "t" });
      expect(await context.take(peer, 1)).toEqual(["1"]);
    },
  },
  {
    name: "a BEGIN of a transaction that is open gets an ERROR",
    covers: { "1.0": ["begin-1"], "1.1": ["begin-1"], "1.2": ["begin-4"] },
    run: async (context) => {
      const peer = await context.connect();
      await peer.ask("BEGIN", { transaction: "t" });
      peer.send("BEGIN", { transaction: "t", receipt: "again" });
      expect((await peer.expectRefused()).headers["receipt-id"]).toBe("again");
    },
  },
  {
    name: "a frame of a transaction that is not open gets an ERROR",
    covers: {
      "1.0": ["begin-1", "commit-1", "abort-1"],
      ...since11("begin-1", "commit-1", "abort-1", "error-2"),
    },
    run: async (context) => {
      const frames = [
        ["BEGIN", {}],
        ["COMMIT", {}],
        ["ABORT", {}],
        ["COMMIT", { transaction: "none" }],
        ["ABORT", { transaction: "none" }],
        ["SEND", { transaction: "none", destination: context.topic }],
      ] as const;
      for (const [command, headers] of frames) {
        const error = await context.expectError((peer) => peer.send(command, { ...headers, receipt: "r" }));
        expect(error.headers["receipt-id"]).toBe("r");
      }
    },
  },
  {
    name: "an ACK or NACK in a transaction that is not open gets an ERROR",
    covers: { "1.0": ["ack-2"], ...since11("ack-3", "nack-1", "error-2") },
    run: async (context) => {
      const commands = context.version === "1.0" ? ["ACK"] : ["ACK", "NACK"];
      for (const command of commands) {
        const peer = await context.subscribed({ ack: "client" });
        await context.publish("x");
        const ackHeaders = context.ackHeaders(await peer.next("MESSAGE"));
        peer.send(command, { ...ackHeaders, transaction: "none", receipt: "r" });
        expect((await peer.expectRefused()).headers["receipt-id"]).toBe("r");
      }
    },
  },
];
