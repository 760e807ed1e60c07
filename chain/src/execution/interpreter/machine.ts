import type { Log } from "../../blocks/log.ts";
import type { EvmBlock } from "../evm.ts";
import type { Message } from "../execute.ts";
import { Memory } from "./memory.ts";
import { type SlotReader, Slots } from "./slots.ts";
import { fromBytes, type Word } from "./word.ts";

/** One instruction, or several joined ones. */
export type Step = (machine: Machine) => void;

/** Instructions that run one after another, without a jump between them. Gas and stack are checked once for all of them. */
export interface Block {
  readonly steps: readonly Step[];
  /** Gas of all its instructions, without the parts that depend on operands: instructions charge those parts themselves. */
  readonly gas: number;
  /** Words that must be on the stack before the block runs. */
  readonly needs: number;
  /** Maximum number of words that the block adds to the stack at any time. */
  readonly grows: number;
  /** Where execution continues unless the block jumps. */
  readonly next: number;
}

/** A contract's code, analysed once. */
export interface Code {
  readonly bytes: Buffer;
  /** 1 where a jump may land. */
  readonly targets: Uint8Array;
  /** The word that the PUSH at each offset pushes. */
  readonly pushes: readonly Word[];
}

/** Code that can run. */
export interface Program {
  readonly code: Code;
  /** The block that begins at a jump target or where another block ended; undefined if the interpreter lacks its first instruction. */
  blockAt(at: number): Block | undefined;
}

/** What the environment instructions read. */
export interface CallContext {
  readonly message: Message;
  readonly address: Uint8Array;
  readonly block: EvmBlock;
  readonly chainId: number;
}

/** The operands of a CREATE2 without value. */
export interface Creation {
  /** A view of the memory, which later changes may overwrite. */
  readonly initCode: Buffer;
  readonly salt: Uint8Array;
  /** Gas for running the init code and storing its result. */
  readonly gas: number;
}

/** Creates contracts for CREATE2. */
export interface Creator {
  /** The new contract; undefined if the EVM must run the message instead. */
  create(creation: Creation): { readonly address: Uint8Array; readonly gasUsed: number } | undefined;
}

export interface MachineOptions extends CallContext {
  readonly program: Program;
  readonly caller: Uint8Array;
  readonly input: Buffer;
  /** Without a creator, the EVM runs messages that create contracts. */
  readonly creator?: Creator;
  readonly gas: number;
  readonly readSlot: SlotReader;
}

/** How an execution ends: successfully, or left to the EVM. */
export type Ending = "success" | "left";

/** The state of one execution of one contract's code. */
export class Machine {
  readonly program: Program;
  readonly context: CallContext;
  readonly input: Buffer;
  readonly memory = new Memory();
  readonly slots: Slots;
  readonly stack: Word[] = [];
  readonly logs: Log[] = [];
  readonly caller: Word;
  readonly creator: Creator | undefined;
  at = 0;
  gas: number;
  output: Uint8Array = new Uint8Array(0);
  ending: Ending | undefined;

  constructor({ program, gas, readSlot, caller, input, creator, ...context }: MachineOptions) {
    this.program = program;
    this.context = context;
    this.gas = gas;
    this.slots = new Slots(readSlot);
    this.input = input;
    this.caller = fromBytes(caller);
    this.creator = creator;
  }

  /** Takes the top word off the stack. The block's check of the stack guarantees that there is one. */
  pop(): Word {
    return this.stack.pop() ?? 0;
  }

  push(word: Word): void {
    this.stack.push(word);
  }

  /** Charges gas. Returns whether the gas left sufficed; if not, the EVM runs the message. */
  charge(gas: number): boolean {
    this.gas -= gas;
    if (this.gas >= 0) return true;
    this.ending = "left";
    return false;
  }

  /** As `charge`, plus the gas for a range of memory that is not in use yet. Grows the memory to contain the range. */
  chargeRange(offset: Word, length: Word, gas = 0): boolean {
    if (this.memory.has(offset, length)) return gas === 0 || this.charge(gas);
    if (!this.charge(gas + this.memory.costOf(offset, length))) return false;
    this.memory.grow(offset, length);
    return true;
  }

  jump(target: Word): void {
    if (typeof target === "number" && this.program.code.targets[target] === 1) this.at = target;
    else this.ending = "left";
  }
}
