import { setImmediate as turn } from "node:timers/promises";
import { BrokerError } from "@stele/wire";
import type { Clock } from "../../ports/clock.ts";
import type { VirtualClock } from "../../ports/testing/virtual-clock.ts";

/** How a node is cut off from the shared store and coordinator: calls fail at once, or get no answer until the cut is healed. */
export type Cut = "refused" | "silent";

/**
 * The boundary of one node's process. While the node is halted, everything that comes in waits until it resumes; after a kill, nothing comes in. Calls that
 * the node sent before the halt or kill still take effect.
 */
export class NodeGate {
  readonly clock: Clock;
  readonly #delayMs: () => number;
  #isKilled = false;
  #isHalted = false;
  #cut: Cut | undefined;
  #held: (() => void)[] | undefined;
  #unanswered: (() => void)[] = [];
  readonly #onHealed = new Set<() => void>();

  /** `delayMs` returns the delay of a message to or from the shared store, in milliseconds. */
  constructor(clock: VirtualClock, delayMs: () => number) {
    this.#delayMs = delayMs;
    this.clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      soon: (action) => this.#arrive(() => clock.soon(action)),
      after: (delayMs, action) => {
        let isCancelled = false;
        const cancel = clock.after(delayMs, () => this.#arrive(() => (isCancelled ? undefined : action())));
        return () => {
          isCancelled = true;
          cancel();
        };
      },
    };
    this.#shared = clock;
  }

  readonly #shared: VirtualClock;

  get isHalted(): boolean {
    return this.#isHalted;
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  kill(): void {
    this.#isKilled = true;
    this.#held = undefined;
  }

  halt(): void {
    this.#isHalted = true;
    this.#held ??= [];
  }

  /** Lets the waiting actions in, one after the other and all before time moves on, like timers and messages of a process that resumes. */
  resume(): void {
    if (!this.#isHalted) return;
    this.#isHalted = false;
    this.#shared.hold(this.#letIn());
  }

  async #letIn(): Promise<void> {
    while (!this.#isHalted && this.#held !== undefined) {
      const action = this.#held.shift();
      if (action === undefined) this.#held = undefined;
      else action();
      await turn();
    }
  }

  cut(how: Cut): void {
    this.#cut = how;
  }

  heal(): void {
    this.#cut = undefined;
    const unanswered = this.#unanswered;
    this.#unanswered = [];
    for (const fail of unanswered) fail();
    for (const action of this.#onHealed) this.#arrive(action);
  }

  /** Calls `action` in the node when it is no longer cut off. */
  onHealed(action: () => void): () => void {
    this.#onHealed.add(action);
    return () => void this.#onHealed.delete(action);
  }

  /** Passes an outside notification to the node; lost while the node is cut off. */
  notify(action: () => void): void {
    if (this.#cut === undefined) this.#arrive(action);
  }

  /** Passes a client's packet to the node. */
  receive(action: () => void): void {
    this.#arrive(action);
  }

  /** A port of the node whose answers come through the gate. */
  wrap<T extends object>(target: T, options: { readonly isShared: boolean }): T {
    const call = options.isShared ? this.#askShared.bind(this) : this.#ask.bind(this);
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (["sessions", "shares", "deadLetters"].includes(String(name))) return this.wrap(value as object, options); // Parts of the store.
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (this.#isKilled) return new Promise(() => {});
          const isStream = name === "follow";
          const isPlain = name === "view";
          if (isPlain) return Reflect.apply(value, target, args);
          if (isStream) return this.#stream(Reflect.apply(value, target, args) as AsyncIterable<unknown>); // `follow` returns a stream.
          return call(async () => Reflect.apply(value, target, args) as unknown);
        };
      },
    });
  }

  async *#stream(source: AsyncIterable<unknown>): AsyncGenerator {
    for await (const item of source) {
      await this.#entered();
      yield item;
    }
    await this.#entered();
  }

  async #ask(call: () => Promise<unknown>): Promise<unknown> {
    try {
      return await call();
    } finally {
      await this.#entered();
    }
  }

  async #askShared(call: () => Promise<unknown>): Promise<unknown> {
    try {
      await this.#travel();
      const answer = await call();
      await this.#travel();
      return answer;
    } finally {
      await this.#entered();
    }
  }

  async #travel(): Promise<void> {
    const delayMs = this.#delayMs();
    if (delayMs > 0) await new Promise<void>((resolve) => void this.#shared.after(delayMs, resolve));
    if (this.#cut === "silent") await new Promise<void>((resolve) => void this.#unanswered.push(resolve));
    else if (this.#cut === undefined) return;
    throw new BrokerError("storeUnreachable", { details: "cut off" });
  }

  #entered(): Promise<void> {
    return new Promise((resolve) => this.#arrive(resolve));
  }

  #arrive(action: () => void): void {
    if (this.#isKilled) return;
    if (this.#held === undefined) action();
    else this.#held.push(action);
  }
}
