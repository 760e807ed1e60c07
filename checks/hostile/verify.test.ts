import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import {
  encodeEvents,
  findCheckedBatch,
  formatCompactProof,
  merklePath,
  merkleRoot,
  verifyCompactProof,
} from "@stele/wire";
import { encodeAbiParameters, toEventSelector, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Anvil, devKey, startAnvil } from "../harness/anvil.ts";
import { callBrokerCommand } from "../harness/broker-command.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import type { CommandRun } from "../harness/stele-command.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const topic = "hostile/verify";

/** A broker with its own registry: on a shared chain, anybody can deploy a registry. */
interface Publisher extends AsyncDisposable {
  readonly broker: BrokerProcess;
  readonly eventId: string;
  readonly registry: string;
  readonly signer: string;
}

async function startPublisher(anvil: Anvil, { folder, key }: { folder: TempFolder; key: number }): Promise<Publisher> {
  const env = groupsEnv([{ id: "1", endpoints: [anvil.url], privateKey: devKey(key) }]);
  const broker = await startBroker({ dataDir: join(folder.path, `broker-${key}`), env });
  const client = new Client(broker.url);
  await until("the broker is ready", () => client.isReady());
  await client.open(topic);
  const { eventId } = await client.publish(topic, `of broker ${key}`);
  const proof = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${eventId}` });
  const { registry } = proof.json() as { registry: string }; // A proof, docs/proofs.md.
  const { senderAddress } = await client.state(topic);
  await client[Symbol.asyncDispose]();
  return {
    broker,
    eventId,
    registry: registry.toLowerCase(),
    signer: senderAddress.toLowerCase(),
    [Symbol.asyncDispose]: () => broker[Symbol.asyncDispose](),
  };
}

describe("stele verify on a shared chain", () => {
  const folder = createTempFolder();
  const known = join(folder.path, "config", "stele", "known-registries.json");
  let anvil: Anvil;
  let honest: Publisher;
  let stranger: Publisher;

  beforeAll(async () => {
    anvil = await startAnvil();
    honest = await startPublisher(anvil, { folder, key: 0 });
    stranger = await startPublisher(anvil, { folder, key: 1 });
  });

  afterAll(async () => {
    await stranger?.[Symbol.asyncDispose]();
    await honest?.[Symbol.asyncDispose]();
    await anvil?.stop();
    folder[Symbol.dispose]();
  });

  const verify = ({ broker }: Publisher, ...words: readonly string[]): Promise<CommandRun> =>
    callBrokerCommand("verify", [...words, "--broker", broker.url, "--rpc", anvil.url], {
      XDG_CONFIG_HOME: join(folder.path, "config"),
    });
  const inTopic = ["--topic", topic];

  it("stele verify exits 2 while no registry is pinned, and names the registry that it found", async () => {
    for (const words of [[stranger.eventId], inTopic]) {
      const { code, stdout, stderr } = await verify(stranger, ...words);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain("no registry is pinned");
      expect(stderr).toContain(stranger.registry);
    }
    expect(existsSync(known)).toBe(false);
  });

  it("stele verify verifies under the registry of --registry, and does not remember this registry", async () => {
    for (const words of [[honest.eventId], inTopic]) {
      const { code, stderr } = await verify(honest, ...words, "--registry", honest.registry);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    }
    expect(existsSync(known)).toBe(false);
  });

  it("stele verify refutes the events of a sender other than --publisher", async () => {
    const pinned = ["--registry", honest.registry];
    for (const words of [[honest.eventId], inTopic]) {
      const foreign = await verify(honest, ...words, ...pinned, "--publisher", stranger.signer);
      expect({ code: foreign.code, stdout: foreign.stdout }).toEqual({
        code: 1,
        stdout: expect.stringContaining(honest.signer),
      });
      const own = await verify(
        honest,
        ...words,
        ...pinned,
        "--publisher",
        stranger.signer,
        "--publisher",
        honest.signer,
      );
      expect(own.code).toBe(0);
    }
  });

  it("stele verify --remember pins the first registry with a warning, and refuses another registry from then on", async () => {
    const first = await verify(honest, honest.eventId, "--remember");
    expect({ code: first.code, stderr: first.stderr }).toEqual({ code: 0, stderr: expect.stringContaining("warning") });
    expect(readFileSync(known, "utf8")).toContain(honest.registry);
    for (const words of [[honest.eventId], inTopic]) {
      const { code, stderr } = await verify(honest, ...words);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    }
    for (const words of [[stranger.eventId], inTopic, [stranger.eventId, "--remember"], [...inTopic, "--remember"]]) {
      const { code, stdout, stderr } = await verify(stranger, ...words);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain(honest.registry);
      expect(stderr).toContain(stranger.registry);
    }
    expect(readFileSync(known, "utf8")).not.toContain(stranger.registry);
  });

  it("stele verify exits 2 for a file of known registries that it cannot read", async () => {
    const file = join(folder.path, "broken.json");
    writeFileSync(file, "{");
    const { code, stderr } = await verify(honest, honest.eventId, "--known-registries", file);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(file) });
  });
});

/** Writes zeros until the client disconnects. */
const answerWithoutEnd: RequestListener = (_request, response) => {
  const zeros = Buffer.alloc(1_048_576);
  const write = (): void => {
    while (response.write(zeros));
    response.once("drain", write);
  };
  write();
};

function answerWith(value: unknown): RequestListener {
  return (_request, response) => void response.end(JSON.stringify(value));
}

describe("stele verify against a malicious broker", () => {
  it.each([
    ["never ends its answer", answerWithoutEnd, "more than 67108864 bytes"],
    [
      "answers with a code that is not a number",
      answerWith({ code: { toString: null }, message: "" }),
      "like a broker",
    ],
    [
      "answers with a message that would clear the line",
      answerWith({ code: 200_300, message: "\u001B[2K\rverified\n" }),
      String.raw`200300 \u{1b}[2K\u{d}verified\u{a}`,
    ],
  ])("stele verify exits 2 and says why in one line if the broker %s", async (_name, listener, reason) => {
    const server = createServer(listener).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const broker = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // It listens on TCP.
      for (const words of [["11111111-1-1"], ["--topic", topic]]) {
        const { code, stdout, stderr } = await callBrokerCommand("verify", [...words, "--broker", broker]);
        expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
        expect(stderr).toContain(reason);
        expect(stderr.split("\n")).toHaveLength(2);
      }
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe("verifyCompactProof", () => {
  it("verifyCompactProof refuses index 2 in a batch of 1, even if the proof's path leads to the claimed root", () => {
    const events = ["one", "two", "three"].map((content) => ({ content: Buffer.from(content), extensions: [] }));
    const [first, , third] = events;
    if (first === undefined || third === undefined) throw new Error("no events");
    const tree = encodeEvents(events);
    const proof = formatCompactProof({ index: 2, count: 3, path: merklePath(tree, 2) });
    const batchOf = (written: Uint8Array, count: number) =>
      findCheckedBatch({
        topics: [
          toEventSelector("EventsPublished(address,uint64,address,bytes32,uint32,bytes)"),
          ...[112, 1, 7].map((value) => toHex(value, { size: 32 })),
        ],
        data: encodeAbiParameters(
          [{ type: "bytes32" }, { type: "uint32" }, { type: "bytes" }],
          [toHex(merkleRoot(tree)), count, toHex(written)],
        ),
      });
    expect(verifyCompactProof({ proof, event: third, batch: batchOf(tree, 3) })).toBe(true);
    expect(verifyCompactProof({ proof, event: third, batch: batchOf(encodeEvents([first]), 1) })).toBe(false);
    expect(verifyCompactProof({ proof, event: third, batch: batchOf(tree, 1) })).toBe(false);
  });
});
