import type { Signer } from "@stele/eth/node";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import type { InFlight } from "./in-flight.ts";
import type { TransactionState } from "./transaction-state.ts";

/** Age, in milliseconds, from which the first version counts as held back if the endpoint does not count it as executable. */
const heldBackAfterMs = 3000;
/** Factor by which that age grows with each version. */
const patienceFactor = 4;
/** Upper bound on the versions of a held-back transaction, including the first: some chains never count pending transactions. */
const heldBackVersionsMax = 3;

export interface HeldBackOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly inFlight: InFlight;
}

/**
 * Whether the endpoint's pool holds back the next transaction in line: the endpoint knows the newest version, but does not count it as executable. Anvil's pool
 * has a race, seen rarely under load: it may treat a transaction as not executable forever, although the previous one is in a block (foundry issue 10122).
 * Sending the same transaction again does not help, since Anvil knows it. Another version with the same nonce does.
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
