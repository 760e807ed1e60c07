/** Counts outcomes, and prints how often each occurred. */
export class Tally {
  readonly #name: string;
  readonly #counts = new Map<string, number>();

  constructor(name: string) {
    this.#name = name;
  }

  count(outcome: string): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
  }

  print(): void {
    const counts = [...this.#counts].map(([outcome, count]) => `${count} ${outcome}`);
    process.stdout.write(`${this.#name}: ${counts.join(", ")}\n`);
  }
}
