import { BrokerError } from "@stele/wire";
import { tenantOf } from "../../domain/quota.ts";
import { ownerOf, type Principal } from "../access/caller.ts";
import type { WillRequest } from "../broker.ts";
import { willBytes } from "./connected.ts";

/**
 * Counts the bytes of the wills that the connections of this node keep. A tenant, or a principal without one, may use half of the limit, to leave room for
 * others.
 */
export class WillMemory {
  readonly #bytesMax: number;
  #bytes = 0;
  readonly #byAccount = new Map<string, number>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Counts a will while the task runs. @throws BrokerError 200300, 200301; what the task throws. */
  async countWhile<T>(principal: Principal, will: WillRequest | undefined, task: () => Promise<T>): Promise<T> {
    const bytes = willBytes(will);
    if (bytes > 0) this.#check(principal, bytes);
    this.add(principal, bytes);
    try {
      return await task();
    } finally {
      this.add(principal, -bytes);
    }
  }

  /** Counts bytes without a limit. Pass a negative number for a will that is no longer kept. */
  add(principal: Principal, bytes: number): void {
    this.#bytes += bytes;
    const account = accountOf(principal);
    if (account === undefined || bytes === 0) return;
    const left = (this.#byAccount.get(account) ?? 0) + bytes;
    if (left > 0) this.#byAccount.set(account, left);
    else this.#byAccount.delete(account);
  }

  #check(principal: Principal, bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new BrokerError("busy", { details: `the wills at this node would exceed ${this.#bytesMax} bytes` });
    }
    const account = accountOf(principal);
    const ownMax = Math.ceil(this.#bytesMax / 2);
    if (account === undefined || (this.#byAccount.get(account) ?? 0) + bytes <= ownMax) return;
    throw new BrokerError("overQuota", {
      details: `the wills of ${account} at this node would exceed ${ownMax} bytes`,
    });
  }
}

/** The account whose wills share a limit; undefined for a caller without a credential. */
function accountOf(principal: Principal): string | undefined {
  if (principal.kind !== "known") return undefined;
  const owner = ownerOf(principal);
  const tenant = tenantOf(owner);
  return tenant === undefined ? `principal "${owner}"` : `tenant "${tenant}"`;
}
