import { portableKeccak256 } from "@stele/eth";
import { Signer } from "@stele/eth/node";
import { defaultGroupId } from "../../../domain/group-id.ts";
import type { Address } from "../../../domain/topic.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import type { LedgerHarness } from "../../../ports/ledger.contract.ts";
import { type EvmProvider, Rpc } from "../endpoint/rpc.ts";
import { EvmLedger } from "../evm-ledger.ts";
import type { EvmLedgerOptions } from "../evm-ledger-options.ts";
import { findRegistry } from "../registry/find-registry.ts";
import type { ConfiguredLimits } from "../write/transaction-room.ts";
import { Stranger } from "./stranger.ts";

const pollMs = 10;

export const testLimits: ConfiguredLimits = {
  eventsPerTransactionMax: 1000,
  bytesPerTransactionMax: 98_304,
  transactionsInFlightMax: 4,
};

/** A key derived from a name. */
export function testKey(name: string): Uint8Array {
  return portableKeccak256(Buffer.from(name));
}

export interface EvmHarness extends LedgerHarness {
  readonly stranger: Stranger;
  createLedger(options?: Partial<EvmLedgerOptions>): EvmLedger;
}

/** Creates ledgers that sign with one key, and a stranger that signs with another. The accounts of both keys must have funds. */
export function createEvmHarness(provider: EvmProvider, name: string): EvmHarness {
  const privateKey = testKey(name);
  const { address } = new Signer(privateKey);
  const registry = async (): Promise<Address> => {
    const found = await findRegistry(new Rpc(provider), address);
    if (found.address === undefined)
      throw new Error(`the account ${address} of the ledgers has not deployed a registry`);
    return found.address;
  };
  const common = { groupId: defaultGroupId, provider, privateKey, logger: silentLogger, pollMs, limits: testLimits };
  return {
    createLedger: (options = {}) => new EvmLedger({ ...common, clock: createSystemClock(), ...options }),
    stranger: new Stranger(provider, { signer: new Signer(testKey(`stranger to ${name}`)), registry }),
    dispose: async () => {},
  };
}
