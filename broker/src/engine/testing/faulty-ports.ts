import { BrokerError } from "@stele/wire";

/** How a port call fails: before it has an effect, or after, so that only its answer is lost. With `dies`, the process ends at that moment. */
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

/** Wraps ports, and makes one of their calls fail: number `at` of those that it counts. */
export class FaultyPorts {
  calls = 0;
  /** Whether calls are counted. */
  isArmed = false;
  /** Whether the process has died: then no call has an effect or gets an answer. */
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
