import { DueBuckets } from "../../lib/due-buckets.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Access } from "../access/access.ts";
import { type ChangedOwners, type Owner, ownerOf } from "../access/caller.ts";
import { SetMap } from "../../lib/set-map.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { EngineLimits } from "../limits.ts";
import { type Connected, isStillAdmitted, willBytes } from "./connected.ts";
import { WillMemory } from "./will-memory.ts";

export interface ConnectedOwnersParts {
  readonly access: Access;
  readonly clock: Clock;
  readonly limits: Pick<EngineLimits, "willBytesMax">;
  readonly slices: TimeSlices;
}

/** Connected sessions by principal and by expiry of their credentials: a check visits only those whose rights may have changed. Also counts bytes of wills. */
export class ConnectedOwners {
  readonly #access: Access;
  /** Wills of connected sessions, and of those that attach. */
  readonly wills: WillMemory;
  readonly #time: ForwardClock;
  readonly #byOwner = new SetMap<Owner, Connected>();
  readonly #expiring = new DueBuckets<Connected>();
  readonly #slices: TimeSlices;
  /** Sessions that get nothing more, and whose connections are about to end. */
  readonly #ending = new Set<Connected>();
  #isEnding = false;

  constructor({ access, clock, limits, slices }: ConnectedOwnersParts) {
    this.#access = access;
    this.#slices = slices;
    this.wills = new WillMemory(limits.willBytesMax);
    this.#time = new ForwardClock(clock);
  }

  add(known: Connected): void {
    this.#byOwner.add(ownerOf(known.principal), known);
    this.wills.add(known.principal, willBytes(known.will));
    this.#watchExpiry(known);
  }

  delete(known: Connected): void {
    this.#ending.delete(known);
    this.#byOwner.delete(ownerOf(known.principal), known);
    this.wills.add(known.principal, -willBytes(known.will));
    const expiresAt = expiryOf(known);
    if (expiresAt !== undefined) this.#expiring.delete(known, expiresAt);
  }

  /** Ends the connections of principals that are no longer admitted. Call it several times a second. */
  check(changed: ChangedOwners): void {
    const owners = changed === "all" ? [...this.#byOwner.keys()] : changed;
    for (const owner of owners) {
      for (const known of this.#byOwner.get(owner)) this.#check(known);
    }
    for (const known of this.#expiring.takeDue(this.#time.now())) {
      this.#check(known);
      // If the bucket was due, but not yet the session's credential, check again later.
      if (this.#byOwner.get(ownerOf(known.principal)).has(known)) this.#watchExpiry(known);
    }
  }

  /**
   * Ends the connection of a principal that is no longer admitted. Its session stops reading in this turn, so that it neither delivers events nor skips them
   * for lack of rights. The connections themselves end in slices: each takes about 0.1 ms, and ten thousand may have one key.
   */
  #end(known: Connected): void {
    if (this.#ending.has(known)) return;
    known.session.disconnect();
    this.#ending.add(known);
    if (!this.#isEnding) void this.#endAll();
  }

  /** Never rejects. */
  async #endAll(): Promise<void> {
    this.#isEnding = true;
    for (const known of this.#ending) {
      this.#ending.delete(known);
      known.peer.ended("refused"); // This call may detach the session.
      const pause = this.#slices.pause();
      if (pause !== undefined) await pause;
    }
    this.#isEnding = false;
  }

  #check(known: Connected): void {
    if (isStillAdmitted(known, this.#access)) known.session.memberships.checkRights();
    else this.#end(known);
  }

  #watchExpiry(known: Connected): void {
    const expiresAt = expiryOf(known);
    if (expiresAt !== undefined) this.#expiring.add(known, expiresAt);
  }
}

function expiryOf({ principal }: Connected): number | undefined {
  return principal.kind === "known" ? principal.expiresAt : undefined;
}
