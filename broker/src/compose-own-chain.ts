import { isBrokerError } from "@stele/wire";

/**
 * Why a start has failed. A broker whose own chain answers, and not what the broker needs, has no endpoint to look at: the chain's file is all there is.
 * Other groups wait for their chains, so that a BrokerError is about the own one.
 */
export function explainStart(error: unknown, file: string | undefined): unknown {
  if (file === undefined || !isBrokerError(error)) return error;
  const remedy = `Restore ${file} from a backup, with its -wal file where the backup has one; delete nothing of what is here.`;
  const message = `The chain in ${file} does not give what was written to it, and is perhaps damaged: ${error.message}. ${remedy}`;
  return new Error(message, { cause: error });
}
