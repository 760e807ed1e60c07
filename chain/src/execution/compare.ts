import { isSameBytes, toBuffer, toHex, trimZeros } from "@stele/eth/node";
import type { Log } from "../blocks/log.ts";
import type { ExecutionState } from "../state/execution-state.ts";
import type { Execution } from "./execute.ts";
import { CREATED_NONCE } from "./interpreter/creations.ts";
import type { Plan } from "./interpreter/own-execution.ts";

export interface Comparison {
  readonly plan: Plan;
  /** The EVM's execution of the same message. */
  readonly execution: Execution;
  /** What earlier transactions of the block stored in the plan's contract. */
  readonly before: ReadonlyMap<string, Uint8Array>;
  /** The state as the EVM left it. */
  readonly state: ExecutionState;
}

/** Where a plan and the EVM differ; undefined when they agree on success, gas, output, logs, storage, nonce and new contracts. */
export function describeDifference(comparison: Comparison): string | undefined {
  const { plan, execution } = comparison;
  if (execution.failure !== undefined) return `success: the EVM says "${execution.failure}"`;
  if (plan.execution.gasUsed !== execution.gasUsed) {
    return `gas: ${plan.execution.gasUsed} against ${execution.gasUsed}`;
  }
  if (!isSameBytes(plan.execution.output, execution.output)) return "output";
  if (!areSameLogs(plan.execution.logs, execution.logs)) return "logs";
  return describeSlots(comparison) ?? describeContracts(comparison);
}

function describeContracts({ plan, state }: Comparison): string | undefined {
  const creator = state.readAccount(plan.address);
  if (creator?.nonce !== plan.nonce) return `nonce: ${plan.nonce} against ${creator?.nonce}`;
  for (const { address, code } of plan.created) {
    const account = state.readAccount(address);
    const isSame = account?.nonce === CREATED_NONCE && isSameBytes(state.readCode(account.codeHash), code);
    if (!isSame) return `contract ${toHex(address)}`;
  }
  return undefined;
}

function areSameLogs(left: readonly Log[], right: readonly Log[]): boolean {
  return left.length === right.length && left.every((log, index) => isSameLog(log, right[index]));
}

function isSameLog(left: Log, right: Log | undefined): boolean {
  return (
    right !== undefined &&
    isSameBytes(left.address, right.address) &&
    isSameBytes(left.data, right.data) &&
    left.topics.length === right.topics.length &&
    left.topics.every((topic, index) => isSameBytes(topic, right.topics[index] ?? topic.subarray(1)))
  );
}

function describeSlots({ plan, before, state }: Comparison): string | undefined {
  const expected = new Map(before);
  for (const [slot, value] of plan.slots) expected.set(toBuffer(slot).toString("latin1"), trimZeros(value));
  const actual = state.copyStorage(plan.address);
  for (const key of new Set([...expected.keys(), ...actual.keys()])) {
    const slot = Buffer.from(key, "latin1");
    const stored = state.readCommitted(plan.address, slot);
    if (!isSameBytes(expected.get(key) ?? stored, actual.get(key) ?? stored)) return `slot ${toHex(slot)}`;
  }
  return undefined;
}
