import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { fromRlp, getContractAddress, type Hex, hexToBytes, toRlp } from "viem";
import { afterAll, expect, it, vi } from "vitest";
import { startEmbeddedChain } from "../embedded-chain.ts";
import { CHAIN_ID, FEES, SIGNER } from "../testing/client.ts";

/** Creation code of a contract that logs the data that it is called with: CALLDATACOPY, then LOG0. */
const LOGGER: Hex = "0x60088060095f395ff3365f5f37365fa000";
const logged = `0x${"ab".repeat(64)}` as const;

const folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (file: string) => startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [SIGNER.address] });

interface Filled {
  readonly address: Hex;
  readonly hash: unknown;
  readonly blockHash: unknown;
}

/** Makes a chain with a log in block 2, and a block after it. Returns the address, the transaction hash and the block hash of the log. */
async function fill(file: string): Promise<Filled> {
  await using chain = await start(file);
  const send = async (nonce: number, call: { readonly to?: Hex; readonly data?: Hex }): Promise<unknown> => {
    const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 1_000_000n, nonce } as const;
    const params = [await SIGNER.signTransaction({ ...fields, ...call })];
    const hash = await chain.request({ method: "eth_sendRawTransaction", params });
    const receipt = (): Promise<unknown> => chain.request({ method: "eth_getTransactionReceipt", params: [hash] });
    await vi.waitFor(async () => expect(await receipt()).toMatchObject({ status: "0x1" }), 10_000);
    return hash;
  };
  const address = getContractAddress({ from: SIGNER.address, nonce: 0n });
  await send(0, { data: LOGGER });
  const hash = await send(1, { to: address, data: logged });
  await send(2, { to: SIGNER.address });
  const block = await chain.request({ method: "eth_getBlockByNumber", params: ["0x2", false] });
  const { hash: blockHash } = block as { readonly hash: Hex };
  return { address, hash, blockHash };
}

it("the chain refuses logs, receipts and transactions of a block with a flipped bit, and answers for other blocks", async () => {
  const file = join(folder, "chain.db");
  const { address, hash } = await fill(file);
  const sqlite = new DatabaseSync(file);
  const place = 2 * 2 ** 20;
  const { raw } = sqlite.prepare("SELECT raw FROM transactions WHERE place = ?").get(place) as { raw: Uint8Array };
  const damaged = Buffer.from(raw);
  const at = damaged.indexOf(Buffer.from(logged.slice(2), "hex"));
  damaged[at] = (damaged[at] ?? 0) ^ 1;
  sqlite.prepare("UPDATE transactions SET raw = ? WHERE place = ?").run(damaged, place);
  sqlite.close();
  await using chain = await start(file);
  const damages: Error[] = [];
  chain.on("damage", (error) => damages.push(error));
  for (const ask of [
    (method: string, ...params: unknown[]) => chain.request({ method, params }),
    (method: string, ...params: unknown[]) => chain.reader.read({ method, params }),
  ]) {
    const refused = /^Block 2 of the chain is damaged: its transactions do not hash/;
    await expect(ask("eth_getLogs", { address, fromBlock: "0x0", toBlock: "latest" })).rejects.toThrow(refused);
    await expect(ask("eth_getLogs", { fromBlock: "0x2", toBlock: "0x2" })).rejects.toThrow(refused);
    await expect(ask("eth_getBlockReceipts", "0x2")).rejects.toThrow(refused);
    await expect(ask("eth_getBlockByNumber", "0x2", true)).rejects.toThrow(refused);
    await expect(ask("eth_getTransactionReceipt", hash)).rejects.toThrow(refused);
    await expect(ask("eth_getTransactionByHash", hash)).rejects.toThrow(refused);
    expect(await ask("eth_getBlockByNumber", "0x3", true)).toBeTruthy();
  }
  expect(damages).toEqual([]);
});

it.each([
  ["missing", "DELETE FROM blocks WHERE number = 2", /its header is missing/],
  ["malformed", "UPDATE blocks SET header = x'00' WHERE number = 2", /A stored block header is malformed/],
])("the chain refuses a block whose header is %s, and each search that needs the block", async (what, sql, reason) => {
  const file = join(folder, `${what}.db`);
  const { address, hash, blockHash } = await fill(file);
  const sqlite = new DatabaseSync(file);
  sqlite.exec(sql);
  sqlite.close();
  await using chain = await start(file);
  const refused = new RegExp(`^Block 2 of the chain is damaged: ${reason.source}[^.]*\\.$`);
  for (const ask of [
    (method: string, ...params: unknown[]) => chain.request({ method, params }),
    (method: string, ...params: unknown[]) => chain.reader.read({ method, params }),
  ]) {
    for (const [method, ...params] of [
      ["eth_getBlockByNumber", "0x2", false],
      ["eth_getBlockByHash", blockHash, false],
      ["eth_getLogs", { fromBlock: "0x1", toBlock: "latest" }],
      ["eth_getLogs", { address, fromBlock: "0x1", toBlock: "latest" }],
      ["eth_getLogs", { blockHash }],
      ["eth_getTransactionReceipt", hash],
      ["eth_getTransactionByHash", hash],
      ["eth_call", { to: address }, "0x2"],
      ["eth_feeHistory", "0x1", "0x2", []],
    ] as const)
      await expect(ask(method, ...params), method).rejects.toThrow(refused);
    expect(await ask("eth_getBlockByNumber", "0x3", false)).toBeTruthy();
  }
});

it("the chain answers as before if the sender, the gas or the log index that is stored with a receipt is damaged, since no hash covers these", async () => {
  const file = join(folder, "unproven.db");
  const { address, hash } = await fill(file);
  const questions = [
    ["eth_getLogs", { address, fromBlock: "0x0", toBlock: "latest" }],
    ["eth_getBlockReceipts", "0x2"],
    ["eth_getBlockByNumber", "0x2", true],
    ["eth_getTransactionByHash", hash],
  ] as const;
  const answer = async (): Promise<unknown> => {
    await using chain = await start(file);
    const own = questions.map(([method, ...params]) => chain.request({ method, params }));
    const read = questions.map(([method, ...params]) => chain.reader.read({ method, params }));
    const blocks = await chain.readBlocks({ from: 1, to: 3 });
    return { own: await Promise.all(own), read: await Promise.all(read), blocks };
  };
  const before = await answer();
  const sqlite = new DatabaseSync(file);
  const rows = sqlite.prepare("SELECT place, receipt FROM transactions").all() as {
    place: number;
    receipt: Uint8Array;
  }[];
  for (const { place, receipt } of rows) {
    const [, status = "0x", , gas = "0x", , , logs = []] = fromRlp(receipt, "hex") as Hex[];
    const wrong = [`0x${"11".repeat(20)}`, status, "0x11", gas, "0x11", "0x11", logs] as Hex[];
    sqlite.prepare("UPDATE transactions SET receipt = ? WHERE place = ?").run(hexToBytes(toRlp(wrong)), place);
  }
  sqlite.close();
  expect(await answer()).toEqual(before);
});
