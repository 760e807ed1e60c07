import { expect } from "vitest";
import { connect, publish, utf8 } from "../bytes.ts";
import type { Case } from "../case.ts";
import { textsOf } from "../context.ts";

export const connectCases: readonly Case[] = [
  {
    name: "an unknown protocol level is refused with return code 1, and the connection closes",
    v4: ["3.1.2-2", "3.2.2-4", "3.2.2-5"],
    v5: ["3.1.2-2"],
    run: async (context) => {
      const peer = await context.open();
      peer.sendBytes(connect(4, { level: 9 }));
      const { returnCode, reasonCode, sessionPresent } = await peer.next("connack");
      expect([returnCode ?? reasonCode, sessionPresent]).toEqual([1, false]);
      await peer.expectClosed();
    },
  },
  {
    name: "a CONNECT is answered by one CONNACK with success",
    v4: ["3.1.4-4", "3.2.0-1", "3.2.2-1"],
    v5: ["3.1.4-5", "3.2.0-1", "3.2.0-2", "3.2.2-1", "3.2.2-2", "3.2.2-8", "4.12.0-6"],
    run: async (context) => {
      const peer = await context.open();
      const connack = await context.sendConnect(peer, "client");
      expect(connack.reasonCode ?? connack.returnCode).toBe(0);
      expect(connack.sessionPresent).toBe(false);
      expect(connack.properties ?? {}).not.toHaveProperty("authenticationMethod");
      await peer.expectQuiet();
    },
  },
  {
    name: "client identifiers of 1 to 23 letters and digits are accepted",
    v4: ["3.1.3-5"],
    v5: ["3.1.3-5"],
    run: async (context) => {
      for (const clientId of ["a", "0123456789ABCDEFGHIJklm"]) {
        const peer = await context.open();
        peer.send({ cmd: "connect", clientId, clean: true, keepalive: 0 });
        const { reasonCode, returnCode } = await peer.next("connack");
        expect(reasonCode ?? returnCode).toBe(0);
        peer.drop();
      }
    },
  },
  {
    name: "a client without an identifier gets a unique one",
    v4: ["3.1.3-6"],
    v5: ["3.1.3-6", "3.1.3-7", "3.2.2-16"],
    run: async (context) => {
      const assigned: unknown[] = [];
      for (let count = 0; count < 2; count += 1) {
        const peer = await context.open();
        peer.send({ cmd: "connect", clientId: "", clean: true, keepalive: 0 });
        const connack = await peer.next("connack");
        expect(connack.reasonCode ?? connack.returnCode).toBe(0);
        if (context.version === 5) assigned.push(connack.properties?.assignedClientIdentifier);
        await peer.expectQuiet();
      }
      if (context.version === 4) return;
      expect(new Set(assigned).size).toBe(2);
      expect(assigned).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
    },
  },
  {
    name: "a client without an identifier that wants to keep its session is refused",
    v4: ["3.1.3-7", "3.1.3-8", "3.1.3-9"],
    run: async (context) => {
      const peer = await context.open();
      peer.sendBytes(connect(4, { flags: 0, payload: [utf8("")] }));
      expect(await peer.next("connack")).toMatchObject({ returnCode: 2, sessionPresent: false });
      await peer.expectClosed();
    },
  },
  {
    name: "a client identifier that is too long is refused, and the broker ignores packets after it",
    v4: ["3.1.3-9", "3.1.4-5", "3.2.2-4", "3.2.2-5"],
    v5: ["3.1.3-8", "3.1.4-6", "3.2.2-6", "3.2.2-7", "4.13.2-1"],
    run: async (context) => {
      const peer = await context.open();
      const first = connect(context.version, { payload: [utf8("x".repeat(2_000))] });
      peer.sendBytes(first, publish(context.version));
      const { returnCode, reasonCode, sessionPresent } = await peer.next("connack");
      expect([reasonCode ?? returnCode, sessionPresent]).toEqual([context.version === 5 ? 0x85 : 2, false]);
      await peer.expectClosed();
    },
  },
  {
    name: "a will with an invalid topic name is refused: by reason code in 5.0, by a close without CONNACK in 3.1.1",
    v4: ["3.2.2-6"],
    v5: ["3.2.2-6", "3.2.2-7"],
    run: async (context) => {
      const peer = await context.open();
      const will = { topic: "/", payload: Buffer.from("w"), qos: 0, retain: false };
      peer.send({ cmd: "connect", clientId: context.clientId("will"), clean: true, keepalive: 0, will });
      if (context.version === 5) expect(await peer.next("connack")).toMatchObject({ reasonCode: 0x90 });
      await peer.expectClosed();
    },
  },
  {
    name: "a CONNACK leaves out a Reason String that would exceed Maximum Packet Size",
    v5: ["3.2.2-19", "3.2.2-20"],
    run: async (context) => {
      const peer = await context.open();
      const size = Buffer.from([39, 0, 0, 0, 10]);
      peer.sendBytes(connect(5, { payload: [utf8("x".repeat(2_000))], properties: [size] }));
      const { reasonCode, properties } = await peer.next("connack");
      expect([reasonCode, properties?.reasonString]).toEqual([0x85, undefined]);
      await peer.expectClosed();
    },
  },
  {
    name: "a CONNECT with an authentication method is refused, since the broker offers none",
    v5: ["3.1.4-2", "4.12.0-1", "4.12.0-4"],
    run: async (context) => {
      const peer = await context.open();
      const fields = { properties: { authenticationMethod: "SCRAM-SHA-1" } };
      expect(await context.sendConnect(peer, "client", fields)).toMatchObject({ reasonCode: 0x8c });
      await peer.expectClosed();
    },
  },
  {
    name: "a second connection with the same client identifier ends the first",
    v4: ["3.1.4-2", "3.1.3-2"],
    v5: ["3.1.4-3", "3.1.3-2"],
    run: async (context) => {
      const first = await context.connect("same");
      await context.connect("same");
      await first.expectEnded(0x8e);
    },
  },
  {
    name: "the connection of a silent client ends after one and a half times its keep-alive",
    v4: ["3.1.2-24"],
    v5: ["3.1.2-22", "3.2.2-22"],
    run: async (context) => {
      const startedAt = performance.now();
      const peer = await context.connect("silent", { keepalive: 1 });
      await peer.expectEnded(0x8d);
      expect(performance.now() - startedAt).toBeGreaterThan(1_400);
    },
  },
  {
    name: "a ping is answered",
    v4: ["3.12.4-1"],
    v5: ["3.12.4-1"],
    run: async (context) => (await context.connect()).expectQuiet(),
  },
  {
    name: "Response Information is not sent unless requested",
    v5: ["3.1.2-28"],
    run: async (context) => {
      const peer = await context.open();
      const connack = await context.sendConnect(peer, "client", { properties: { requestResponseInformation: false } });
      expect(connack.properties ?? {}).not.toHaveProperty("responseInformation");
    },
  },
  {
    name: "with Request Problem Information 0, a PUBACK has no Reason String",
    v5: ["3.1.2-29"],
    run: async (context) => {
      const peer = await context.connect("client", { properties: { requestProblemInformation: false } });
      peer.send({ cmd: "publish", topic: "\u00fcmlaut", payload: "x", qos: 1, messageId: 1 });
      const { reasonCode, properties } = await peer.next("puback");
      expect([reasonCode, properties?.reasonString]).toEqual([0x90, undefined]);
    },
  },
  {
    name: "U+FEFF in a string is kept",
    v4: ["1.5.3-3"],
    v5: ["1.5.4-3"],
    run: async (context) => {
      // Topic names of the broker are ASCII, so compare client identifiers: these are two clients.
      const plain = await context.connect("bom");
      const other = await context.open();
      await context.sendConnect(other, "bom\ufeff");
      await plain.expectQuiet();
    },
  },
  {
    name: "DISCONNECT ends the connection, and the broker ignores packets after it",
    v4: ["3.14.4-1", "3.14.4-2"],
    v5: ["3.14.4-1", "3.14.4-2"],
    run: async (context) => {
      const reader = await context.connect("reader");
      await context.subscribe(reader, context.topic);
      const peer = await context.connect();
      peer.sendBytes(Buffer.of(0xe0, 0), publish(context.version, { topic: utf8(context.topic) }));
      await peer.expectClosed();
      await context.publish("after");
      expect(textsOf(await context.receive(reader, 1))).toEqual(["after"]);
    },
  },
];
