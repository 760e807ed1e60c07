import { request } from "undici";
import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { Attackers, toBatch, toHead } from "./support/attackers.ts";
import { HonestCaller } from "./support/honest-caller.ts";
import { peakMebibytes } from "./support/process-memory.ts";

const mebibyte = 2 ** 20;
const peakMebibytesMax = 512;
/** Longest wait of an honest call. The burst of 600 MiB costs the broker up to 3 s of processor time on a machine with ten processes per processor. */
const honestWaitMsMax = 6000;
/** Longest wall time of an honest call. Leaves time for other work on the machine. A call that waits for the attack's timeouts takes 30 s. */
const honestWallMsMax = 20_000;
/** Maximum size of the answer to a batch, plus the errors of the refused calls. */
const batchBytesMax = 9 * mebibyte;
const membersMax = 1000;
const json = { "content-type": "application/json" };

const target = `0x${"aa".repeat(20)}`;
/** Code that calls itself twice with all its gas, and so runs until it is stopped. */
const endlessCall = [{ to: target }, "latest", { [target]: { code: "0x5f5f5f5f5f305af1505f5f5f5f5f305af150" } }];

/** CONNECT of MQTT 5.0 with a clean start and no client identifier. */
const mqttConnect = Buffer.from("100d00044d51545405020000000000", "hex");
/** A PUBLISH of 500,000 bytes without its last kilobyte. */
const unfinishedPublish = Buffer.concat([Buffer.from("30a0c21e00016100", "hex"), Buffer.alloc(499_000, "x")]);
const stompConnect = "CONNECT\naccept-version:1.2\nhost:x\n\n\0";
const unfinishedSend = `SEND\ndestination:honest\n\n${"x".repeat(499_000)}`;

interface Member {
  readonly result?: { readonly eventId?: string };
  readonly error?: { readonly data: { readonly code: number; readonly message: string } };
}

/**
 * Starts a broker for all tests of the enclosing describe block, with an event of 64 KiB and one of 12 kB. Returns a function that begins a test, with an
 * honest caller that works during the attack. The peak of the broker's memory is that of all tests so far.
 */
function useVictim() {
  const running = useWorld(embeddedWorld, { env: { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" } });
  let [eventId, shortEventId] = ["", ""];
  beforeAll(async () => {
    const { client } = running();
    await client.open("honest");
    ({ eventId } = await client.publish("honest", "x".repeat(65_536)));
    ({ eventId: shortEventId } = await client.publish("honest", "x".repeat(12_000)));
  });
  return () => {
    const { url, pid, stderr } = running().broker;
    const honest = new HonestCaller({ url, pid }, "honest");
    const attackers = new Attackers(url);
    const addressOf = (protocol: "MQTT" | "STOMP"): string =>
      new RegExp(`^ {2}${protocol} +(\\w+:\\S+:\\d+)$`, "m").exec(stderr())?.[1] ?? "";
    return {
      addressOf,
      eventId,
      shortEventId,
      attackers,
      async post(body: string): Promise<string> {
        return (await request(`${url}/jsonrpc`, { method: "POST", headers: json, body })).body.text();
      },
      /** The value of a metric, summed over all labels. */
      async metric(name: string): Promise<number> {
        const text = await (await request(`${url}/metrics`)).body.text();
        const values = text.matchAll(new RegExp(`^${name}(?:{.*})? (\\S+)$`, "gm"));
        return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
      },
      /** Stops the honest caller; returns the times of its calls, and the broker's peak memory. */
      async measure() {
        return { ...(await honest.stop()), mebibytes: peakMebibytes(pid) };
      },
      async [Symbol.asyncDispose]() {
        attackers[Symbol.dispose]();
        await honest[Symbol.asyncDispose]();
      },
    };
  };
}

type Victim = ReturnType<ReturnType<typeof useVictim>>;

async function expectUnharmed(victim: Victim): Promise<void> {
  const { waitMs, wallMs, mebibytes } = await victim.measure();
  process.stdout.write(
    `${expect.getState().currentTestName?.split(" > ").at(-1) ?? ""}: peak ${mebibytes.toFixed(0)} MiB\n`,
  );
  expect(mebibytes).toBeLessThan(peakMebibytesMax);
  expect(waitMs).toBeLessThan(honestWaitMsMax);
  expect(wallMs).toBeLessThan(honestWallMsMax);
}

describe("batches that amplify", () => {
  const attack = useVictim();

  it("six batches of 1,000 getEvent calls for a long event get answers below 9 MiB, and the refused calls say why", async () => {
    await using victim = attack();
    const batch = toBatch(membersMax, "getEvent", { eventId: victim.eventId });
    const answers = await Promise.all(Array.from({ length: 6 }, () => victim.post(batch)));
    for (const answer of answers) {
      expect(answer.length).toBeLessThan(batchBytesMax);
      const members = JSON.parse(answer) as readonly Member[]; // The answer to a batch.
      expect(members).toHaveLength(membersMax);
      expect(members[0]?.result?.eventId).toBe(victim.eventId);
      expect(members.at(-1)?.error?.data).toMatchObject({
        code: 200300,
        message: expect.stringContaining("the answer to the batch is over"),
      });
    }
    await expectUnharmed(victim);
  });

  it("fifteen batches of 1,000 getProof calls take turns with an honest caller", async () => {
    await using victim = attack();
    const batch = toBatch(membersMax, "getProof", { eventId: victim.eventId });
    const answers = await Promise.all(Array.from({ length: 15 }, () => victim.post(batch)));
    for (const answer of answers) expect(answer.length).toBeLessThan(batchBytesMax);
    await expectUnharmed(victim);
  });
});

describe("connections whose answers hold memory", () => {
  const attack = useVictim();

  it("clients that never read are disconnected", async () => {
    await using victim = attack();
    const batch = toBatch(membersMax, "getEvent", { eventId: victim.eventId });
    const head = toHead("/jsonrpc", { type: json["content-type"], length: batch.length });
    const single = `GET /rest/getEvent?eventId=${victim.eventId} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;
    const countEnded = () => victim.metric("stele_connections_ended_total");
    const before = await countEnded();
    await Promise.all([
      victim.attackers.send(6, [(head + batch).repeat(2)]),
      victim.attackers.send(6, [single.repeat(membersMax)]),
    ]);
    await until("every attacker is disconnected", async () => (await countEnded()) >= before + 12, {
      timeoutMs: 60_000,
    });
    await until(
      "the broker holds no memory for the attackers",
      async () => (await victim.metric("stele_bytes_in_flight")) === 0,
    );
    await expectUnharmed(victim);
  });

  it("clients that never read short answers are disconnected", async () => {
    await using victim = attack();
    const get = `GET /rest/getEvent?eventId=${victim.shortEventId} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;
    const countEnded = () => victim.metric("stele_connections_ended_total");
    const before = await countEnded();
    // Repeated requests fill the socket buffers of both sides, up to the limit of pipelined requests per connection.
    await victim.attackers.send(
      20,
      Array.from({ length: 40 }, () => get.repeat(250)),
    );
    await until("every attacker is disconnected", async () => (await countEnded()) >= before + 20, {
      timeoutMs: 60_000,
    });
    await expectUnharmed(victim);
  });

  it("a million pipelined requests behind a slow one do no harm", async () => {
    await using victim = attack();
    const call = { jsonrpc: "2.0", id: 1, method: "eth_call", params: endlessCall };
    const batch = JSON.stringify(Array.from({ length: membersMax }, () => call));
    const head = toHead("/chain", { type: json["content-type"], length: batch.length });
    const requests = "GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(10_000);
    await victim.attackers.send(1, [head + batch, ...Array.from({ length: 100 }, () => requests)]);
    await expectUnharmed(victim);
  });
});

describe("connections whose requests hold memory", () => {
  const attack = useVictim();

  it("600 bodies of 1 MiB that never end do no harm", async () => {
    await using victim = attack();
    const head = toHead("/rest/publish", { type: json["content-type"], length: mebibyte });
    await victim.attackers.send(600, [head, Buffer.alloc(mebibyte - 1, " ")]);
    await expectUnharmed(victim);
  });

  it.each([
    ["MQTT", [mqttConnect, unfinishedPublish]],
    ["STOMP", [stompConnect, unfinishedSend]],
  ] as const)("1,500 packets or frames of 500 kB that never end do no harm, by %s", async (protocol, pieces) => {
    await using victim = attack();
    using attackers = new Attackers(victim.addressOf(protocol));
    await attackers.send(1500, pieces);
    await expectUnharmed(victim);
  });

  it("chunked bodies with one byte per chunk do no harm", async () => {
    await using victim = attack();
    const head = "POST /rest/publish HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n";
    await victim.attackers.send(6, [head, "1\r\n \r\n".repeat(mebibyte - 1)]);
    await expectUnharmed(victim);
  });

  it("5,000 connections that send nothing do no harm", async () => {
    await using victim = attack();
    await victim.attackers.send(5000);
    await expectUnharmed(victim);
  });
});

describe("JSON that takes more memory parsed than as text", () => {
  const attack = useVictim();

  it.each([
    ["nested arrays", "["],
    ["empty objects", "{},"],
    ["objects with a member", '{"a":{}},'],
  ])("32 bodies of 1 MiB of %s are refused, and do no harm", async (_what, piece) => {
    await using victim = attack();
    const value = `[${piece.repeat(mebibyte / piece.length - 200)}1]`;
    const call = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "getProof",
      params: { eventId: victim.eventId, x: 0 },
    });
    const body = call.replace('"x":0', `"x":${value}`);
    const answers = await Promise.all(Array.from({ length: 32 }, () => victim.post(body)));
    for (const answer of answers) expect(answer).toMatch(/200001|200300/);
    await expectUnharmed(victim);
  });
});
