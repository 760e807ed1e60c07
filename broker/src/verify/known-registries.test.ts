import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KnownRegistries, knownRegistriesFile } from "./known-registries.ts";

const chain = { chainId: 1, genesisHash: `0x${"1".repeat(64)}` };
const [one, two] = [`0x${"a".repeat(40)}`, `0x${"b".repeat(40)}`];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-known-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

const open = () => new KnownRegistries(join(folder, "deeper", "known.json"));

test("stores each registry of a chain once, in a file that later instances read", async () => {
  expect(open().list(chain)).toEqual([]);
  await open().add(chain, one);
  await open().add({ ...chain, chainId: 2 }, two);
  await open().add({ ...chain, genesisHash: "0x" }, two);
  await open().add(chain, two);
  await open().add(chain, two);
  expect(open().list(chain)).toEqual([one, two]);
  expect(open().list({ ...chain, chainId: 2 })).toEqual([two]);
  expect(open().list({ ...chain, chainId: 3 })).toEqual([]);
  expect(readdirSync(dirname(open().file))).toEqual(["known.json"]);
  expect(statSync(open().file).mode & 0o777).toBe(0o600);
});

test.each(["", "{", "[]", "{}", '{"version":2,"chains":[]}', '{"version":1,"chains":[{"chainId":1}]}'])(
  "refuses a file with the content %j, and does not change it",
  async (text) => {
    const known = new KnownRegistries(join(folder, "known.json"));
    writeFileSync(known.file, text);
    expect(() => known.list(chain)).toThrow(known.file);
    await expect(known.add(chain, one)).rejects.toThrow(known.file);
    expect(readFileSync(known.file, "utf8")).toBe(text);
  },
);

test("add throws with the file's name if its folder is a file", async () => {
  writeFileSync(join(folder, "deeper"), "");
  await expect(open().add(chain, one)).rejects.toThrow("known.json");
});

test.each([
  [{ XDG_CONFIG_HOME: "/etc/mine" }, "/etc/mine/stele/known-registries.json"],
  [{ HOME: "/home/me" }, "/home/me/.config/stele/known-registries.json"],
])("the environment %j gives the file %s", (env, file) => {
  expect(knownRegistriesFile(env)).toBe(file);
});
