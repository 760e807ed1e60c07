import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkDataFolder } from "./folder.ts";
import { loadConfig } from "../config/load-config.ts";
import type { Config } from "../config/settings.ts";
import { parseGroupId } from "../domain/group-id.ts";
import { type DataFolder, openDataFolder } from "../lib/system/data-folder.ts";
import { group as indexedGroup, history } from "../ports/store-examples.contract.ts";
import { createSqlStore } from "../store/sql/sql-store.ts";

const external = { id: "2", endpoints: ["http://127.0.0.1:1"] };
const record = { chainId: 7, genesisHash: `0x${"1".repeat(64)}`, registryAddress: `0x${"2".repeat(40)}` } as const;

let path: string;
let folder: DataFolder;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "stele-folder-"));
  folder = openDataFolder(path);
});
afterEach(() => {
  folder.release();
  rmSync(path, { recursive: true });
});

function configOf(env: Readonly<Record<string, string>>): Config {
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "1" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return outcome.config;
}

function groupsConfig(groups: readonly object[]): Config {
  return configOf({ STELE_GROUPS: JSON.stringify(groups), STELE_DEFAULT_GROUP: "2" });
}

/** Puts into the folder the store of a broker that signed for group 2, and then was killed or stopped. */
async function leaveStore(end: "kill" | "stop" = "kill"): Promise<void> {
  const made = mkdtempSync(join(tmpdir(), "stele-store-"));
  const store = createSqlStore({ file: join(made, "store.sqlite") });
  await store.start();
  await store.applyBlocks(indexedGroup, history);
  await store.saveGroupRecord(parseGroupId("2"), record);
  if (end === "stop") await store.stop();
  for (const name of readdirSync(made)) copyFileSync(join(made, name), join(path, name));
  if (end === "kill") await store.stop();
  rmSync(made, { recursive: true });
}

describe("a group whose key is in the data folder", () => {
  it.each(["kill", "stop"] as const)("is refused without the key that it has signed with (%s)", async (end) => {
    await leaveStore(end);
    const before = readdirSync(path);
    await expect(checkDataFolder(folder, groupsConfig([external]))).rejects.toThrow(
      `${join(path, "signer-2.key")} is missing: it holds the key by which this broker has signed for group 2`,
    );
    expect(readdirSync(path)).toEqual(before);
  });

  it.each<[string, readonly object[], () => void]>([
    ["with its key", [external], () => writeFileSync(join(path, "signer-2.key"), "07".repeat(32))],
    ["whose configuration names a key", [{ ...external, signer: { privateKeyFile: "/run/key" } }], () => {}],
    ["that is new", [external, { ...external, id: "3" }], () => writeFileSync(join(path, "signer-2.key"), "07")],
  ])("%s is accepted", async (_, groups, prepare) => {
    await leaveStore();
    prepare();
    await checkDataFolder(folder, groupsConfig(groups));
  });
});

describe("a folder with the embedded chain", () => {
  it("is accepted if it is empty, or has only the key, for example after a first start of the broker that was killed", async () => {
    await checkDataFolder(folder, configOf({}));
    writeFileSync(join(path, "signer.key"), "07".repeat(32));
    await checkDataFolder(folder, configOf({}));
  });

  it("is accepted with a new embedded group beside existing ones", async () => {
    await leaveStore();
    writeFileSync(join(path, "signer-2.key"), "07".repeat(32));
    await checkDataFolder(folder, groupsConfig([external, { id: "9", endpoints: "embedded" }]));
  });

  it("is accepted without reading its store.sqlite if the settings keep the store in memory", async () => {
    await leaveStore();
    await checkDataFolder(folder, configOf({ STELE_COORDINATION: "none", STELE_DEFAULT_GROUP: indexedGroup }));
  });

  it("is refused if it lost chain and key; the error names both", async () => {
    await leaveStore();
    await expect(checkDataFolder(folder, configOf({ STELE_DEFAULT_GROUP: indexedGroup }))).rejects.toThrow(
      `${join(path, "chain.sqlite")} and ${join(path, "signer.key")} are missing`,
    );
  });
});

it("refuses a folder that has the store's log but no store, and suggests moving the log away", async () => {
  writeFileSync(join(path, "store.sqlite-wal"), "log");
  const refused = checkDataFolder(folder, configOf({}));
  await expect(refused).rejects.toThrow(
    /without subscriptions, move only store\.sqlite-wal away\. Nothing was changed/,
  );
});

it("closes the store after the check has read its groups, so that the broker can open it at once", async () => {
  await leaveStore();
  writeFileSync(join(path, "signer.key"), "07".repeat(32));
  await checkDataFolder(folder, groupsConfig([{ id: "2", endpoints: "embedded" }]));
  const store = createSqlStore({ file: join(path, "store.sqlite") });
  await store.start();
  expect(await store.findGroupRecord(parseGroupId("2"))).toEqual(record);
  await store.stop();
});
