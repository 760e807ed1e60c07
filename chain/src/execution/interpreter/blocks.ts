import { INSTRUCTIONS, type Instruction } from "./instructions.ts";
import type { Block, Code, Step } from "./machine.ts";
import type { Word } from "./word.ts";

const STOP = 0x00;
const JUMP = 0x56;
const JUMPI = 0x57;
const JUMPDEST = 0x5b;

/**
 * Reads the block that begins at `start`; undefined if the interpreter lacks its first instruction. A block ends before a JUMPDEST, so that all blocks together
 * are no longer than the code. It also ends before an instruction that the interpreter lacks.
 */
export function readBlock(code: Code, start: number): Block | undefined {
  const { bytes } = code;
  const steps: Step[] = [];
  let [at, gas, height, needs, grows] = [start, 0, 0, 0, 0];
  let isOpen = true;
  while (isOpen) {
    const opcode = bytes[at] ?? STOP;
    const instruction = INSTRUCTIONS[opcode];
    if (instruction === undefined || (opcode === JUMPDEST && at > start)) break;
    gas += instruction.gas;
    needs = Math.max(needs, instruction.needs - height);
    height += instruction.grows;
    grows = Math.max(grows, height);
    if (opcode !== JUMPDEST) addStep(steps, { instruction, opcode, code, at });
    at += 1 + (instruction.operandBytes ?? 0);
    isOpen = instruction.isLast !== true;
  }
  return at === start ? undefined : { steps, gas, needs, grows, next: at };
}

interface Placed {
  readonly instruction: Instruction;
  readonly opcode: number;
  readonly code: Code;
  readonly at: number;
}

/** The words of steps that push a known word. The next instruction may absorb such a step, so that its word never gets to the stack. */
const pushed = new WeakMap<Step, Word>();

function addStep(steps: Step[], { instruction, opcode, code, at }: Placed): void {
  const word = instruction.constant?.(code, at);
  if (word !== undefined) {
    const push: Step = ({ stack }) => void stack.push(word);
    pushed.set(push, word);
    steps.push(push);
    return;
  }
  const last = steps.at(-1);
  const upper = last && pushed.get(last);
  const joined = upper === undefined ? undefined : join(upper, { instruction, opcode, code, at });
  if (joined === undefined) steps.push(instruction.run);
  else steps[steps.length - 1] = joined;
}

/** Joins an instruction with the known word that is pushed before it; undefined if the instruction has no such form. */
function join(upper: Word, { instruction, opcode, code }: Placed): Step | undefined {
  if (opcode === JUMP) return (machine) => machine.jump(upper);
  if (opcode === JUMPI) return jumpIfTo(upper, code);
  const compute = instruction.given?.(upper);
  if (compute === undefined) return undefined;
  return ({ stack }) => {
    const place = stack.length - 1;
    stack[place] = compute(stack[place] ?? 0);
  };
}

function jumpIfTo(target: Word, { targets }: Code): Step {
  const isThere = typeof target === "number" && targets[target] === 1;
  return (machine) => {
    if (machine.stack.pop() === 0) return;
    if (isThere) machine.at = target;
    else machine.ending = "left";
  };
}
