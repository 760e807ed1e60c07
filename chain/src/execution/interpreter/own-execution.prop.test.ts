import type { EVM } from "@ethereumjs/evm";
import { Account, Address } from "@ethereumjs/util";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { NodeStore } from "../../state/node-store.ts";
import { ExecutionState } from "../../state/execution-state.ts";
import { describeDifference } from "../compare.ts";
import { createChainEvm, toEvmBlock } from "../evm.ts";
import { execute, type Message } from "../execute.ts";
import { intrinsicGas } from "../gas.ts";
import { OwnExecution } from "./own-execution.ts";

const CHAIN_ID = 1337;
const from = new Uint8Array(20).fill(0xaa);
const to = new Uint8Array(20).fill(0xbb);
const block = toEvmBlock({ number: 77n, timestamp: 1_700_000_000n, gasLimit: 1n << 30n, baseFeePerGas: 7n });

const EDGES = [
  0n,
  1n,
  2n,
  31n,
  32n,
  255n,
  256n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n,
  2n ** 48n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 64n - 1n,
  2n ** 160n - 1n,
  2n ** 255n - 1n,
  2n ** 255n,
  2n ** 256n - 1n,
];
const word = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...EDGES) },
  { weight: 2, arbitrary: fc.bigInt({ min: 0n, max: 300n }) },
  { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }) },
);

/** PUSH with the fewest bytes, so that pushes of every length occur. */
function push(value: bigint): string {
  const digits = value.toString(16);
  const bytes = digits.length % 2 === 0 ? digits : `0${digits}`;
  return (0x5f + bytes.length / 2).toString(16) + bytes;
}

function hex(opcode: number): string {
  return opcode.toString(16).padStart(2, "0");
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

const ARITHMETIC = [...range(0x01, 0x09), 0x0b, ...range(0x10, 0x1d)];
const ENVIRONMENT = [
  0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3a, 0x3d, 0x41, 0x42, 0x43, 0x45, 0x46, 0x48, 0x58, 0x59, 0x5a, 0x5f,
];
const small = fc.bigInt({ min: 0n, max: 200n });
const slot = fc.bigInt({ min: 0n, max: 2n });
const stored = fc.constantFrom(0n, 0n, 1n, 5n, 2n ** 200n);
/** MSTORE of the top word, so that the output contains it. */
const shown = small.map((at) => `${push(at)}52`);

const piece = fc.oneof(
  fc
    .tuple(word, word, word, fc.constantFrom(...ARITHMETIC), shown)
    .map(([a, b, c, opcode, show]) => push(a) + push(b) + push(c) + hex(opcode) + show),
  fc.tuple(fc.constantFrom(...ENVIRONMENT), shown).map(([opcode, show]) => hex(opcode) + show),
  fc.constantFrom(...range(0x80, 0x83), ...range(0x90, 0x92), 0x50).map(hex),
  fc.tuple(slot, stored).map(([key, value]) => `${push(value)}${push(key)}55`),
  fc.tuple(slot, shown).map(([key, show]) => `${push(key)}54${show}`),
  fc.tuple(small, word).map(([at, value]) => `${push(value)}${push(at)}52`),
  fc.tuple(small, word).map(([at, value]) => `${push(value)}${push(at)}53`),
  fc.tuple(small, shown).map(([at, show]) => `${push(at)}51${show}`),
  fc.tuple(fc.oneof(small, word), shown).map(([at, show]) => `${push(at)}35${show}`),
  fc.tuple(small, small, shown).map(([at, length, show]) => `${push(length)}${push(at)}20${show}`),
  fc
    .tuple(small, fc.oneof(small, word), small, fc.constantFrom(0x37, 0x39, 0x5e))
    .map(
      ([at, source, length, opcode]) =>
        push(length) + push(opcode === 0x5e ? source % 300n : source) + push(at) + hex(opcode),
    ),
  fc.tuple(small, small, fc.integer({ min: 0, max: 4 })).map(
    ([at, length, topics]) =>
      range(1, topics)
        .map((topic) => push(BigInt(topic) << 100n))
        .join("") +
      push(length) +
      push(at) +
      hex(0xa0 + topics),
  ),
  // A jump forward over PUSH1 0x5b, or to its 0x5b, which is data and no JUMPDEST. The distance counts from PC, 0x58.
  fc
    .tuple(fc.boolean(), fc.constantFrom(6n, 7n, 7n, 7n))
    .map(([taken, ahead]) => `${push(taken ? 1n : 0n)}58${push(ahead)}0157605b5b`),
);
const program = fc
  .tuple(
    fc.array(piece, { maxLength: 40 }),
    fc.constantFrom("6101005ff3", "6101005ff3", "6101005ff3", "00", "", "600056", "fe"),
  )
  .map(([pieces, end]) => Buffer.from(pieces.join("") + end, "hex"));

const scenario = fc.record({
  code: program,
  data: fc.uint8Array({ maxLength: 120 }),
  before: fc.array(stored, { maxLength: 5 }),
  gas: fc.oneof(fc.constant(500_000n), fc.bigInt({ min: 0n, max: 60_000n })),
  warm: fc.array(slot, { maxLength: 2 }),
});

/** Operands of a CREATE2 after the input was copied to memory: the init code begins at `offset` and is `extra` bytes longer than the input. */
const creation = fc.record({
  value: fc.constantFrom(0n, 0n, 0n, 0n, 0n, 0n, 0n, 1n),
  offset: fc.constantFrom(0n, 0n, 0n, 1n, 64n),
  extra: fc.constantFrom(0n, 0n, 0n, 1n, 70n),
  salt: fc.oneof(fc.bigInt({ min: 0n, max: 3n }), word),
});
const proxyInitCode = `3d602d80600a3d3981f3363d3d373d3d3d363d73${"be".repeat(20)}5af43d82803e903d91602b57fd5bf3`;
const initCode = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.constantFrom(proxyInitCode, "", "00", "60ef5f5360015ff3", "6160015ff3", "5f5ffd", "6160015f55"),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.array(piece, { maxLength: 6 }), fc.constantFrom("60205ff3", "602d5ff3", "5f5ff3", "6160015ff3", "00"))
      .map(([pieces, end]) => pieces.join("") + end),
  },
);
const creationScenario = fc.record({
  code: fc
    .array(
      fc.oneof(
        { weight: 1, arbitrary: piece },
        {
          weight: 1,
          arbitrary: creation.map(
            ({ value, offset, extra, salt }) =>
              `365f5f37${push(salt)}36${push(extra)}01${push(offset)}${push(value)}f55f52595f5fa0`,
          ),
        },
      ),
      { minLength: 1, maxLength: 8 },
    )
    .map((pieces) => Buffer.from(`${pieces.join("")}595ff3`, "hex")),
  data: initCode.map((code) => Buffer.from(code, "hex")),
  gas: fc.oneof(fc.constant(2_000_000n), fc.bigInt({ min: 0n, max: 150_000n })),
});

function toSlot(key: bigint): Uint8Array {
  return Buffer.from(key.toString(16).padStart(64, "0"), "hex");
}

function toCreation(initCode: string): Message {
  const parts = { to, data: Buffer.from(initCode, "hex"), accessList: [] };
  return { from, ...parts, gasLimit: 20_000_000n, gasPrice: 9n, value: 0n, intrinsicGas: intrinsicGas(parts) };
}

describe("the chain's interpreter", () => {
  const state = new ExecutionState(new NodeStore({ readNode: () => undefined, readCode: () => undefined }).head());
  const own = new OwnExecution(CHAIN_ID, state);
  let evm: EVM;

  beforeAll(async () => {
    evm = await createChainEvm({ chainId: CHAIN_ID, state, readBlockHash: () => new Uint8Array(32) });
  });

  async function prepare({
    code,
    before,
  }: {
    readonly code: Uint8Array;
    readonly before: readonly bigint[];
  }): Promise<void> {
    state.reset(new NodeStore({ readNode: () => undefined, readCode: () => undefined }).head());
    state.writeAccount(from, new Account(0n, 10n ** 30n));
    await state.putCode(new Address(to), code);
    for (const [key, value] of before.entries()) {
      const digits = value.toString(16).padStart(64, "0");
      state.writeStorage(to, toSlot(BigInt(key)), Buffer.from(digits, "hex"));
    }
  }

  it("the interpreter computes the EVM's gas, logs, output and storage for any code, and leaves failures to the EVM", async () => {
    let successes = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async ({ code, data, before, gas, warm }) => {
        await prepare({ code, before });
        const accessList = warm.length === 0 ? [] : [{ address: to, slots: warm.map(toSlot) }];
        const parts = { to, data, accessList };
        const cost = intrinsicGas(parts);
        const message: Message = { from, ...parts, gasLimit: cost + gas, gasPrice: 9n, value: 0n, intrinsicGas: cost };
        const plan = own.plan(message, block);
        const stored = state.copyStorage(to);
        const execution = await execute(evm, message, block);
        const isOwn = code.length > 0 && execution.failure === undefined;
        expect(plan !== undefined).toBe(isOwn);
        if (plan === undefined) return;
        successes += 1;
        expect(describeDifference({ plan, execution, before: stored, state })).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
    expect(successes).toBeGreaterThan(500);
  });

  it("the interpreter computes the EVM's gas, logs, output and contracts for code that creates contracts", async () => {
    let contracts = 0;
    await fc.assert(
      fc.asyncProperty(creationScenario, async ({ code, data, gas }) => {
        await prepare({ code, before: [] });
        const parts = { to, data, accessList: [] };
        const cost = intrinsicGas(parts);
        const message: Message = { from, ...parts, gasLimit: cost + gas, gasPrice: 9n, value: 0n, intrinsicGas: cost };
        const plan = own.plan(message, block);
        if (plan === undefined) return;
        contracts += plan.created.length;
        const execution = await execute(evm, message, block);
        expect(describeDifference({ plan, execution, before: new Map(), state })).toBeUndefined();
      }),
      { numRuns: 1_500 },
    );
    expect(contracts).toBeGreaterThan(100); // about 340, and 280 with some seeds
  });

  it.each([
    ["stores", "60016000556000f3"],
    ["logs", "5f5fa05f5ff3"],
    ["reverts", "5f5ffd"],
    ["runs out of gas", "5b5f56"],
    ["creates a contract", "5f5f5f5ff55f5ff3"],
    ["returns code with a reserved first byte", "60ef5f5360015ff3"],
    ["returns code that is too long", "6160015ff3"],
  ])("the interpreter leaves a message to the EVM if its init code %s", async (_what, data) => {
    await prepare({ code: Buffer.from("365f5f375f365f5ff55f5260205ff3", "hex"), before: [] });
    expect(own.plan(toCreation(data), block)).toBeUndefined();
  });

  it("the interpreter leaves the creation of a second contract at one address, or at an existing account, to the EVM", async () => {
    await prepare({ code: Buffer.from(`365f5f37${"5f365f5ff5".repeat(2)}`, "hex"), before: [] });
    expect(own.plan(toCreation(proxyInitCode), block)).toBeUndefined();
    await prepare({ code: Buffer.from("365f5f375f365f5ff5", "hex"), before: [] });
    const [contract] = own.plan(toCreation(proxyInitCode), block)?.created ?? [];
    if (contract === undefined) throw new Error("nothing was made");
    state.writeAccount(contract.address, new Account(0n, 1n));
    expect(own.plan(toCreation(proxyInitCode), block)).toBeUndefined();
  });

  it("the interpreter leaves code that calls another account to the EVM", async () => {
    await prepare({ code: Buffer.from("600060006000600060006000620100005af1", "hex"), before: [] });
    const message = {
      from,
      to,
      gasLimit: 200_000n,
      gasPrice: 9n,
      value: 0n,
      data: new Uint8Array(0),
      accessList: [],
      intrinsicGas: 21_000n,
    };
    expect(own.plan(message, block)).toBeUndefined();
  });
});
