import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { checkProof, findCheckedBatch, verifyCompactProof, verifyProof } from "@stele/wire";
import { createPublicClient, http } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Anvil, devKey, startAnvil } from "../harness/anvil.ts";
import { callBrokerCommand } from "../harness/broker-command.ts";
import { type BrokerProcess, mainFile, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const page = readFileSync(new URL("../../docs/proofs.md", import.meta.url), "utf8");
const root = fileURLToPath(new URL("../..", import.meta.url));
const documented = { address: "http://127.0.0.1:8080", command: "npm run --silent stele --" };
const run = promisify(execFile);

/** The code between the markers with the given name. */
function codeOf(name: string): string {
  const [, code] = new RegExp(`<!-- ${name}:begin -->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
  if (code === undefined) throw new Error(`docs/proofs.md has no ${name}`);
  return code;
}

const canRun = ["bash", "curl", "sed"].every((tool) => {
  try {
    execFileSync(tool, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});

describe("docs/proofs.md", () => {
  const running = useWorld(embeddedWorld);

  it.runIf(canRun)(
    "the example and the program of docs/proofs.md work as described (needs bash, curl and sed)",
    async () => {
      using folder = createTempFolder();
      const { url } = running().broker;
      const command = `"${process.execPath}" "${mainFile}"`;
      const script = codeOf("example").replaceAll(documented.address, url).replaceAll(documented.command, command);
      const localScript = script.replaceAll(/ verify .*/g, (words) => `${words} --broker ${url}`);
      const { stdout } = await run("bash", ["-e", "-c", localScript], { cwd: folder.path });
      expect(stdout.match(/^verified: .*/gm)).toEqual([
        expect.stringMatching(/^verified: event [0-9a-f]{8}-1-\d+ is on the chain$/),
        "verified: events 1 to 1 of proofs/example match the chain exactly",
      ]);

      const file = join(folder.path, "proof.json");
      const program = codeOf("program").replace('"proof.json"', JSON.stringify(file));
      const proof = checkProof(JSON.parse(readFileSync(file, "utf8")));
      if (proof.status === "malformed") throw new Error(proof.reason);
      const [, , blockNumber = ""] = proof.proof.event.eventId.split("-");
      const block = await createPublicClient({ transport: http(`${url}/chain`) }).getBlock({
        blockNumber: BigInt(blockNumber),
      });
      const env = { ...process.env, BLOCK_HASH: block.hash, REGISTRY: proof.proof.registry };
      const result = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: root, env });
      expect(result.stdout).toBe("proofs/example 1 hello\n");
    },
  );

  it("docs/proofs.md names every step of the verification, in order", () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (?=the |it is )/gm)].map(([, step]) => step);
    expect(rows.slice(-8)).toEqual(["form", "header", "receipt", "log", "batch", "event", "topic", "publisher"]);
  });
});

describe("proofs in notifications", () => {
  const running = useWorld(embeddedWorld, { env: { STELE_NOTIFICATION_PLACE: "on" } });

  it("the proof in a notification matches the event's batch on the chain; getEvent returns the event without place and proof", async () => {
    const { client, broker } = running();
    await using receiver = await startReceiver();
    await client.open("place");
    await client.subscribe({ topic: "place", url: receiver.url });
    const contents = Array.from({ length: 50 }, (_, index) => `event ${index}`);
    await Promise.all(
      contents.map((content, index) =>
        client.publish("place", content, index % 2 === 0 ? {} : { "svc-n": String(index) }),
      ),
    );
    const chain = createPublicClient({ transport: http(`${broker.url}/chain`) });
    for (const event of await receiver.waitForCount(contents.length)) {
      const { extensions } = event;
      const {
        "svc-block": block,
        "svc-tx": hash,
        "svc-publisher": publisher,
        "svc-proof": proof = "",
        ...own
      } = extensions;
      const { logs, blockNumber, from } = await chain.getTransactionReceipt({ hash: hash as `0x${string}` }); // If the text is not a hash, the chain finds no receipt, and the test fails.
      expect({ block, publisher }).toEqual({ block: String(blockNumber), publisher: from });
      const payload = { content: Buffer.from(event.content, "base64"), extensions: Object.entries(own) };
      expect(logs.some((log) => verifyCompactProof({ proof, event: payload, batch: findCheckedBatch(log) }))).toBe(
        true,
      );
      expect(await client.getEvent(event.eventId)).toEqual({ ...event, extensions: own });
    }
  });
});

describe("a broker on anvil", () => {
  const topic = "proofs/anvil";
  let anvil: Anvil;
  let broker: BrokerProcess;
  let client: Client;
  let eventIds: readonly string[];
  let registry: string;
  const folder = createTempFolder();

  beforeAll(async () => {
    anvil = await startAnvil();
    const env = groupsEnv([{ id: "1", endpoints: [anvil.url], privateKey: devKey(0) }]);
    broker = await startBroker({ dataDir: folder.path, env });
    client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    await client.open(topic);
    const results = await Promise.all(
      Array.from({ length: 300 }, (_, index) => client.publish(topic, `event ${index}`, { "svc-n": String(index) })),
    );
    eventIds = results.map(({ eventId }) => eventId);
    const proof = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${eventIds[0]}` });
    ({ registry } = proof.json() as { registry: string }); // The answer is a proof.
  });

  afterAll(async () => {
    await client?.[Symbol.asyncDispose]();
    await broker?.stop();
    await anvil?.stop();
    folder[Symbol.dispose]();
  });

  const verify = (...args: readonly string[]) =>
    callBrokerCommand("verify", [...args, "--broker", broker.url, "--rpc", anvil.url, "--registry", registry]);

  it("stele verify confirms the broker's events with the chain node", async () => {
    for (const eventId of eventIds.filter((_, index) => index % 100 === 0)) {
      const { code, stdout } = await verify(eventId);
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`verified: event ${eventId}`) });
    }
  });

  it("verifyProof verifies each proof of the broker with the hash of the event's block, and refutes it with the hash of another block", async () => {
    for (const eventId of eventIds) {
      const answer = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${eventId}` });
      const proof = answer.json();
      const block = (await anvil.request("eth_getBlockByNumber", [
        `0x${Number(eventId.split("-")[2]).toString(16)}`,
        false,
      ])) as { hash: string; parentHash: string }; // The answer is a block.
      expect(verifyProof(proof, block.hash)).toMatchObject({ status: "verified", event: { eventId } });
      expect(verifyProof(proof, block.parentHash)).toMatchObject({ status: "refuted", step: "header" });
    }
  });

  it("stele verify finds the same events of a topic on the chain and in the broker", async () => {
    const { code, stdout } = await verify("--topic", topic, "--from", "1", "--to", "300", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ status: "verified", events: 300, onChain: 300, differences: [] });
    expect(code).toBe(0);
  });

  it("stele verify exits with 2 if the chain node is unreachable", async () => {
    const [eventId = ""] = eventIds;
    const args = [eventId, "--broker", broker.url, "--rpc", "http://127.0.0.1:9"];
    const { code, stderr } = await callBrokerCommand("verify", args);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("does not answer") });
  });
});
