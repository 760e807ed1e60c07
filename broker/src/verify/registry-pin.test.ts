import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChainClient } from "./chain-client.ts";
import { KnownRegistries } from "./known-registries.ts";
import { RegistryPin } from "./registry-pin.ts";

const identity = { chainId: 1, genesisHash: `0x${"1".repeat(64)}` };
const chain = { identity: async () => identity } as ChainClient; // A pin asks a chain only who it is.
const [one, two] = [`0x${"a".repeat(40)}`, `0x${"b".repeat(40)}`];
let folder: string;
let known: KnownRegistries;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-pin-"));
  known = new KnownRegistries(join(folder, "known.json"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const pin = (registry?: string) => new RegistryPin({ registry, remember: true, known });

test("if two commands find different registries on first use at once, only one registry is trusted and remembered", async () => {
  const commands = [one, two].map((registry) => ({ registry, pin: pin() }));
  for (const command of commands) expect(await command.pin.check(command.registry, chain)).toBe("first use");
  const [first, second] = commands.map(
    (command) => () => command.pin.keep(command.registry, { chain, pinnedBy: "first use" }),
  );
  expect(await first?.()).toMatch(/trusted on first use/);
  await expect(second?.()).rejects.toThrow(/has changed: found 0xb+, known 0xa+/);
  expect(known.list(identity)).toEqual([one]);
});

test("two commands that find the same registry on first use at once both trust it", async () => {
  const pins = [pin(), pin()];
  for (const each of pins) await each.check(one, chain);
  for (const each of pins) expect(await each.keep(one, { chain, pinnedBy: "first use" })).toMatch(/trusted on first/);
  expect(known.list(identity)).toEqual([one]);
});

test("remembers a registry that the user names beside known ones", async () => {
  await known.add(identity, one);
  const named = pin(two);
  expect(await named.keep(two, { chain, pinnedBy: await named.check(two, chain) })).toBe("");
  expect(known.list(identity)).toEqual([one, two]);
});
