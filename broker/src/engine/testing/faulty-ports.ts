import { BrokerError } from "@stele/wire";

/** How a port call goes wrong: before it did anything, or after, so that only its answer is lost. `dies`: the process ends there. */
export const faults = ["fails before", "fails after", "dies before", "dies after"] as const;
export type Fault = (typeof faults)[number];

const counted = new Set([
  "recordPublishKeys",
  "findPublishKey",
  "releasePublishKeys",
  "movePublishKey",
  "append",
  "settled",
  "readBatches",
  "findTopic",
]);

/** Makes the Nth counted call of its ports go wrong. */
export class FaultyPorts {
  calls = 0;
  /** Calls count from now on. */
  isArmed = false;
  /** The process has died: nothing that it asks happens, and nothing is answered. */
  isDead = false;
  readonly #at: number;
  readonly #fault: Fault;

  constructor(at: number, fault: Fault) {
    this.#at = at;
    this.#fault = fault;
  }

  wrap<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        if (!counted.has(String(name)))
          return (...args: unknown[]) => (this.isDead ? never() : Reflect.apply(member, target, args));
        return (...args: unknown[]) =>
          this.#call(String(name), async () => Reflect.apply(member, target, args) as unknown);
      },
    });
  }

  async #call(name: string, run: () => Promise<unknown>): Promise<unknown> {
    if (this.isDead) return never();
    if (this.isArmed) this.calls += 1;
    if (this.calls !== this.#at) {
      const answer = await run();
      return this.isDead ? never() : answer;
    }
    if (this.#fault.endsWith("after")) await run();
    if (this.#fault.startsWith("dies")) {
      this.isDead = true;
      return never();
    }
    throw new BrokerError(name === "append" ? "transactionTimeout" : "storeUnreachable");
  }
}

const never = (): Promise<never> => new Promise(() => {});
