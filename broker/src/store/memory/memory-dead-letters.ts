import type { EventId } from "@stele/wire";
import { type DeadLetter, isSameLetter } from "../../domain/dead-letter.ts";
import type { Position } from "../../domain/position.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { DeadLetterPage, DeadLetters } from "../../ports/dead-letters.ts";

/** The dead letters of the memory store. */
export class MemoryDeadLetters implements DeadLetters {
  /** The dead letters of each subscription, in ascending position. */
  readonly #letters = new Map<SubscriptionId, readonly DeadLetter[]>();

  async list(id: SubscriptionId, { after, limit }: DeadLetterPage): Promise<readonly DeadLetter[]> {
    const rest = this.#of(id).filter(({ position }) => after === undefined || position > after);
    return rest.slice(0, limit);
  }

  async find(id: SubscriptionId, eventId: EventId): Promise<readonly DeadLetter[]> {
    return this.#of(id).filter((letter) => letter.eventId === eventId);
  }

  async count(id: SubscriptionId): Promise<number> {
    return this.#of(id).length;
  }

  async remove(letters: readonly DeadLetter[]): Promise<number> {
    const stored = letters.filter((letter) => this.#isStored(letter));
    for (const letter of stored)
      this.#set(letter.subscriptionId, (own) => own.filter((one) => !isSameLetter(one, letter)));
    return stored.length;
  }

  async replace(letter: DeadLetter, next: Pick<DeadLetter, "attempts" | "reason" | "failedAt">): Promise<boolean> {
    if (!this.#isStored(letter)) return false;
    const changed = { ...letter, ...next };
    this.#set(letter.subscriptionId, (own) => own.map((one) => (isSameLetter(one, letter) ? changed : one)));
    return true;
  }

  /** Adds the dead letters after `cursor`, the stored cursor before `saveProgress` moves it. The others were added when the cursor passed them. */
  add(id: SubscriptionId, letters: readonly DeadLetter[], cursor: Position): void {
    const added = letters.filter(({ position }) => position > cursor);
    this.#set(id, (own) => [...own, ...added].toSorted((left, right) => left.position - right.position));
  }

  dropAfter(id: SubscriptionId, cursor: Position): void {
    this.#set(id, (own) => own.filter(({ position }) => position <= cursor));
  }

  dropAll(id: SubscriptionId): void {
    this.#letters.delete(id);
  }

  #of(id: SubscriptionId): readonly DeadLetter[] {
    return this.#letters.get(id) ?? [];
  }

  #isStored(letter: DeadLetter): boolean {
    return this.#of(letter.subscriptionId).some((one) => isSameLetter(one, letter));
  }

  #set(id: SubscriptionId, change: (own: readonly DeadLetter[]) => readonly DeadLetter[]): void {
    const next = change(this.#of(id));
    if (next.length === 0) this.#letters.delete(id);
    else this.#letters.set(id, next);
  }
}
