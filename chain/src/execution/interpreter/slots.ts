import { fromBytes, toBytes, type Word } from "./word.ts";

/** One slot as a transaction sees it. */
export interface Slot {
  /** Its value before the transaction. */
  readonly original: Word;
  current: Word;
  isWarm: boolean;
}

/** Reads a slot as the transactions before this one left it. */
export type SlotReader = (slot: Uint8Array) => Uint8Array;

export const COLD_GAS = 2_100;
export const WARM_GAS = 100;
const SET_GAS = 20_000;
export const RESET_GAS = 2_900;
const CLEAR_REFUND = 4_800;

/** The slots of one contract that a transaction accessed, and the gas of accesses and changes (EIP-2200, 2929 and 3529). */
export class Slots {
  readonly #slots = new Map<Word, Slot>();
  readonly #read: SlotReader;
  /** Gas to be refunded. Falls as well as rises, but not below zero. */
  refund = 0;

  constructor(read: SlotReader) {
    this.#read = read;
  }

  /** True until a slot is accessed. */
  get isUntouched(): boolean {
    return this.#slots.size === 0;
  }

  get(key: Word): Slot {
    const known = this.#slots.get(key);
    if (known !== undefined) return known;
    const original = fromBytes(this.#read(toBytes(key)));
    const slot = { original, current: original, isWarm: false };
    this.#slots.set(key, slot);
    return slot;
  }

  /** Makes a slot of the access list cost a warm access (EIP-2930). */
  warm(key: Word): void {
    this.get(key).isWarm = true;
  }

  /** Returns the gas of reading a slot, and makes the slot warm. */
  load(slot: Slot): number {
    const gas = slot.isWarm ? WARM_GAS : COLD_GAS;
    slot.isWarm = true;
    return gas;
  }

  /** Changes a slot. Returns the gas. */
  store(slot: Slot, value: Word): number {
    const access = slot.isWarm ? 0 : COLD_GAS;
    const { original, current } = slot;
    slot.isWarm = true;
    slot.current = value;
    if (current === value) return access + WARM_GAS;
    if (original === current) return access + this.#changeFirst(original, value);
    this.#refundAgain(slot, current);
    return access + WARM_GAS;
  }

  /** The slots that a transaction leaves with another value, as bytes. */
  *changes(): Generator<readonly [Buffer, Buffer]> {
    for (const [key, { original, current }] of this.#slots) {
      if (original !== current) yield [toBytes(key), toBytes(current)];
    }
  }

  #changeFirst(original: Word, value: Word): number {
    if (original === 0) return SET_GAS;
    if (value === 0) this.refund += CLEAR_REFUND;
    return RESET_GAS;
  }

  #refundAgain({ original, current: value }: Slot, before: Word): void {
    if (original !== 0 && before === 0) this.refund -= CLEAR_REFUND;
    else if (original !== 0 && value === 0) this.refund += CLEAR_REFUND;
    if (original === value) this.refund += (original === 0 ? SET_GAS : RESET_GAS) - WARM_GAS;
  }
}
