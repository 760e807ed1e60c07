import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { InFlight } from "./in-flight.ts";
import type { Signer } from "../native-crypto.ts";
import type { TransactionState } from "./transaction-state.ts";
import type { Rpc } from "../endpoint/rpc.ts";

/** The first form of a transaction waits so long for a place among what its node can execute. */
const heldBackAfterMs = 3000;
/** Each further form waits so many times as long. */
const patienceFactor = 4;
/** Forms of a transaction that a pool holds back, with the first: some chains count nothing that waits, as if they held all of it back. */
const formsMax = 3;

export interface HeldBackOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly inFlight: InFlight;
}

/**
 * Whether a node holds a transaction, the next in line, and does not count it among what it can execute. A pool that reads the account's
 * nonce, lets go of the transaction before, and only then files the next one keeps that back for ever: anvil's does, rarely and under load
 * (foundry's issue 10122). It refuses the same again, and only another transaction with that nonce gets past it.
 */
export async function isHeldBack(
  { nonce, variants, reach }: Pick<TransactionState, "nonce" | "variants" | "reach">,
  { clock, rpc, signer, inFlight, logger }: HeldBackOptions,
): Promise<boolean> {
  const [newest] = variants;
  if (newest === undefined || nonce === undefined || nonce !== inFlight.lowestUnseenNonce()) return false;
  if (reach !== "taken" || variants.length >= formsMax) return false;
  if (clock.monotonic() - newest.signedAt < heldBackAfterMs * patienceFactor ** (variants.length - 1)) return false;
  try {
    if (!(await rpc.knows(newest.hash))) return false;
    if ((await rpc.transactionCount(signer.address, "pending")) > nonce) return false;
    return (await rpc.transactionCount(signer.address, "latest")) === nonce;
  } catch (error) {
    logger.debug("pool of the endpoint not read", { error });
    return false;
  }
}
