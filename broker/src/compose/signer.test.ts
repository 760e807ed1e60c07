import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findSignerProblems } from "./signer.ts";
import { groupsOf } from "../config/derived.ts";
import type { SignerSource } from "../config/group-fields.ts";
import { loadConfig } from "../config/load-config.ts";

const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "stele-signer-"));
  await writeFile(join(folder, "good"), `${key}\n`, { mode: 0o600 });
  await writeFile(join(folder, "short"), key.slice(2), { mode: 0o600 });
});
afterAll(() => rm(folder, { recursive: true }));

/** The problems that `--check-config` finds with these signers, one group each. */
async function problemsOf(signers: readonly SignerSource[], env: Readonly<Record<string, string>> = {}) {
  const groups = signers.map((signer, index) => ({ id: String(index + 1), endpoints: ["http://n"], signer }));
  const argv = ["--check-config", "--groups", JSON.stringify(groups)];
  const outcome = loadConfig({ env, argv, readFile: () => "", version: "1" });
  if (outcome.status !== "checked") throw new Error(`not checked: ${JSON.stringify(outcome)}`);
  return findSignerProblems(groupsOf(outcome.config), outcome.secrets);
}

it("finds no problem with keys that can be read, and needs no network", async () => {
  const signers = [{ privateKeyFile: join(folder, "good") }, { privateKeyEnv: "ORG_KEY" }];
  expect(await problemsOf(signers, { ORG_KEY: `0x${key}` })).toEqual([]);
});

it("names each group whose key cannot be read, and shows no part of a secret", async () => {
  const signers = [
    { privateKeyFile: join(folder, "none") },
    { privateKeyFile: join(folder, "short") },
    { privateKeyFile: folder },
    { privateKeyEnv: "ORG_KEY" },
    { keystoreFile: join(folder, "good"), passwordFile: join(folder, "good") },
    { keystoreFile: join(folder, "none"), passwordEnv: "ORG_PASSWORD" },
  ];
  const problems = await problemsOf(signers, { ORG_KEY: key.slice(1), ORG_PASSWORD: "hunter2x" });
  expect(problems).toEqual([
    `group 1: signer: ${join(folder, "none")} does not exist; it must contain a secret.`,
    expect.stringContaining(`group 2: signer: ${join(folder, "short")} does not hold a private key`),
    expect.stringContaining(`group 3: signer: ${folder} cannot be read: `),
    expect.stringContaining("group 4: signer: ORG_KEY does not hold a private key"),
    expect.stringContaining(`group 5: signer: ${join(folder, "good")}`),
    expect.stringContaining(`group 6: signer: ${join(folder, "none")} does not exist`),
  ]);
  for (const secret of [key.slice(2, 20), "hunter2x"]) expect(problems.join("")).not.toContain(secret);
});
