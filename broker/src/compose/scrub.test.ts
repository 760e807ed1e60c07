import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { runScrub } from "./scrub.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";

const contents = ["whatever-is-first", "whatever-is-second", "whatever-is-third"];

let root: string;
let folder: string;
let eventIds: readonly string[];

async function start(dataDir: string, scrubPeriodMs = 1): Promise<RunningServer> {
  const env = {
    STELE_PORT: "0",
    STELE_DATA_DIR: dataDir,
    STELE_SCRUB_PERIOD_MS: String(scrubPeriodMs),
    STELE_CHAIN_UNSAVED_BYTES_MAX: "0",
  };
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return startServer(outcome.config, { logger: silentLogger, secrets: outcome.secrets });
}

async function call({ url }: RunningServer, path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${url}/rest/${path}`)).json()) as Record<string, unknown>; // The operations that the test calls answer with objects.
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "stele-scrub-"));
  const server = await start(join(root, "intact"));
  await call(server, "open?topic=t");
  const results = [];
  for (const content of contents) results.push(await call(server, `publish?topic=t&content=${content}`));
  eventIds = results.map(({ eventId }) => String(eventId));
  await server.stop();
});
afterAll(() => rmSync(root, { recursive: true }));
beforeEach(() => {
  folder = mkdtempSync(join(root, "test-"));
  cpSync(join(root, "intact"), folder, { recursive: true });
});

/** Damages the first bytes of every copy of a content in a file, because unused parts of pages keep old copies. */
function damage(name: string, content: string | undefined, bytes = 1): void {
  const file = join(folder, name);
  const whole = readFileSync(file);
  const places: number[] = [];
  for (let place = whole.indexOf(content ?? "?"); place >= 0; place = whole.indexOf(content ?? "?", place + 1)) {
    places.push(place);
  }
  expect(places).not.toEqual([]);
  for (const place of places) {
    for (let index = place; index < place + bytes; index += 1) whole[index] = (whole[index] ?? 0) ^ 0x55;
  }
  writeFileSync(file, whole);
}

/** Damages the receipt of the transaction that published a content. The broker cannot repair a receipt: the index has the content, but no receipts. */
function damageReceipt(content: string | undefined): void {
  const sqlite = new DatabaseSync(join(folder, "chain.sqlite"));
  const find = sqlite.prepare("SELECT place, receipt FROM transactions WHERE instr(raw, ?) > 0");
  const { place, receipt } = find.get(Buffer.from(content ?? "?")) as { place: number; receipt: Uint8Array }; // The columns' types.
  receipt[receipt.length - 1] = (receipt.at(-1) ?? 0) ^ 0x55;
  sqlite.prepare("UPDATE transactions SET receipt = ? WHERE place = ?").run(receipt, place);
  sqlite.close();
}

function damageParentHash(number: number): void {
  const sqlite = new DatabaseSync(join(folder, "chain.sqlite"));
  const { header } = sqlite.prepare("SELECT header FROM blocks WHERE number = ?").get(number) as { header: Uint8Array }; // The column's type.
  header[10] = (header[10] ?? 0) ^ 0x55; // The header is an RLP list: 3 bytes with its length, then the parent hash.
  sqlite.prepare("UPDATE blocks SET header = ? WHERE number = ?").run(header, number);
  sqlite.close();
}

function scrub(log: (line: string) => void = () => {}) {
  return runScrub(["--data-dir", folder], { env: {}, log });
}

function blockOf(index: number): string {
  return eventIds[index]?.split("-")[2] ?? "";
}

describe("stele scrub", () => {
  it("finds no damage in an intact folder", async () => {
    const outcome = await scrub();
    expect(outcome).toMatchObject({ exitCode: 0, problem: "" });
    expect(outcome.output).toMatch(
      /^group 1, chain: [1-9]\d* blocks checked, 0 damaged, 0 repaired\ngroup 1, places: [1-9]\d* entries checked, 0 damaged, 0 repaired\ngroup 1, state: [1-9]\d* nodes checked, 0 damaged, 0 repaired\ngroup 1, index: 3 batches checked, 0 damaged, 0 repaired\n$/,
    );
  });

  it("repairs a block of the chain from the index, and a batch of the index from the chain", async () => {
    damage("chain.sqlite", contents[1], 10);
    damage("store.sqlite", contents[2]);
    const outcome = await scrub();
    expect(outcome.exitCode).toBe(1);
    expect(outcome.output).toMatch(
      /chain: \d+ blocks checked, 1 damaged, 1 repaired\n.*places: .*\n.*state: .*\n.*index: 3 batches checked, 1 damaged, 1 repaired\n$/,
    );
    expect(await scrub()).toMatchObject({ exitCode: 0 });
  });

  it("reports what it found even if it cannot close the store, and ends with exit code 2", async () => {
    damage("store.sqlite", contents[2]);
    const store = join(folder, "store.sqlite");
    const log = (line: string): void => {
      if (line.includes("group ready")) renameSync(store, `${store}.away`);
    };
    expect(await scrub(log)).toEqual({
      exitCode: 2,
      output: expect.stringContaining("index: 3 batches checked, 1 damaged, 1 repaired\n"),
      problem: expect.stringMatching(/^stele scrub: \S+store\.sqlite was moved, deleted or replaced/),
    });
  });

  it("reports what it found even if it cannot close the chain, and ends with exit code 2", async () => {
    const head = join(folder, "chain.sqlite-head");
    const log = (line: string): void => {
      if (!line.includes("group ready")) return;
      // The close writes a missing head file again, first under the name `.unfinished`: a folder of that name makes the write fail.
      rmSync(head);
      mkdirSync(`${head}.unfinished`);
    };
    expect(await scrub(log)).toEqual({
      exitCode: 2,
      output: expect.stringContaining("index: 3 batches checked, 0 damaged, 0 repaired\n"),
      problem: expect.stringMatching(/^stele scrub: chain \S+chain\.sqlite cannot be written: EISDIR/),
    });
  });

  it("rebuilds the chain's table `places` from its blocks if a row is missing", async () => {
    const sqlite = new DatabaseSync(join(folder, "chain.sqlite"));
    sqlite.exec("DELETE FROM places WHERE key = (SELECT key FROM places LIMIT 1)");
    sqlite.close();
    const outcome = await scrub();
    expect(outcome).toMatchObject({
      exitCode: 1,
      output: expect.stringMatching(/places: \d+ entries checked, 1 damaged, 1 repaired\n/),
    });
    expect(await scrub()).toMatchObject({ exitCode: 0 });
  });

  it("rebuilds an index with a damaged head, and names the damaged table", async () => {
    const sqlite = new DatabaseSync(join(folder, "store.sqlite"));
    sqlite.exec("UPDATE groups SET batch_count = batch_count - 1");
    sqlite.close();
    const outcome = await scrub();
    expect(outcome.exitCode).toBe(1);
    expect(outcome.output).toMatch(
      /index: 3 batches checked, 1 damaged, 1 repaired\nthe index was damaged .*table groups, /,
    );
    expect(await scrub()).toMatchObject({ exitCode: 0 });
  });

  it("does not report an index as rebuilt if its chain does not answer", async () => {
    const sqlite = new DatabaseSync(join(folder, "store.sqlite"));
    sqlite.exec("UPDATE groups SET batch_count = batch_count - 1");
    sqlite.close();
    const groups = [
      { id: "1", endpoints: "embedded" },
      { id: "away", endpoints: ["http://127.0.0.1:1"] },
    ];
    const env = { STELE_GROUPS: JSON.stringify(groups) };
    const outcome = await runScrub(["--data-dir", folder], { env, log: () => {} });
    expect(outcome.output).toMatch(
      /group 1, index: 3 batches checked, 1 damaged, 1 repaired\nthe index was damaged and is rebuilt from the chain: table groups, /,
    );
    expect(outcome.output).toMatch(
      /group away, index: 0 batches checked, 1 damaged, 0 repaired\nthe index was damaged and was emptied, .*; the index may lack events of the chain \(\S+: the connection was refused\)/,
    );
  });

  it("escapes the text of a chain's error in the output for a terminal, but not in JSON", async () => {
    const error = { code: -32_000, message: "\u001b[2J\nno such chain" };
    const endpoint = createServer((request, response) => {
      request.resume();
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error }));
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void endpoint.close());
    await once(endpoint, "listening");
    const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`;
    const groups = [
      { id: "1", endpoints: "embedded" },
      { id: "away", endpoints: [url] },
    ];
    const env = { STELE_GROUPS: JSON.stringify(groups) };
    const copy = `${folder}-copy`;
    cpSync(folder, copy, { recursive: true });
    const [{ output }, { output: json }] = await Promise.all([
      runScrub(["--data-dir", folder], { env, log: () => {} }),
      runScrub(["--data-dir", copy, "-o", "json"], { env, log: () => {} }),
    ]);
    expect(output).toMatch(
      /^the index may lack events of the chain \(.*\\u\{1b\}\[2J\\u\{a\}no such chain.*\): start/m,
    );
    const reports = JSON.parse(json) as readonly { readonly advice?: string }[]; // The command's own format.
    expect(reports.at(-1)?.advice).toContain(error.message);
  });

  it("escapes the name of a missing folder in its error message", async () => {
    const outcome = await runScrub(["--data-dir", join(folder, "\u001b[2J\nmissing")], { env: {}, log: () => {} });
    expect(outcome).toMatchObject({
      exitCode: 2,
      problem: expect.stringContaining("\\u{1b}[2J\\u{a}missing does not"),
    });
  });

  it("names a block that it cannot repair, and what to restore", async () => {
    damage("chain.sqlite", contents[1]);
    damage("store.sqlite", contents[1]);
    const outcome = await scrub();
    expect(outcome.exitCode).toBe(1);
    expect(outcome.output).toMatch(/chain: \d+ blocks checked, 1 damaged, 0 repaired\n/);
    expect(outcome.output).toContain(`the chain's file is damaged in block ${blockOf(1)}: `);
    expect(outcome.output).toContain("repair it with the store of a backup that has these blocks");
    expect(outcome.output).toMatch(
      /index: \d batches checked, 1 damaged, 0 repaired\nthe index is damaged: .*with store\.sqlite of a backup/,
    );
  });

  it.each<[string, () => void, string]>([
    ["is not there", () => {}, "does not exist: name the broker's data folder by --data-dir"],
    ["is empty", () => mkdirSync(folder), "chain.sqlite is missing or empty: a broker with these settings"],
    [
      "has only a key",
      () => cpSync(join(root, "intact", "signer.key"), join(folder, "signer.key")),
      "chain.sqlite is missing or empty: a broker with these settings",
    ],
  ])("refuses a folder that %s, and makes no chain there", async (_, make, says) => {
    rmSync(folder, { recursive: true });
    make();
    const lines: string[] = [];
    const before = existsSync(folder) ? readdirSync(folder) : [];
    const outcome = await scrub((line) => lines.push(line));
    expect(outcome).toMatchObject({ exitCode: 2, output: "", problem: expect.stringContaining(says) });
    const after = existsSync(folder) ? readdirSync(folder) : [];
    expect(after.filter((name) => name !== "lock")).toEqual(before);
    expect(lines.filter((line) => line.includes("new chain"))).toEqual([]);
  });

  it("refuses a folder that a broker uses, or that a broker would refuse at its start", async () => {
    const server = await start(folder);
    expect(await scrub()).toMatchObject({ exitCode: 2, problem: expect.stringContaining("in use by another broker") });
    await server.stop();
    rmSync(join(folder, "signer.key"));
    expect(await scrub()).toMatchObject({ exitCode: 2, problem: expect.stringContaining("signer.key is missing") });
  });
});

it("a broker with a block that it cannot repair answers from the index, and its health names the block", async () => {
  damageReceipt(contents[1]);
  const server = await start(folder);
  await vi.waitFor(() => expect(server.health()[0]?.warning).toContain(`damaged in block ${blockOf(1)}: `), 20_000);
  expect(server.health()[0]).toMatchObject({ ready: true });
  const event = await call(server, `getEvent?eventId=${eventIds[1]}`);
  expect(Buffer.from(String(event.content), "base64").toString()).toBe(contents[1]);
  expect(await call(server, "publish?topic=t&content=another")).toMatchObject({ status: "SUCCESS" });
  const metrics = async () => (await fetch(`${server.url}/metrics`)).text();
  expect(await metrics()).toContain('stele_chain_damaged_total{group="1",outcome="unmended"} 1\n');
  const ended = /stele_scrub_ended_timestamp_seconds\{group="1",part="chain"\} 1\d+/;
  await vi.waitFor(async () => expect(await metrics()).toMatch(ended), 20_000);
  await server.stop();
});

describe("a proof from a damaged block, without scrubbing", () => {
  it("is returned after the broker has repaired the block from the index", async () => {
    damage("chain.sqlite", contents[1], 10);
    const server = await start(folder, 0);
    expect(await call(server, `proof?eventId=${eventIds[1]}`)).toMatchObject({ event: { eventId: eventIds[1] } });
    expect(server.health()[0]?.warning).toBeUndefined();
    await server.stop();
    expect(await scrub()).toMatchObject({ exitCode: 0 });
  });

  it("is refused if the block cannot be repaired; the error and health name the damaged block", async () => {
    damageReceipt(contents[1]);
    const server = await start(folder, 0);
    const message = expect.stringContaining(`block ${blockOf(1)}, or the next one, is damaged in the chain's file`);
    expect(await call(server, `proof?eventId=${eventIds[1]}`)).toMatchObject({ code: 200206, message });
    expect(server.health()[0]?.warning).toContain(`damaged in block ${blockOf(1)}: `);
    expect(await call(server, `proof?eventId=${eventIds[0]}`)).toMatchObject({ event: { eventId: eventIds[0] } });
    await server.stop();
  });

  it("is refused if the header of the next block, which contains this block's hash, is damaged", async () => {
    damageParentHash(Number(blockOf(1)));
    const server = await start(folder, 0);
    const message = expect.stringContaining(`block ${blockOf(0)}, or the next one, is damaged in the chain's file`);
    expect(await call(server, `proof?eventId=${eventIds[0]}`)).toMatchObject({ code: 200206, message });
    expect(server.health()[0]?.warning).toContain(`damaged in block ${blockOf(1)}: `);
    await server.stop();
  });
});
