import {
  encodeDeployData,
  encodeFunctionData,
  type EncodeFunctionDataParameters,
  type Hex,
  keccak256,
  toHex,
  type TransactionReceipt,
} from "viem";
import { expect } from "vitest";
import type { Backend, RawAnswer } from "./backends.ts";
import { CHAIN_ID, FEES, PAUPER, sendAndWait, SIGNER, type TestClient } from "./client.ts";
import { serializeFeeMarketUnchecked } from "./unchecked.ts";
import { yardstickAbi, yardstickBytecode } from "./yardstick.generated.ts";

export const STORED_TOPIC = keccak256(toHex("Stored(uint256,address,bytes)"));
export const PLAIN_TOPIC = keccak256(toHex("Plain(uint256)"));
export const NOWHERE: Hex = `0x${"12".repeat(32)}`;
export const GAS = 3_000_000n;

type YardstickCall = Omit<EncodeFunctionDataParameters<typeof yardstickAbi>, "abi">;

export function encodeCall(call: YardstickCall): Hex {
  return encodeFunctionData({ abi: yardstickAbi, ...call });
}

interface UncheckedFields {
  readonly nonce?: number;
  readonly chainId?: number;
  readonly gas?: bigint;
  readonly value?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
}

/** A backend with the yardstick contract, and the requests of the tests. */
export class Yardstick {
  readonly client: TestClient;
  readonly contract: Hex;
  /** The transaction of block 2, which stored 1234 under 5. */
  readonly stored: Hex;
  readonly #backend: Backend;

  private constructor(backend: Backend, contract: Hex, stored: Hex) {
    this.#backend = backend;
    this.client = backend.client;
    this.contract = contract;
    this.stored = stored;
  }

  static async create(backend: Backend): Promise<Yardstick> {
    const data = encodeDeployData({ abi: yardstickAbi, bytecode: yardstickBytecode });
    const { contractAddress } = await sendAndWait(backend.client, { data });
    const contract = contractAddress ?? "0x";
    const store = encodeCall({ functionName: "store", args: [5n, 1234n, "0xdeadbeef"] });
    const { transactionHash } = await sendAndWait(backend.client, { to: contract, data: store, gas: GAS });
    return new Yardstick(backend, contract, transactionHash);
  }

  /** The result of a request that must succeed. The type `Answer` names only the parts that the caller's assertions use. */
  async resultAs<Answer>(method: string, ...params: unknown[]): Promise<Answer> {
    const answer = await this.#backend.ask(method, params);
    expect(answer.error).toBeUndefined();
    return answer.result as Answer;
  }

  result(method: string, ...params: unknown[]): Promise<Hex> {
    return this.resultAs<Hex>(method, ...params);
  }

  async error(method: string, ...params: unknown[]): Promise<RawAnswer["error"]> {
    const answer = await this.#backend.ask(method, params);
    expect(answer.error, `${method} should be refused`).toBeDefined();
    return answer.error;
  }

  send(call: YardstickCall, value = 0n): Promise<TransactionReceipt> {
    return sendAndWait(this.client, { to: this.contract, data: encodeCall(call), gas: GAS, value });
  }

  async nextNonce(): Promise<number> {
    return Number(await this.result("eth_getTransactionCount", SIGNER.address, "latest"));
  }

  /** Signs a transfer with the given fields, even if viem would refuse. */
  sign(changes: UncheckedFields): Promise<Hex> {
    const transaction = { type: "eip1559", chainId: CHAIN_ID, nonce: 0, gas: 100_000n, to: PAUPER.address } as const;
    return SIGNER.signTransaction({ ...transaction, ...FEES, ...changes }, { serializer: serializeFeeMarketUnchecked });
  }

  stop(): Promise<void> {
    return Promise.resolve(this.#backend[Symbol.asyncDispose]());
  }
}
