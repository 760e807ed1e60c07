import type { Header } from "./rpc.ts";

/** The newest block that counts as final when `latest` is the head: the head itself, as the embedded chain never takes a block back. */
export function finalNumber(latest: Header): number {
  return latest.number;
}
