import type { EventId } from "@stele/wire";
import { type DeadLetter, isSameLetter } from "../../domain/dead-letter.ts";
import type { Position } from "../../domain/position.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { DeadLetterPage, DeadLetters } from "../../ports/dead-letters.ts";

/** The dead letters of the store in memory. */
export class MemoryDeadLetters implements DeadLetters {
  /** The letters of each subscription, ascending by position. */
  readonly #letters = new Map<SubscriptionId, readonly DeadLetter[]>();

  async list(id: SubscriptionId, { after, limit }: DeadLetterPage): Promise<readonly DeadLetter[]> {
    const rest = this.#of(id).filter(({ position }) => after === undefined || position > after);
    return rest.slice(0, limit);
  }

  async find(id: SubscriptionId, eventId: EventId): Promise<DeadLetter | undefined> {
    return this.#of(id).find((letter) => letter.eventId === eventId);
  }

  async count(id: SubscriptionId): Promise<number> {
    return this.#of(id).length;
  }

  async remove(letters: readonly DeadLetter[]): Promise<number> {
    const known = letters.filter((letter) => this.#isKnown(letter));
    for (const letter of known)
      this.#set(letter.subscriptionId, (own) => own.filter((one) => !isSameLetter(one, letter)));
    return known.length;
  }

  async replace(letter: DeadLetter, next: Pick<DeadLetter, "attempts" | "reason" | "failedAt">): Promise<boolean> {
    if (!this.#isKnown(letter)) return false;
    const changed = { ...letter, ...next };
    this.#set(letter.subscriptionId, (own) => own.map((one) => (isSameLetter(one, letter) ? changed : one)));
    return true;
  }

  /** Adds the letters after `cursor`: the stored cursor of the subscription before `saveProgress` moves it. */
  add(id: SubscriptionId, letters: readonly DeadLetter[], cursor: Position): void {
    const passed = letters.filter(({ position }) => position > cursor);
    this.#set(id, (own) => [...own, ...passed].toSorted((left, right) => left.position - right.position));
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

  #isKnown(letter: DeadLetter): boolean {
    return this.#of(letter.subscriptionId).some((one) => isSameLetter(one, letter));
  }

  #set(id: SubscriptionId, change: (own: readonly DeadLetter[]) => readonly DeadLetter[]): void {
    const next = change(this.#of(id));
    if (next.length === 0) this.#letters.delete(id);
    else this.#letters.set(id, next);
  }
}
