import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Case, only, since11 } from "../case.ts";
import { expectLeft } from "../context.ts";

export const subscribeCases: readonly Case[] = [
  {
    name: "a subscription without ack needs no ACK",
    covers: { "1.0": ["subscribe-3", "subscribe-2"], ...since11("subscribe-3") },
    run: async (context) => {
      const id = randomUUID();
      const peer = await context.connect();
      await context.subscribe(peer, { "svc-subscriptionId": id });
      await context.publish("1");
      const message = await peer.next("MESSAGE");
      expect(message.headers["ack"]).toBeUndefined();
      await peer.ask("DISCONNECT");
      await context.publish("2");
      const next = await context.connect();
      await context.subscribe(next, { "svc-subscriptionId": id });
      expect(await context.take(next, 1)).toEqual(["2"]);
    },
  },
  {
    name: "a SUBSCRIBE without destination gets an ERROR",
    covers: { "1.0": ["subscribe-1"], ...since11("subscribe-1", "error-2") },
    run: async (context) => {
      const error = await context.expectError((peer) => peer.send("SUBSCRIBE", { id: "1", receipt: "r" }));
      expect(error.headers["receipt-id"]).toBe("r");
    },
  },
  {
    name: "a SUBSCRIBE without id gets an ERROR",
    covers: since11("subscribe-2", "subscribe-1"),
    run: async (context) => {
      await context.expectError((peer) => peer.send("SUBSCRIBE", { destination: context.topic }));
    },
  },
  {
    name: "a STOMP 1.0 SUBSCRIBE may have no id: UNSUBSCRIBE then names the destination",
    covers: only("1.0", "unsubscribe-1", "subscribe-1"),
    run: async (context) => {
      const peer = await context.connect();
      await peer.ask("SUBSCRIBE", { destination: context.topic });
      await context.publish("x");
      expect((await peer.next("MESSAGE")).headers["subscription"]).toBeUndefined();
      await peer.ask("UNSUBSCRIBE", { destination: context.topic });
      await context.publish("y");
      await peer.expectQuiet();
    },
  },
  {
    name: "a STOMP 1.0 UNSUBSCRIBE may give the destination of a subscription that has an id",
    covers: only("1.0", "unsubscribe-1", "unsubscribe-2"),
    run: async (context) => {
      const peer = await context.subscribed();
      await peer.ask("UNSUBSCRIBE", { destination: context.topic });
      await context.publish("x");
      await peer.expectQuiet();
    },
  },
  {
    name: "a SUBSCRIBE with an id that is in use gets an ERROR",
    covers: { "1.2": ["subscribe-4", "subscribe-1"], "1.1": ["subscribe-1", "subscribe-2"] },
    run: async (context) => {
      const peer = await context.connect();
      await peer.ask("SUBSCRIBE", { id: "same", destination: context.topic });
      peer.send("SUBSCRIBE", { id: "same", destination: `${context.topic}/other` });
      await peer.expectRefused();
    },
  },
  {
    name: "a SUBSCRIBE that cannot be created gets an ERROR with the code of the catalogue",
    covers: { "1.0": ["error-1"], ...since11("subscribe-1") },
    run: async (context) => {
      const refused = [
        [{ destination: "a/#/b" }, "100109"],
        [{ eventId: "nonsense" }, "100302"],
        [{ "svc-subscriptionId": "mine" }, "100505"],
        [{ groupId: "nowhere" }, "200211"],
        [{ ack: "sometimes" }, "200001"],
        [{ "prefetch-count": "0" }, "200001"],
      ] as const;
      for (const [headers, code] of refused) {
        const order = { id: "1", destination: context.topic, receipt: "r", ...headers };
        const error = await context.expectError((peer) => peer.send("SUBSCRIBE", order));
        expect(error.headers).toMatchObject({ code, "receipt-id": "r" });
      }
    },
  },
  {
    name: "the RECEIPT of a SUBSCRIBE has the same subscription-id as each MESSAGE",
    covers: { "1.0": ["receipt-1"], ...since11("receipt-1") },
    run: async (context) => {
      const peer = await context.connect();
      const { headers } = await peer.ask("SUBSCRIBE", { id: "1", destination: context.topic });
      expect(headers["subscription-id"]).toMatch(/^[0-9a-f-]{36}$/);
      await context.publish("x");
      expect((await peer.next("MESSAGE")).headers["subscription-id"]).toBe(headers["subscription-id"]);
    },
  },
  {
    name: "a subscription begins after the event that its header eventId names, or at OFFSET_FIRST or OFFSET_LAST",
    covers: { "1.0": ["subscribe-2"], ...since11("message-1") },
    run: async (context) => {
      const ids = [await context.publish("1"), await context.publish("2"), await context.publish("3")];
      const expected = [
        ["OFFSET_FIRST", ["1", "2", "3", "4"]],
        [ids[1] ?? "", ["3", "4"]],
        ["OFFSET_LAST", ["4"]],
      ] as const;
      const peers = await Promise.all(expected.map(([eventId]) => context.subscribed({ eventId })));
      await context.publish("4");
      for (const [index, peer] of peers.entries()) {
        const texts = expected[index]?.[1] ?? [];
        expect(await context.take(peer, texts.length)).toEqual(texts);
      }
    },
  },
  {
    name: "a list of filters is one subscription, and an event that matches several filters is delivered once",
    covers: { "1.0": ["message-1"], ...since11("message-1") },
    run: async (context) => {
      const { topic } = context;
      const peer = await context.connect();
      await peer.ask("SUBSCRIBE", { id: "1", destination: `${topic}/a,${topic}/+,${topic}/b/#` });
      await context.publish("1", { destination: `${topic}/a` });
      await context.publish("2", { destination: `${topic}/b/c` });
      await context.publish("3", { destination: `${topic}/x/y` });
      await context.publish("4", { destination: `${topic}/d` });
      const messages = [await peer.next("MESSAGE"), await peer.next("MESSAGE"), await peer.next("MESSAGE")];
      expect(messages.map(({ headers, body }) => [headers["destination"], String(body)])).toEqual([
        [`${topic}/a`, "1"],
        [`${topic}/b/c`, "2"],
        [`${topic}/d`, "4"],
      ]);
    },
  },
  {
    name: "an event goes to each matching subscription of a connection, with the id of that subscription",
    covers: { "1.0": ["subscribe-6"], ...since11("message-1") },
    run: async (context) => {
      const peer = await context.connect();
      const ids = [await context.subscribe(peer), await context.subscribe(peer, { destination: "#" })];
      await context.publish("x");
      const found = new Set<string | undefined>();
      while (found.size < 2) {
        const { headers } = await peer.next("MESSAGE");
        if (headers["destination"] === context.topic) found.add(headers["subscription"]);
      }
      expect(found).toEqual(new Set(ids));
    },
  },
  {
    name: "after UNSUBSCRIBE no event comes, and the id is free",
    covers: { "1.0": ["unsubscribe-1", "unsubscribe-2"], ...since11("unsubscribe-1", "unsubscribe-2") },
    run: async (context) => {
      const peer = await context.connect();
      const id = await context.subscribe(peer);
      await context.publish("1");
      expect(await context.take(peer, 1)).toEqual(["1"]);
      await peer.ask("UNSUBSCRIBE", { id });
      await context.publish("2");
      await peer.expectQuiet();
      await peer.ask("SUBSCRIBE", { id, destination: context.topic });
      await context.publish("3");
      expect(await context.take(peer, 1)).toEqual(["3"]);
    },
  },
  {
    name: "UNSUBSCRIBE without id, or with one that is not in use, gets an ERROR",
    covers: { "1.0": ["unsubscribe-1"], ...since11("unsubscribe-1", "error-2") },
    run: async (context) => {
      await context.expectError((peer) => peer.send("UNSUBSCRIBE", { receipt: "r" }));
      const error = await context.expectError((peer) => peer.send("UNSUBSCRIBE", { id: "none", receipt: "r" }));
      expect(error.headers["receipt-id"]).toBe("r");
    },
  },
  {
    name: "with ack client an ACK is cumulative, and unacknowledged messages come again",
    covers: { "1.0": ["subscribe-4", "ack-1"], ...since11("ack-mode-1", "ack-mode-2", "ack-1", "ack-2") },
    run: async (context) => {
      const id = randomUUID();
      const peer = await context.connect();
      await context.subscribe(peer, { ack: "client", "svc-subscriptionId": id });
      for (const text of ["1", "2", "3", "4"]) await context.publish(text);
      const messages = [await peer.next("MESSAGE"), await peer.next("MESSAGE"), await peer.next("MESSAGE")];
      expect(messages.every(({ headers }) => (headers["ack"] !== undefined) === (context.version === "1.2"))).toBe(
        true,
      );
      const [, second] = messages;
      if (second !== undefined) context.settle(peer, "ACK", { message: second });
      await context.take(peer, 1);
      await peer.ask("DISCONNECT");
      await expectLeft(context, id, ["3", "4"]);
    },
  },
  {
    name: "with ack client-individual an ACK or NACK is for one message, and the others come again",
    covers: since11("ack-mode-3", "ack-1", "ack-2"),
    run: async (context) => {
      const id = randomUUID();
      const peer = await context.connect();
      await context.subscribe(peer, { ack: "client-individual", "svc-subscriptionId": id });
      for (const text of ["1", "2", "3"]) await context.publish(text);
      const messages = [await peer.next("MESSAGE"), await peer.next("MESSAGE"), await peer.next("MESSAGE")];
      const [, second, third] = messages;
      if (second !== undefined) context.settle(peer, "ACK", { message: second });
      if (third !== undefined) context.settle(peer, "NACK", { message: third });
      expect(await context.take(peer, 1)).toEqual(["3"]);
      await peer.ask("DISCONNECT");
      await expectLeft(context, id, ["1", "3"]);
    },
  },
  {
    name: "after a NACK the message comes again, before newer ones",
    covers: since11("nack-1", "ack-mode-3"),
    run: async (context) => {
      const peer = await context.subscribed({ ack: "client-individual", "prefetch-count": "1" });
      await context.publish("1");
      await context.publish("2");
      const message = await peer.next("MESSAGE");
      context.settle(peer, "NACK", { message });
      const again = await peer.next("MESSAGE");
      expect([again.body.toString(), again.headers["message-id"]]).toEqual(["1", message.headers["message-id"]]);
      context.settle(peer, "ACK", { message: again });
      expect(await context.take(peer, 1)).toEqual(["2"]);
    },
  },
  {
    name: "with ack client a NACK is for all earlier messages too",
    covers: since11("nack-1", "ack-mode-2"),
    run: async (context) => {
      const peer = await context.subscribed({ ack: "client" });
      for (const text of ["1", "2", "3"]) await context.publish(text);
      const messages = [await peer.next("MESSAGE"), await peer.next("MESSAGE"), await peer.next("MESSAGE")];
      const [, second] = messages;
      if (second !== undefined) context.settle(peer, "NACK", { message: second });
      expect(await context.take(peer, 2)).toEqual(["1", "2"]);
    },
  },
  {
    name: "an ACK of a message that was never delivered gets an ERROR",
    covers: { "1.0": ["ack-1"], ...since11("ack-1", "ack-2", "error-1", "error-2") },
    run: async (context) => {
      const foreign = { id: "9-nothing", "message-id": "nothing", subscription: "1", receipt: "r" };
      const error = await context.expectError((peer) => {
        peer.send("SUBSCRIBE", { id: "1", destination: context.topic, ack: "client" });
        peer.send("ACK", foreign);
      });
      expect(error.headers["receipt-id"]).toBe("r");
    },
  },
  {
    name: "an ACK or NACK without one of its headers gets an ERROR",
    covers: { "1.0": ["ack-1"], ...since11("ack-1", "ack-2", "nack-1") },
    run: async (context) => {
      const commands = context.version === "1.0" ? ["ACK"] : ["ACK", "NACK"];
      for (const command of commands) {
        for (const name of Object.keys(context.ackHeaders({ headers: {} }))) {
          const peer = await context.subscribed({ ack: "client" });
          await context.publish("x");
          const { [name]: _, ...rest } = context.ackHeaders(await peer.next("MESSAGE"));
          peer.send(command, rest);
          await peer.expectRefused();
        }
      }
    },
  },
  {
    name: "an ACK that names another subscription gets an ERROR",
    covers: only("1.1", "ack-1", "ack-2"),
    run: async (context) => {
      for (const subscription of ["other", "none"]) {
        const peer = await context.subscribed({ ack: "client" });
        await peer.ask("SUBSCRIBE", { id: "other", destination: `${context.topic}/other`, ack: "client" });
        await context.publish("x");
        const ackHeaders = context.ackHeaders(await peer.next("MESSAGE"));
        peer.send("ACK", { ...ackHeaders, subscription });
        await peer.expectRefused();
      }
    },
  },
  {
    name: "prefetch-count limits the unacknowledged messages",
    covers: { "1.0": ["subscribe-4"], ...since11("ack-mode-1") },
    run: async (context) => {
      const peer = await context.subscribed({ ack: "client", "prefetch-count": "2" });
      for (const text of ["1", "2", "3"]) await context.publish(text);
      await peer.next("MESSAGE");
      const second = await peer.next("MESSAGE");
      await peer.expectQuiet();
      context.settle(peer, "ACK", { message: second });
      expect(await context.take(peer, 1)).toEqual(["3"]);
    },
  },
];
