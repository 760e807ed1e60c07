import { type CustomCrypto, createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createEVM, type EVM } from "@ethereumjs/evm";
import { Address } from "@ethereumjs/util";
import { keccak256, recoverPublicKey } from "@stele/eth/node";
import { COINBASE, type Header, ZERO_HASH } from "../blocks/header.ts";
import type { ExecutionState } from "../state/execution-state.ts";
import type { Deadline } from "./deadline.ts";

/** Gives the hash of a block of this chain, for the BLOCKHASH instruction. */
export type BlockHashReader = (blockNumber: bigint) => Uint8Array;

/** The block context of the EVM. */
export type EvmBlock = ReturnType<typeof toEvmBlock>;

/** The point evaluation precompile needs a trusted setup that this chain does not use. Without the precompile, this is an ordinary empty address. */
const POINT_EVALUATION_ADDRESS = new Address(Buffer.from("000000000000000000000000000000000000000a", "hex"));

export interface EvmOptions {
  readonly chainId: number;
  readonly state: ExecutionState;
  readonly readBlockHash: BlockHashReader;
  /** The deadline of calls, which anyone may make; a block needs none, since its gas limit bounds it. */
  readonly deadline?: Deadline;
}

/** An EVM of the Cancun hardfork with native hashing and signature recovery. */
export async function createChainEvm({ chainId, state, readBlockHash, deadline }: EvmOptions): Promise<EVM> {
  const common = createCustomCommon({ chainId, name: "stele" }, Mainnet, {
    hardfork: Hardfork.Cancun,
    customCrypto: { keccak256: (bytes) => keccak256(bytes), ecrecover: recoverForPrecompile },
  });
  const getBlock = (number: number): Promise<{ hash(): Uint8Array }> =>
    Promise.resolve({ hash: () => readBlockHash(BigInt(number)) });
  const blockchain = { getBlock, putBlock: () => Promise.resolve(), shallowCopy: () => blockchain };
  const customPrecompiles = [{ address: POINT_EVALUATION_ADDRESS }];
  const customOpcodes = deadline === undefined ? [] : [deadline.opcode()];
  return createEVM({ common, stateManager: state, blockchain, customPrecompiles, customOpcodes });
}

type Ecrecover = NonNullable<CustomCrypto["ecrecover"]>;

/** Recovers a public key for the ECRECOVER precompile, which passes only v = 27 and 28. */
function recoverForPrecompile(...[digest, v, r, s]: Parameters<Ecrecover>): Uint8Array {
  return recoverPublicKey(digest, { r, s, yParity: Number(v - 27n) });
}

export function toEvmBlock(header: Pick<Header, "number" | "timestamp" | "gasLimit" | "baseFeePerGas">) {
  return {
    header: {
      number: header.number,
      timestamp: header.timestamp,
      gasLimit: header.gasLimit,
      baseFeePerGas: header.baseFeePerGas,
      coinbase: new Address(COINBASE),
      difficulty: 0n,
      prevRandao: ZERO_HASH,
      getBlobGasPrice: () => 1n,
    },
  };
}
