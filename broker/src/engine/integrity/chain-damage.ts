import { joinTexts } from "../../lib/join-texts.ts";

/** Maximum number of blocks that a message names; it counts the others. */
const blocksNamedMax = 10;

/** Maximum number of different reasons that are kept for damage of the state. */
const stateReasonsMax = 16;

interface DamagedBlock {
  readonly reason: string;
  /** Whether the index has dropped events of this block, so that they are lost. */
  readonly isLost: boolean;
}

/** Known damage in the file of a group's chain. */
export class ChainDamage {
  readonly #blocks = new Map<number, DamagedBlock>();
  readonly #stateReasons = new Set<string>();

  has(block: number): boolean {
    return this.#blocks.has(block);
  }

  note(block: number, damaged: DamagedBlock): void {
    this.#blocks.set(block, damaged);
  }

  clear(block: number): void {
    this.#blocks.delete(block);
  }

  hasState(reason: string): boolean {
    return this.#stateReasons.has(reason);
  }

  /** Notes that a trie node or a contract's code of the newest state is damaged. */
  noteState(reason: string): void {
    if (this.#stateReasons.size < stateReasonsMax) this.#stateReasons.add(reason);
  }

  clearState(): void {
    this.#stateReasons.clear();
  }

  /** Why the group is not ready: events are lost, and their readers wait. Undefined while no event is lost. */
  get failure(): string | undefined {
    const where = this.#describe((one) => one.isLost);
    return (
      where && `${where} The index has dropped events there (storeRetentionMs), so nobody can answer them: ${remedy}`
    );
  }

  /** The warning for the operator about damage that lost no event; undefined while there is none. */
  get warning(): string | undefined {
    return joinTexts([this.#blocksWarning, this.#stateWarning]);
  }

  get #stateWarning(): string | undefined {
    const [reason] = this.#stateReasons;
    if (reason === undefined) return undefined;
    return (
      `the chain's file is damaged in its state: ${reason} The broker will stop at a block that needs this state: ` +
      "restore the data folder from a backup, as docs/backup.md#repair says"
    );
  }

  get #blocksWarning(): string | undefined {
    const where = this.#describe((one) => !one.isLost);
    return (
      where &&
      `${where} The broker answers from the index, but has no proofs for events of these blocks, and could not rebuild a lost index: ${remedy}`
    );
  }

  #describe(isMeant: (one: DamagedBlock) => boolean): string | undefined {
    const blocks = [...this.#blocks].filter(([, one]) => isMeant(one)).toSorted(([one], [other]) => one - other);
    const [first] = blocks;
    if (first === undefined) return undefined;
    const named = blocks.slice(0, blocksNamedMax).map(([number]) => number);
    const others = blocks.length > blocksNamedMax ? ` and ${blocks.length - blocksNamedMax} more` : "";
    return `the chain's file is damaged in block ${named.join(", ")}${others}: ${first[1].reason}`;
  }
}

/** If the index gets the events of a damaged block back, the broker repairs the block and keeps all later ones. A backup of the chain lacks the later ones. */
const remedy = "repair it with the store of a backup that has these blocks, as docs/backup.md#repair says";
