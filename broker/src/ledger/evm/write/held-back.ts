import type { Signer } from "@stele/eth/node";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import type { InFlight } from "./in-flight.ts";
import type { TransactionState } from "./transaction-state.ts";

/** How long the endpoint may not count the first version as executable before another one is signed, in milliseconds. */
const heldBackAfterMs = 3000;
/** Factor on the wait for each further version. */
const patienceFactor = 4;
/** Versions of a held-back transaction, with the first. Some chains count no pending transaction, as if they held all back. */
const heldBackVersionsMax = 3;

export interface HeldBackOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly inFlight: InFlight;
}

/**
 * Whether another version of the next transaction in line is to be signed, because the endpoint knows the newest version and does not count it as
 * executable. Anvil's pool has a race, seen rarely, under load: it may file a transaction as not executable for ever, although the one before it is
 * in a block (foundry issue 10122). Anvil refuses the same transaction as known; only another one with that nonce helps.
 */
export async function isHeldBack(
  { nonce, variants, reach }: Pick<TransactionState, "nonce" | "variants" | "reach">,
  { clock, rpc, signer, inFlight, logger }: HeldBackOptions,
): Promise<boolean> {
  const [newest] = variants;
  if (newest === undefined || nonce === undefined || nonce !== inFlight.lowestUnseenNonce()) return false;
  if (reach !== "taken" || variants.length >= heldBackVersionsMax) return false;
  if (clock.monotonic() - newest.signedAt < heldBackAfterMs * patienceFactor ** (variants.length - 1)) return false;
  try {
    if (!(await rpc.knows(newest.hash))) return false;
    if ((await rpc.transactionCount(signer.address, "pending")) > nonce) return false;
    return (await rpc.transactionCount(signer.address, "latest")) === nonce;
  } catch (error) {
    logger.debug("could not read the endpoint's transaction pool", { error });
    return false;
  }
}
