import { MalformedError, RlpList } from "@stele/eth";

/** A log as a receipt contains it. */
export interface ReceiptLog {
  readonly address: Uint8Array;
  readonly topics: readonly Uint8Array[];
  readonly data: Uint8Array;
}

/** Largest type of a transaction (EIP-2718); a larger first byte begins the list of a legacy receipt. */
const typeMax = 0x7f;
const bloomBytes = 256;
const addressBytes = 20;
const wordBytes = 32;

/**
 * The logs of a successful transaction's receipt: RLP of status, gas, bloom and logs, preceded by the type's byte unless the transaction is legacy
 * (EIP-2718). @throws MalformedError for anything else.
 */
export function readReceiptLogs(bytes: Uint8Array): ReceiptLog[] {
  const [first = 0] = bytes;
  if (first === 0) throw new MalformedError("no receipt");
  const receipt = new RlpList(bytes, { start: first <= typeMax ? 1 : 0, end: bytes.length });
  const status = receipt.string();
  if (status.length !== 1 || status[0] !== 1) throw new MalformedError("a transaction that did not succeed");
  receipt.string();
  if (receipt.string().length !== bloomBytes) throw new MalformedError("a bloom of another size");
  const items = receipt.list();
  receipt.close();
  const logs: ReceiptLog[] = [];
  while (!items.isAtEnd) logs.push(readLog(items.list()));
  return logs;
}

function readLog(log: RlpList): ReceiptLog {
  const address = log.string();
  const topics = log.list().strings();
  const data = log.string();
  log.close();
  if (address.length !== addressBytes || topics.some((topic) => topic.length !== wordBytes)) {
    throw new MalformedError("a log whose address or topics are of another size");
  }
  return { address, topics, data };
}
