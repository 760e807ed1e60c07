import { setTimeout as pause } from "node:timers/promises";
import { BrokerError, type ErrorName } from "@stele/wire";
import { StoreError, type StoreFault } from "../store-error.ts";
import { conflictTriesMax } from "./limits.ts";
import { LockHeldError } from "./shared-locks.ts";

const conflictPauseMs = 20;

interface Answer {
  readonly name: ErrorName;
  /** What the server lacks, if it can be reached. Names no server: every caller reads it. */
  readonly details?: string;
}

const unreachable: Answer = { name: "storeUnreachable" };

/** The error that a caller gets for each fault that may end while the broker runs, by itself or by a repair. */
const answerByFault: ReadonlyMap<StoreFault, Answer> = new Map<StoreFault, Answer>([
  ["unavailable", unreachable],
  ["lock-timeout", unreachable],
  ["conflict", unreachable],
  ["full", { ...unreachable, details: "its disk is full" }],
  ["io", { ...unreachable, details: "it cannot read or write its disk" }],
  ["read-only", { ...unreachable, details: "it is read-only" }],
  ["cannot-open", unreachable],
  ["exhausted", { name: "busy" }],
]);

/**
 * Wraps an object whose calls are one transaction each. Repeats a call that the server undid because of another transaction. If a lock was held, repeats the
 * call once the lock is free. For a fault in `answerByFault`, a call throws a BrokerError with the StoreError as its cause; it throws other errors unchanged.
 * Never repeats the call named `except`, and throws all its errors unchanged.
 */
export function answering<Target extends object>(
  target: Target,
  { except }: { readonly except?: string } = {},
): Target {
  return new Proxy(target, { get: (_, name) => getAnswering(target, name, name === except) });
}

function getAnswering(target: object, name: string | symbol, isPlain: boolean): unknown {
  const member: unknown = Reflect.get(target, name, target);
  if (typeof member === "object" && member !== null) return answering(member); // A part of the store, such as its sessions.
  if (typeof member !== "function") return member;
  const call = async (args: readonly unknown[]): Promise<unknown> => Reflect.apply(member, target, args);
  if (isPlain) return (...args: unknown[]) => call(args);
  return async (...args: unknown[]) => {
    try {
      return await callUntilKept(async () => call(args));
    } catch (error) {
      throw toAnswer(error);
    }
  };
}

async function callUntilKept<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof StoreError) || tries === conflictTriesMax) throw error;
      if (error instanceof LockHeldError) await error.freed();
      else if (error.fault === "conflict") await pause(Math.random() * conflictPauseMs * tries);
      else throw error;
    }
  }
}

function toAnswer(error: unknown): unknown {
  const answer = error instanceof StoreError ? answerByFault.get(error.fault) : undefined;
  return answer === undefined ? error : new BrokerError(answer.name, { ...answer, cause: error });
}
