import { toBuffer } from "@stele/eth/node";
import { COINBASE } from "../../blocks/header.ts";
import { rememberedKeccak } from "../../lib/remembered-keccak.ts";
import type { Code, Machine, Step } from "./machine.ts";
import * as words from "./word.ts";
import { fromBytes, toBytes, toWord, WORD_BYTES, type Word } from "./word.ts";

/** One instruction: its fixed gas, its stack requirement and change, and its action. */
export interface Instruction {
  readonly gas: number;
  /** Words that must be on the stack. */
  readonly needs: number;
  /** Change of the number of words on the stack. */
  readonly grows: number;
  readonly run: Step;
  /** True if the instruction jumps, ends the execution or depends on the gas left: then gas of later instructions must not be charged before it runs. */
  readonly isLast?: true;
  /** For an instruction that only pushes a word known from the code: that word. */
  readonly constant?: (code: Code, at: number) => Word;
  /** Bytes after the opcode that belong to the instruction. */
  readonly operandBytes?: number;
  /** For an instruction that only computes a result from two words: the computation with a known upper word. */
  readonly given?: (upper: Word) => (lower: Word) => Word;
}

const BASE = 2;
const VERY_LOW = 3;
const LOW = 5;
const MIDDLE = 8;
const HIGH = 10;
const JUMPDEST_GAS = 1;
const HASH_GAS = 30;
const HASH_WORD_GAS = 6;
export const COPY_WORD_GAS = 3;
const LOG_GAS = 375;
export const LOG_BYTE_GAS = 8;
const CREATE_GAS = 32_000;
const INITCODE_WORD_GAS = 2;
/** The creating code keeps one part in this many of its gas (EIP-150). */
const CHILD_GAS_QUOTIENT = 64;
/** A storage write fails if no more gas than this is left (EIP-2200). */
export const STORE_GAS_MIN = 2_300;

const PUSH0 = 0x5f;
const DUP1 = 0x80;
const SWAP1 = 0x90;
const LOG0 = 0xa0;
const PUSHES = 32;
const DUPS = 16;
const SWAPS = 16;
const LOGS = 5;
const OPCODES = 256;

/** The instructions by opcode. Missing ones are rare, reach other accounts or fail: if code reaches one of them, the EVM runs the message from the start. */
export const INSTRUCTIONS: readonly (Instruction | undefined)[] = createTable();

function createTable(): (Instruction | undefined)[] {
  const table: (Instruction | undefined)[] = Array.from({ length: OPCODES });
  const families = [arithmetic(), environment(), memoryAndStorage(), control()];
  for (const [opcode, instruction] of families.flatMap((family) => Object.entries(family))) {
    table[Number(opcode)] = instruction;
  }
  for (let count = 1; count <= PUSHES; count += 1) table[PUSH0 + count] = push(count);
  for (let depth = 1; depth <= DUPS; depth += 1) table[DUP1 + depth - 1] = duplicate(depth);
  for (let depth = 1; depth <= SWAPS; depth += 1) table[SWAP1 + depth - 1] = swap(depth);
  for (let topics = 0; topics < LOGS; topics += 1) table[LOG0 + topics] = log(topics);
  return table;
}

type Family = Readonly<Record<number, Instruction>>;

function arithmetic(): Family {
  return {
    0x01: binary(VERY_LOW, words.add),
    0x02: binary(LOW, words.multiply),
    0x03: binary(VERY_LOW, words.subtract),
    0x04: binary(LOW, words.divide),
    0x05: binary(LOW, words.signedDivide),
    0x06: binary(LOW, words.remainder),
    0x07: binary(LOW, words.signedRemainder),
    0x08: ternary(words.addModulo),
    0x09: ternary(words.multiplyModulo),
    0x0b: binary(LOW, words.signExtend),
    0x10: binary(VERY_LOW, words.lessThan),
    0x11: binary(VERY_LOW, words.greaterThan),
    0x12: binary(VERY_LOW, words.signedLessThan),
    0x13: binary(VERY_LOW, words.signedGreaterThan),
    0x14: binary(VERY_LOW, words.equal),
    0x15: unary((word) => (word === 0 ? 1 : 0)),
    0x16: binary(VERY_LOW, words.and, words.andWith),
    0x17: binary(VERY_LOW, words.or),
    0x18: binary(VERY_LOW, words.exclusiveOr),
    0x19: unary(words.not),
    0x1a: binary(VERY_LOW, words.byteAt),
    0x1b: binary(VERY_LOW, words.shiftLeft, words.shiftLeftBy),
    0x1c: binary(VERY_LOW, words.shiftRight, words.shiftRightBy),
    0x1d: binary(VERY_LOW, words.signedShiftRight),
  };
}

function environment(): Family {
  return {
    0x30: read(({ context }) => fromBytes(context.address)),
    0x32: read(({ context }) => fromBytes(context.message.from)),
    0x33: read(({ caller }) => caller),
    0x34: read(({ context }) => toWord(context.message.value)),
    0x35: { gas: VERY_LOW, needs: 1, grows: 0, run: loadInput },
    0x36: read(({ input }) => input.length),
    0x37: copy(({ input }) => input),
    0x38: constant(({ bytes }) => bytes.length),
    0x39: copy(({ program }) => program.code.bytes),
    0x3a: read(({ context }) => toWord(context.message.gasPrice)),
    0x3d: read(() => 0), // nothing is called, and a successful creation returns nothing
    0x41: read(() => fromBytes(COINBASE)),
    0x42: read(({ context }) => toWord(context.block.header.timestamp)),
    0x43: read(({ context }) => toWord(context.block.header.number)),
    0x45: read(({ context }) => toWord(context.block.header.gasLimit)),
    0x46: read(({ context }) => context.chainId),
    0x48: read(({ context }) => toWord(context.block.header.baseFeePerGas)),
    0x58: constant((_, at) => at),
    0x59: read(({ memory }) => memory.size),
    0x5a: { ...read(({ gas }) => gas), isLast: true },
    0x5f: constant(() => 0),
  };
}

function memoryAndStorage(): Family {
  return {
    0x20: { gas: HASH_GAS, needs: 2, grows: -1, run: hash },
    0x51: { gas: VERY_LOW, needs: 1, grows: 0, run: loadMemory },
    0x52: { gas: VERY_LOW, needs: 2, grows: -2, run: storeMemory },
    0x53: { gas: VERY_LOW, needs: 2, grows: -2, run: storeByte },
    0x54: { gas: 0, needs: 1, grows: 0, run: loadSlot },
    0x55: { gas: 0, needs: 2, grows: -2, run: storeSlot, isLast: true },
    0x5e: { gas: VERY_LOW, needs: 3, grows: -3, run: moveMemory },
  };
}

function control(): Family {
  return {
    0x00: { gas: 0, needs: 0, grows: 0, run: stop, isLast: true },
    0x50: { gas: BASE, needs: 1, grows: -1, run: (machine) => void machine.pop() },
    0x56: { gas: MIDDLE, needs: 1, grows: -1, run: (machine) => machine.jump(machine.pop()), isLast: true },
    0x57: { gas: HIGH, needs: 2, grows: -2, run: jumpIf, isLast: true },
    0x5b: { gas: JUMPDEST_GAS, needs: 0, grows: 0, run: () => undefined },
    0xf3: { gas: 0, needs: 2, grows: -2, run: returnMemory, isLast: true },
    0xf5: { gas: CREATE_GAS, needs: 4, grows: -3, run: create, isLast: true },
  };
}

function unary(compute: (a: Word) => Word): Instruction {
  return { gas: VERY_LOW, needs: 1, grows: 0, run: (machine) => machine.push(compute(machine.pop())) };
}

type Compute = (a: Word, b: Word) => Word;

function binary(gas: number, compute: Compute, given = givenTo(compute)): Instruction {
  const run: Step = ({ stack }) => {
    const upper = stack.pop() ?? 0;
    const place = stack.length - 1;
    stack[place] = compute(upper, stack[place] ?? 0);
  };
  return { gas, needs: 2, grows: -1, run, given };
}

function givenTo(compute: Compute): NonNullable<Instruction["given"]> {
  return (upper) => (lower) => compute(upper, lower);
}

function ternary(compute: (a: Word, b: Word, c: Word) => Word): Instruction {
  const run = (machine: Machine): void => machine.push(compute(machine.pop(), machine.pop(), machine.pop()));
  return { gas: MIDDLE, needs: 3, grows: -2, run };
}

function read(value: (machine: Machine) => Word): Instruction {
  return { gas: BASE, needs: 0, grows: 1, run: (machine) => machine.push(value(machine)) };
}

/** An instruction that pushes a word known from the code. */
function constant(value: NonNullable<Instruction["constant"]>): Instruction {
  return { ...read(() => 0), constant: value };
}

function push(count: number): Instruction {
  return { ...constant(({ pushes }, at) => pushes[at] ?? 0), gas: VERY_LOW, operandBytes: count };
}

function duplicate(depth: number): Instruction {
  const run = ({ stack }: Machine): void => void stack.push(stack[stack.length - depth] ?? 0);
  return { gas: VERY_LOW, needs: depth, grows: 1, run };
}

function swap(depth: number): Instruction {
  const run = ({ stack }: Machine): void => {
    const top = stack.length - 1;
    const other = stack[top - depth] ?? 0;
    stack[top - depth] = stack[top] ?? 0;
    stack[top] = other;
  };
  return { gas: VERY_LOW, needs: depth + 1, grows: 0, run };
}

function log(topics: number): Instruction {
  const run = (machine: Machine): void => {
    const [offset, length] = [machine.pop(), machine.pop()];
    const gas = LOG_GAS + LOG_GAS * topics + LOG_BYTE_GAS * Number(length);
    if (!machine.chargeRange(offset, length, gas)) return;
    const { logs, memory, context } = machine;
    // The log gets memory of its own: a block keeps its logs, and a slice of Node's pool would keep all of the pool's 8 KiB.
    const bytes = Buffer.allocUnsafeSlow(topics * WORD_BYTES + Number(length));
    const entries = Array.from({ length: topics }, (_, index) => {
      words.writeWord(bytes, index * WORD_BYTES, machine.pop());
      return bytes.subarray(index * WORD_BYTES, (index + 1) * WORD_BYTES);
    });
    const data = bytes.subarray(topics * WORD_BYTES);
    memory.view(offset, length).copy(data);
    logs.push({ address: context.address, topics: entries, data });
  };
  return { gas: 0, needs: topics + 2, grows: -topics - 2, run };
}

function copy(source: (machine: Machine) => Buffer): Instruction {
  const run = (machine: Machine): void => {
    const [at, from, length] = [machine.pop(), machine.pop(), machine.pop()];
    if (!machine.chargeRange(at, length, copyGas(length))) return;
    machine.memory.writeFrom(source(machine), { at, from, length });
  };
  return { gas: VERY_LOW, needs: 3, grows: -3, run };
}

function copyGas(length: Word): number {
  return COPY_WORD_GAS * Math.ceil(Number(length) / WORD_BYTES);
}

function loadInput(machine: Machine): void {
  const from = machine.pop();
  const { input } = machine;
  if (from >= input.length) return machine.push(0);
  const at = Number(from);
  if (at + WORD_BYTES <= input.length) return machine.push(words.readWord(input, at));
  const padded = Buffer.alloc(WORD_BYTES);
  input.copy(padded, 0, at);
  machine.push(fromBytes(padded));
}

function hash(machine: Machine): void {
  const [offset, length] = [machine.pop(), machine.pop()];
  if (!machine.chargeRange(offset, length, HASH_WORD_GAS * Math.ceil(Number(length) / WORD_BYTES))) return;
  machine.push(words.readWord(toBuffer(rememberedKeccak(machine.memory.view(offset, length))), 0));
}

function loadMemory(machine: Machine): void {
  const offset = machine.pop();
  if (machine.chargeRange(offset, WORD_BYTES)) machine.push(machine.memory.readWord(Number(offset)));
}

function storeMemory(machine: Machine): void {
  const [offset, word] = [machine.pop(), machine.pop()];
  if (machine.chargeRange(offset, WORD_BYTES)) machine.memory.writeWord(Number(offset), word);
}

function storeByte(machine: Machine): void {
  const [offset, word] = [machine.pop(), machine.pop()];
  if (machine.chargeRange(offset, 1)) machine.memory.writeByte(Number(offset), Number(BigInt(word) & 0xffn));
}

function moveMemory(machine: Machine): void {
  const [to, from, length] = [machine.pop(), machine.pop(), machine.pop()];
  const farther = to > from ? to : from;
  if (machine.chargeRange(farther, length, copyGas(length))) machine.memory.move(to, from, length);
}

function loadSlot(machine: Machine): void {
  const slot = machine.slots.get(machine.pop());
  if (machine.charge(machine.slots.load(slot))) machine.push(slot.current);
}

function storeSlot(machine: Machine): void {
  const [key, value] = [machine.pop(), machine.pop()];
  if (machine.gas <= STORE_GAS_MIN) {
    machine.ending = "left";
    return;
  }
  machine.charge(machine.slots.store(machine.slots.get(key), value));
}

function jumpIf(machine: Machine): void {
  const [target, condition] = [machine.pop(), machine.pop()];
  if (condition !== 0) machine.jump(target);
}

/** CREATE2 (EIP-1014), priced by EIP-3860. Leaves everything except an ordinary success to the EVM. */
function create(machine: Machine): void {
  const [value, offset, length, salt] = [machine.pop(), machine.pop(), machine.pop(), machine.pop()];
  const words = Math.ceil(Number(length) / WORD_BYTES);
  if (!machine.chargeRange(offset, length, (HASH_WORD_GAS + INITCODE_WORD_GAS) * words)) return;
  const gas = machine.gas - Math.floor(machine.gas / CHILD_GAS_QUOTIENT);
  const initCode = machine.memory.view(offset, length);
  const contract = value === 0 ? machine.creator?.create({ initCode, salt: toBytes(salt), gas }) : undefined;
  if (contract === undefined) {
    machine.ending = "left";
    return;
  }
  machine.charge(contract.gasUsed);
  machine.push(fromBytes(contract.address));
}

function stop(machine: Machine): void {
  machine.ending = "success";
}

function returnMemory(machine: Machine): void {
  const [offset, length] = [machine.pop(), machine.pop()];
  if (!machine.chargeRange(offset, length)) return;
  machine.output = machine.memory.copy(offset, length);
  machine.ending = "success";
}
