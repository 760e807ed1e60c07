import { INSTRUCTIONS, type Instruction } from "./instructions.ts";
import type { Block, Code, Step } from "./machine.ts";
import type { Word } from "./word.ts";

const STOP = 0x00;
const JUMP = 0x56;
const JUMPI = 0x57;
const JUMPDEST = 0x5b;

/**
 * The block that begins at `start`; undefined if the first instruction is missing. It ends before a place that jumps reach, so that all blocks
 * together are as long as the code, and before an instruction that is missing.
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

/** A word that is pushed for the next instruction alone never gets to the stack. */
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

/** An instruction whose upper word is known. */
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
