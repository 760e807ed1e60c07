import { Account, Address } from "@ethereumjs/util";
import { expect, it } from "vitest";
import { NodeStore } from "../state/node-store.ts";
import { ExecutionState } from "../state/execution-state.ts";
import { sealState } from "../state/seal-state.ts";
import { createChainEvm, toEvmBlock } from "./evm.ts";
import type { Message } from "./execute.ts";
import { Executor } from "./executor.ts";

const from = new Uint8Array(20).fill(0xaa);
const to = new Uint8Array(20).fill(0xbb);
const block = toEvmBlock({ number: 1n, timestamp: 1n, gasLimit: 1n << 30n, baseFeePerGas: 7n });
/** Code that stores the chain's id in slot 0. */
const STORE_CHAIN_ID = Buffer.from("465f55", "hex");
const message: Message = {
  from,
  to,
  gasLimit: 100_000n,
  gasPrice: 9n,
  value: 0n,
  data: new Uint8Array(0),
  accessList: [],
  intrinsicGas: 21_000n,
};

/** Code that creates a minimal proxy with the salt in the input. */
const CREATE = Buffer.from(
  `7f3d602d80600a3d3981f3363d3d373d3d3d363d73${"be".repeat(12)}5f527f${"be".repeat(8)}5af43d82803e903d91602b57fd5bf3${"00".repeat(9)}6020525f3560375f5ff5`,
  "hex",
);

async function createWorld(options: {
  readonly chainId: number;
  readonly evmChainId: number;
  readonly checkInterval: number;
  readonly code?: Uint8Array;
}) {
  const view = new NodeStore({ readNode: () => undefined, readCode: () => undefined }).head();
  const state = new ExecutionState(view);
  state.writeAccount(from, new Account(0n, 10n ** 30n));
  await state.putCode(new Address(to), options.code ?? STORE_CHAIN_ID);
  const evm = await createChainEvm({ chainId: options.evmChainId, state, readBlockHash: () => new Uint8Array(32) });
  const mismatches: string[] = [];
  const onMismatch = ({ message }: Error): void => void mismatches.push(message);
  const executor = new Executor({ ...options, evm, state, onMismatch });
  const stored = (): number => state.readStorage(to, new Uint8Array(32))[0] ?? 0;
  return { executor, mismatches, stored, state, view };
}

it("the executor keeps the EVM's result when the chain's interpreter differs, and runs the EVM from then on", async () => {
  const { executor, mismatches, stored } = await createWorld({ chainId: 1, evmChainId: 2, checkInterval: 1_000 });
  await executor.execute(message, block);
  expect(mismatches).toEqual([expect.stringContaining("disagrees with the EVM on slot 0x0000")]);
  expect(stored()).toBe(2);
  await executor.execute(message, block);
  expect(stored()).toBe(2);
  expect(mismatches).toHaveLength(1);
});

it("the executor changes accounts as the EVM does, with and without checks", async () => {
  const worlds = await Promise.all(
    [1, 1_000].map((checkInterval) => createWorld({ chainId: 1, evmChainId: 1, checkInterval })),
  );
  const states = [];
  for (const { executor, state, mismatches } of worlds) {
    for (let count = 0; count < 3; count += 1) await executor.execute(message, block);
    expect(mismatches).toEqual([]);
    states.push([from, to, new Uint8Array(20)].map((address) => state.readAccount(address)));
  }
  expect(states[1]).toEqual(states[0]);
});

it("the executor gives the EVM's state root after contract creations, with and without checks", async () => {
  const worlds = await Promise.all(
    [1, 1_000].map((checkInterval) => createWorld({ chainId: 1, evmChainId: 1, checkInterval, code: CREATE })),
  );
  const roots = [];
  for (const { executor, state, mismatches, view } of worlds) {
    for (const salt of [1, 2, 3]) {
      const { failure } = await executor.execute({ ...message, data: new Uint8Array(32).fill(salt) }, block);
      expect(failure).toBeUndefined();
    }
    expect(mismatches).toEqual([]);
    expect(state.readAccount(to)?.nonce).toBe(3n);
    roots.push(sealState(view, state.changes()).root);
  }
  expect(roots[1]).toEqual(roots[0]);
});
