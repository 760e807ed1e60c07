import type { Log } from "../../blocks/log.ts";
import type { EvmBlock } from "../evm.ts";
import type { Message } from "../execute.ts";
import { Memory } from "./memory.ts";
import { type SlotReader, Slots } from "./slots.ts";
import { fromBytes, type Word } from "./word.ts";

/** One instruction, or several that are joined. */
export type Step = (machine: Machine) => void;

/** Instructions that run one after another: nothing jumps between them. Gas and stack are checked once for all of them. */
export interface Block {
  readonly steps: readonly Step[];
  /** Of all its instructions, besides what depends on their operands. */
  readonly gas: number;
  /** Words that must be on the stack before. */
  readonly needs: number;
  /** Most words that it has on the stack beyond those before. */
  readonly grows: number;
  /** Where the code goes on, unless the block jumps. */
  readonly next: number;
}

/** A contract's code, analysed once. */
export interface Code {
  readonly bytes: Buffer;
  /** 1 where a jump may land. */
  readonly targets: Uint8Array;
  /** What the PUSH at a place pushes. */
  readonly pushes: readonly Word[];
}

/** Code that can run. */
export interface Program {
  readonly code: Code;
  /** The block that begins at a place where a jump may land, or where another block ended; undefined if its first instruction is missing. */
  blockAt(at: number): Block | undefined;
}

/** What the environment instructions answer. */
export interface CallContext {
  readonly message: Message;
  readonly address: Uint8Array;
  readonly block: EvmBlock;
  readonly chainId: number;
}

/** Init code to be run as a contract. */
export interface Creation {
  /** The next change of the memory may show through. */
  readonly initCode: Buffer;
  readonly salt: Uint8Array;
  /** What running it and storing its result may use. */
  readonly gas: number;
}

/** Makes contracts for code that asks for them. */
export interface Creator {
  /** The new contract; undefined where only the EVM can tell what comes of it. */
  create(creation: Creation): { readonly address: Uint8Array; readonly gasUsed: number } | undefined;
}

export interface MachineOptions extends CallContext {
  readonly program: Program;
  readonly caller: Uint8Array;
  readonly input: Buffer;
  /** Without one, making contracts is left to the EVM. */
  readonly creator?: Creator;
  readonly gas: number;
  readonly readSlot: SlotReader;
}

/** How an execution ends: by itself, or in a way that is left to the EVM to tell. */
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

  /** The stack's height was checked before the instruction. */
  pop(): Word {
    return this.stack.pop() ?? 0;
  }

  push(word: Word): void {
    this.stack.push(word);
  }

  /** Whether the gas was there; if not, the execution is over. */
  charge(gas: number): boolean {
    this.gas -= gas;
    if (this.gas >= 0) return true;
    this.ending = "left";
    return false;
  }

  /** As `charge`, with what it costs to have a range in memory. */
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
