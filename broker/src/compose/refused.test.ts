import { hash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";

const pageBytes = 4096;
const killed = "killed";
const stopped = "stopped";
type Leaving = typeof killed | typeof stopped;

let root: string;
/** The folder under test. */
let folder: string;
let taken: Server;

function start(dataDir: string, env: Readonly<Record<string, string>> = {}, logger = silentLogger) {
  const ports = { STELE_PORT: "0", STELE_MQTT_PORT: "off", STELE_STOMP_PORT: "off" };
  const all = { ...ports, STELE_DATA_DIR: dataDir, ...env };
  const outcome = loadConfig({ env: all, argv: [], readFile: () => "", version: "test" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return startServer(outcome.config, { logger, secrets: outcome.secrets });
}

async function publish({ url }: RunningServer, contents: readonly string[]): Promise<void> {
  await fetch(`${url}/rest/open?topic=t`);
  for (const content of contents) {
    const answer = await fetch(`${url}/rest/publish?topic=t&content=${content}`);
    expect(await answer.json()).toMatchObject({ status: "SUCCESS" });
  }
}

/** Copies the folder of a broker three times: stopped after three events, and killed and stopped after three more. */
async function fill(name: string): Promise<void> {
  const live = join(root, `${name}-live`);
  const first = await start(live);
  await publish(first, ["first-a", "first-b", "first-c"]);
  await first.stop();
  cpSync(live, join(root, `${name}-before`), { recursive: true });
  const second = await start(live);
  await publish(second, ["second-a", "second-b", "second-c"]);
  cpSync(live, join(root, `${name}-${killed}`), { recursive: true });
  await second.stop();
  cpSync(live, join(root, `${name}-${stopped}`), { recursive: true });
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "stele-refused-"));
  await fill("own");
  await fill("other");
  taken = createServer();
  await new Promise<void>((resolve) => taken.listen({ host: "127.0.0.1", port: 0 }, resolve));
});
afterAll(async () => {
  await new Promise((resolve) => taken.close(resolve));
  rmSync(root, { recursive: true });
});
beforeEach(() => {
  folder = mkdtempSync(join(root, "test-"));
});

function portOf(server: Server): string {
  const address = server.address();
  return String(typeof address === "object" ? address?.port : "");
}

/** Files without data: SQLite's index of a log, which it creates again at each start, and locks. */
const filesWithoutData = /-shm$|lock(-journal)?$/;

/** The hash of each file, by name. */
function contentsOf(path: string): Readonly<Record<string, string>> {
  const names = readdirSync(path).filter((name) => !filesWithoutData.test(name));
  return Object.fromEntries(names.toSorted().map((name) => [name, hash("sha256", readFileSync(join(path, name)))]));
}

function file(name: string): string {
  return join(folder, name);
}

function change(name: string, edit: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file(name));
  edit(bytes);
  writeFileSync(file(name), bytes);
}

function flip(name: string, at: (bytes: Buffer) => number): void {
  change(name, (bytes) => {
    const place = at(bytes);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
  });
}

function placeOf(text: string): (bytes: Buffer) => number {
  return (bytes) => {
    const place = bytes.indexOf(text);
    expect(place).toBeGreaterThan(0);
    return place;
  };
}

function remove(...names: readonly string[]): void {
  for (const name of names) rmSync(file(name), { force: true });
}

function take(source: string, names: readonly string[]): void {
  for (const name of names) {
    remove(name);
    if (existsSync(join(root, source, name))) cpSync(join(root, source, name), file(name));
  }
}

function changeStore(statement: string): void {
  const database = new DatabaseSync(file("store.sqlite"));
  database.exec(statement);
  database.close();
}

function damageIndex(): void {
  changeStore("update topics set sequence = sequence + 1");
}

function damageBlock(): void {
  change("chain.sqlite", (bytes) => {
    // At every place: pages keep old copies, which nobody reads.
    for (let at = bytes.indexOf("first-b"); at >= 0; at = bytes.indexOf("first-b", at + 1)) bytes[at] = 0;
  });
}

/** Bytes of the header of SQLite's write-ahead log. */
const logHeaderBytes = 32;

function loseHeader(): void {
  change("chain.sqlite-wal", (bytes) => void bytes.fill(0, 0, logHeaderBytes));
}

/** Copies the chain's log into its database, and leaves the log as it was. */
function copyLog(): void {
  const database = new DatabaseSync(file("chain.sqlite"));
  database.exec("pragma wal_checkpoint(passive)");
  const log = readFileSync(file("chain.sqlite-wal"));
  database.close();
  writeFileSync(file("chain.sqlite-wal"), log);
}

const store = ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"];
const chain = ["chain.sqlite", "chain.sqlite-wal", "chain.sqlite-shm"];
const head = "chain.sqlite-head";

interface Case {
  readonly damage?: () => void;
  readonly env?: () => Readonly<Record<string, string>>;
  readonly says: RegExp;
}

const anyEnd: Readonly<Record<string, Case>> = {
  "another chain id": { env: () => ({ STELE_CHAIN_ID: "77" }), says: /has chain id/ },
  "another key": {
    damage: () => writeFileSync(file("signer.key"), `${"07".repeat(32)}\n`),
    says: /for other accounts/,
  },
  "no key": { damage: () => remove("signer.key"), says: /signer\.key is missing/ },
  "a damaged key": {
    damage: () => writeFileSync(file("signer.key"), "nonsense"),
    says: /signer\.key does not hold 32/,
  },
  "a damaged key of secrets": { damage: () => writeFileSync(file("secrets.key"), "x"), says: /secrets\.key/ },
  "no chain": { damage: () => remove(...chain), says: /chain\.sqlite is missing/ },
  "an older chain": { damage: () => take("own-before", chain), says: /has lost blocks.*its head file.*Restore/ },
  "an older chain and head file": {
    damage: () => take("own-before", [...chain, head]),
    says: /index of group 1.*has lost blocks and is perhaps damaged.*docs\/backup\.md#repair/,
  },
  "an older chain, and no head file": {
    damage: () => {
      take("own-before", chain);
      remove(head);
    },
    says: /index of group 1.*has lost blocks and is perhaps damaged.*docs\/backup\.md#repair/,
  },
  "an older chain, and an older store": {
    damage: () => take("own-before", [...chain, ...store]),
    says: /has lost blocks.*its head file.*Restore/,
  },
  "an older chain, and no store": {
    damage: () => {
      take("own-before", chain);
      remove(...store);
    },
    says: /has lost blocks.*its head file.*Restore.*delete nothing/,
  },
  "an older chain, and neither store nor head file": {
    damage: () => {
      take("own-before", chain);
      remove(...store, head);
    },
    says: /sqlite-head is missing, and there is no index.*Restore/,
  },
  "a damaged head file, and no store": {
    damage: () => {
      flip(head, () => 30);
      remove(...store);
    },
    says: /sqlite-head is damaged, and there is no index.*Restore/,
  },
  "a damaged row of the index, and no head file": {
    damage: () => {
      damageIndex();
      remove(head);
    },
    says: /store\.sqlite is damaged.*sqlite-head is missing.*Repair it with store\.sqlite of a backup/,
  },
  "neither chain nor store": {
    damage: () => remove(...chain, ...store),
    says: /chain\.sqlite is missing or empty: chain\.sqlite-head beside it knows that chain up to block \d+.*Restore/,
  },
  "neither chain nor store, and a damaged head file": {
    damage: () => {
      flip(head, () => 30);
      remove(...chain, ...store);
    },
    says: /chain\.sqlite is missing or empty: chain\.sqlite-head beside it is damaged.*Restore/,
  },
  "the chain of another folder": {
    damage: () => take("other-stopped", [...chain, "signer.key"]),
    says: /another one than before.*the chain has 0x.*delete nothing/,
  },
  "the chain of another folder, with its head file": {
    damage: () => take("other-stopped", [...chain, head, "signer.key"]),
    says: /the chain has 0x.* there.*docs\/backup\.md#repair/,
  },
  "a store that is not a database": {
    damage: () => change("store.sqlite", (bytes) => void bytes.fill(7, 0, pageBytes)),
    says: /store\.sqlite is/,
  },
  "a taken port for MQTT": {
    env: () => ({ STELE_MQTT_PORT: portOf(taken) }),
    says: /Port \d+ of 127\.0\.0\.1 is taken: .* STELE_MQTT_PORT/,
  },
  "a taken port": { env: () => ({ STELE_PORT: portOf(taken) }), says: /Port \d+ of 127\.0\.0\.1 is taken/ },
};

const killedOnly: Readonly<Record<string, Case>> = {
  "a flipped bit in the chain's log": {
    damage: () => flip("chain.sqlite-wal", placeOf("second-a")),
    says: /chain\.sqlite-wal is damaged at byte \d+.*delete nothing/,
  },
  "a flipped bit in the chain's log, and no store": {
    damage: () => {
      flip("chain.sqlite-wal", placeOf("second-a"));
      remove(...store, "chain.sqlite-shm");
    },
    says: /chain\.sqlite-wal is damaged at byte \d+/,
  },
  "a damaged first page of the chain's log": {
    damage: () => change("chain.sqlite-wal", (bytes) => void bytes.fill(0, 0, pageBytes)),
    says: /chain\.sqlite-wal is damaged at byte 0/,
  },
  "no header of the chain's log, which no checkpoint has copied": {
    damage: loseHeader,
    says: /chain\.sqlite-wal is damaged at byte 0/,
  },
  "a cut log of the chain": {
    damage: () => truncateSync(file("chain.sqlite-wal"), readFileSync(file("chain.sqlite-wal")).length / 2),
    says: /chain\.sqlite-wal is damaged at byte \d+/,
  },
  "no log of the chain": {
    damage: () => remove("chain.sqlite-wal", "chain.sqlite-shm"),
    says: /has lost blocks and is perhaps damaged/,
  },
  "no log of the chain, and no store": {
    damage: () => remove("chain.sqlite-wal", "chain.sqlite-shm", ...store),
    says: /has lost blocks and is perhaps damaged/,
  },
  "a log of the chain without its last transaction, and no store": {
    damage: () => {
      flip("chain.sqlite-wal", (bytes) => bytes.length - 1);
      remove("chain.sqlite-shm", ...store);
    },
    says: /has lost blocks and is perhaps damaged/,
  },
};

const stoppedOnly: Readonly<Record<string, Case>> = {
  // After a kill the log holds the first page too, and SQLite reads that one.
  "a chain that is not a database": {
    damage: () => change("chain.sqlite", (bytes) => void bytes.fill(7, 0, pageBytes)),
    says: /chain\.sqlite is not a chain, or it is damaged/,
  },
  "a damaged block, and no store": {
    damage: () => {
      damageBlock();
      remove(...store);
    },
    says: /chain\.sqlite is damaged: Block \d+/,
  },
  "a damaged block, and a damaged row of the index, which has the block's events": {
    damage: () => {
      damageBlock();
      damageIndex();
    },
    says: /store\.sqlite is damaged.*chain\.sqlite.*Block \d+ of the chain is damaged.*Repair it with store\.sqlite of a backup/,
  },
  "a store of a newer version": {
    damage: () => changeStore("update schema_version set version = 99"),
    says: /written by a newer version/,
  },
  "damaged subscriptions": {
    damage: () => change("store.sqlite", (bytes) => void bytes.fill(0xa5, 2 * pageBytes, 30 * pageBytes)),
    says: /store\.sqlite is damaged/,
  },
};

function casesOf(end: Leaving): readonly (readonly [string, Case])[] {
  return Object.entries({ ...anyEnd, ...(end === killed ? killedOnly : stoppedOnly) });
}

describe.each<Leaving>([killed, stopped])("a start that is refused changes no file of a broker that was %s", (end) => {
  it.each(casesOf(end))("%s", async (_, { damage, env, says }) => {
    cpSync(join(root, `own-${end}`), folder, { recursive: true });
    damage?.();
    const before = contentsOf(folder);
    await expect(start(folder, env?.())).rejects.toThrow(says);
    expect(contentsOf(folder)).toEqual(before);
  });
});

it("logs a damaged store log at start, and catches up the index from the chain", async () => {
  cpSync(join(root, `own-${killed}`), folder, { recursive: true });
  flip("store.sqlite-wal", placeOf("second-a"));
  const errors: string[] = [];
  const server = await start(folder, {}, { ...silentLogger, error: (message) => void errors.push(message) });
  const state = await fetch(`${server.url}/rest/state?topic=t`);
  await server.stop();
  expect(errors).toEqual(["store's log damaged: writes after that place are lost"]);
  expect(await state.json()).toMatchObject({ sequenceNumber: 6 });
});

it("warns of a damaged head file, and has written it again after a clean stop", async () => {
  cpSync(join(root, `own-${stopped}`), folder, { recursive: true });
  const whole = contentsOf(folder)[head];
  flip(head, () => 30);
  const warnings: string[] = [];
  const server = await start(folder, {}, { ...silentLogger, warn: (message) => void warnings.push(message) });
  await server.stop();
  expect(warnings).toContain("chain's head file damaged, the next block will write a new one");
  expect(contentsOf(folder)[head]).toBe(whole);
});

it("starts with an older chain if an operator has accepted it and moved the store away", async () => {
  cpSync(join(root, `own-${stopped}`), folder, { recursive: true });
  take("own-before", chain);
  remove(...store);
  writeFileSync(file(head), "accept\n");
  const warnings: string[] = [];
  const server = await start(folder, {}, { ...silentLogger, warn: (message) => void warnings.push(message) });
  const state = await fetch(`${server.url}/rest/state?topic=t`);
  await server.stop();
  expect(warnings).toContain("chain accepted as it is");
  expect(await state.json()).toMatchObject({ sequenceNumber: 3 });
});

it("starts with every event if a power loss destroyed the log's header after a checkpoint had copied the log", async () => {
  cpSync(join(root, `own-${killed}`), folder, { recursive: true });
  copyLog();
  loseHeader();
  const server = await start(folder);
  await publish(server, ["third-a"]);
  await server.stop();
  const next = await start(folder);
  const state = await fetch(`${next.url}/rest/state?topic=t`);
  await next.stop();
  expect(await state.json()).toMatchObject({ sequenceNumber: 7 });
});

it("warns that it begins a new chain if the folder has only a key", async () => {
  cpSync(join(root, `own-${stopped}`, "signer.key"), file("signer.key"));
  const warnings: string[] = [];
  const server = await start(folder, {}, { ...silentLogger, warn: (message) => void warnings.push(message) });
  await server.stop();
  expect(warnings).toContain("new chain begun with an existing signer key: found neither chain nor store");
});

it("creates no data folder if its port is taken", async () => {
  await expect(start(join(folder, "new"), { STELE_PORT: portOf(taken) })).rejects.toThrow(/is taken/);
  expect(readdirSync(folder)).toEqual([]);
});
