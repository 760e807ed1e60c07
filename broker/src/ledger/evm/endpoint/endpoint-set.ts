import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { findCount } from "./answer.ts";
import type { ChainIdentity, EvmProvider } from "./rpc.ts";
import { isFullPool, toRpcFailure, toSendFailure } from "./rpc-failure.ts";
import { isLogList } from "./rpc-log.ts";
import { type ExpectedChain, findDifference, readIdentity } from "./check-chain.ts";
import type { RpcCall } from "./connection.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import { HeadSubscription } from "./head-subscription.ts";
import { Member } from "./member.ts";
import { createConnection } from "./open-connection.ts";

/** Pause between two health checks of all endpoints, in milliseconds. */
const patrolMs = 5_000;
/** Pause between two health checks while an endpoint is down or a subscription is detached, in milliseconds. */
const urgentPatrolMs = 500;
/** Blocks that an endpoint may lag behind the best one and still be used. */
const lagBlocksMax = 3;
const sendMethod = "eth_sendRawTransaction";
/** If an endpoint answers one of these methods with an error, the next endpoint is asked: the first may have pruned the data, or refuse its size. */
const readMethods: ReadonlySet<string> = new Set([
  "eth_getBlockByNumber",
  "eth_getBlockReceipts",
  "eth_getLogs",
  "eth_getTransactionCount",
  "eth_getTransactionReceipt",
]);

export interface EndpointSetOptions {
  /** In order of preference; at least one. */
  readonly addresses: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly chainId?: number | undefined;
  readonly timeoutMs?: number;
}

/**
 * The endpoints of one chain as one provider. Requests go to one endpoint until it fails, then to the next, and return to an earlier one once it
 * recovers. Endpoints that serve another chain are not used; an endpoint that lags is used only if no other is better. A request without an answer
 * goes to the next endpoint: all requests are idempotent, a signed transaction too.
 */
export class EndpointSet implements EvmProvider {
  /** Undefined if no endpoint can notify. */
  readonly subscribeHeads?: NonNullable<EvmProvider["subscribeHeads"]>;
  readonly #options: EndpointSetOptions;
  readonly #members: readonly Member[];
  readonly #subscription: HeadSubscription;
  #expected: ExpectedChain;
  #current: Member;
  #cancelPatrol: (() => void) | undefined;
  #isClosed = false;

  constructor(options: EndpointSetOptions) {
    this.#options = options;
    this.#expected = { chainId: options.chainId, genesisHash: undefined };
    this.#subscription = new HeadSubscription({
      ...options,
      ask: async (member, call) => this.#askMember(member, call),
      askAny: async (call) => this.request(call),
    });
    this.#members = options.addresses.map((address) => this.#createMember(address));
    const [first] = this.#members;
    if (first === undefined) throw new TypeError("a group has at least one endpoint");
    this.#current = first;
    if (this.#members.some(({ connection }) => connection.canNotify)) {
      this.subscribeHeads = async (listener) => this.#subscription.start(listener, this.#current);
    }
    this.#schedulePatrol();
  }

  async request(call: RpcCall): Promise<unknown> {
    return this.#askInTurn(async (member) => this.#askMember(member, call), call.method);
  }

  async requestAll(calls: readonly RpcCall[], height: number): Promise<readonly unknown[]> {
    const method = calls.at(-1)?.method ?? "";
    const ask = async (member: Member): Promise<readonly unknown[]> => {
      await this.#expectHeight(member, height);
      const answers = await this.#attempt(member, method, async () => member.connection.requestAll(calls));
      checkLogs(answers.at(-1), { member, method });
      return answers;
    };
    return this.#askInTurn(ask, method);
  }

  isNotifying(): boolean {
    return !this.#subscription.isDetached;
  }

  failure(): Outage | undefined {
    if (this.#members.some((member) => member.reason === undefined)) return undefined;
    return { reason: this.#reasons(), since: Math.max(...this.#members.map(({ downSince }) => downSince)) };
  }

  expectChain(chain: ChainIdentity): void {
    if (findDifference(chain, this.#expected) !== undefined || this.#expected.genesisHash === undefined) {
      for (const member of this.#members) member.isChecked = false;
    }
    this.#expected = chain;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelPatrol?.();
    this.#subscription.close();
    await Promise.all(this.#members.map(({ connection }) => connection.close()));
  }

  async #askInTurn<T>(ask: (member: Member) => Promise<T>, method: string): Promise<T> {
    const failures = new Map<Member, EndpointError>();
    let refusal: RpcAnswerError | undefined;
    for (const member of this.#order(method)) {
      try {
        return await ask(member);
      } catch (thrown) {
        const error = method === sendMethod ? toSendError(thrown, member) : thrown;
        // This endpoint may refuse the transaction only because an earlier endpoint accepted it. "Already known" is no refusal: both endpoints have it.
        const isDoubtful =
          method === sendMethod && isMaybeDone(failures) && toRpcFailure(error).kind !== "already-known";
        if (isForNext(error)) failures.set(member, error);
        else if (error instanceof RpcAnswerError && readMethods.has(method)) refusal ??= error;
        else throw isDoubtful ? this.#summarise(failures) : error;
      }
    }
    throw refusal ?? this.#summarise(failures);
  }

  async #askMember(member: Member, call: RpcCall): Promise<unknown> {
    const { method } = call;
    const answer = await this.#attempt(member, method, async () => member.connection.request(call));
    checkLogs(answer, { member, method });
    return answer;
  }

  /** @throws EndpointError if the endpoint lacks block `height`, so that the caller asks the next one. The endpoint does not count as down for that. */
  async #expectHeight(member: Member, height: number): Promise<void> {
    if (member.isChecked && (member.head ?? -1) >= height) return;
    const head = await this.#readHead(member);
    if (head >= height) return;
    const reason = `${member.name}: its newest block is ${head}, but the request needs block ${height}`;
    throw new EndpointError(reason, { reach: "unreached" });
  }

  async #attempt<T>(member: Member, method: string, ask: () => Promise<T>): Promise<T> {
    const { failures } = member;
    try {
      if (!member.isChecked) await this.#check(member);
      const result = await ask();
      this.#onAnswer(member, method);
      return result;
    } catch (error) {
      const failure = toEndpointError(error, member);
      if (failure?.reach === "unknown") member.onNoAnswer(method);
      if (failure !== undefined && !isFullPool(error)) this.#onFailure(member, { failure, failures });
      throw failure ?? error;
    }
  }

  /** @throws EndpointError if the endpoint serves another chain or does not answer. */
  async #check(member: Member): Promise<void> {
    const found = await this.#identify(member);
    const difference = findDifference(found, this.#expected);
    if (difference === undefined) {
      this.#expected = found;
      member.isChecked = true;
      return;
    }
    const reason = `${member.name}: ${difference}`;
    if (member.reason !== reason)
      this.#options.logger.warn("chain endpoint serves another chain, not using it", { endpoint: member.name, reason });
    member.onForeign(reason);
    this.#choose();
    throw new EndpointError(reason, { reach: "unreached" });
  }

  async #identify(member: Member): Promise<ChainIdentity> {
    try {
      return await readIdentity(async (call) => {
        const answer = await member.connection.request(call);
        member.onCheckAnswer();
        return answer;
      });
    } catch (error) {
      if (error instanceof EndpointError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new EndpointError(`${member.name}: ${reason}`, { reach: "unreached" });
    }
  }

  #onAnswer(member: Member, method: string): void {
    const wasDown = member.reason;
    member.onAnswer(method);
    if (wasDown === undefined) return;
    this.#options.logger.info("chain endpoint answers again", { endpoint: member.name });
    this.#choose();
  }

  #onFailure(member: Member, { failure, failures }: { failure: EndpointError; failures: number }): void {
    const wasDown = member.reason;
    member.onFailure(failure, failures);
    if (this.#isClosed) return;
    if (wasDown === undefined && member.reason !== undefined) {
      this.#options.logger.warn("chain endpoint lost", { endpoint: member.name, reason: failure.message });
      this.#schedulePatrol();
    }
    this.#choose();
  }

  /** Keeps the endpoint in use while it is healthy; otherwise uses the first healthy one, else the first that is not down. */
  #choose(): void {
    const isWell = (member: Member): boolean => member.failures === 0 && !this.#isBehind(member);
    if (isWell(this.#current)) return;
    const next = this.#members.find(isWell) ?? this.#members.find((member) => member.reason === undefined);
    if (next !== undefined) this.#use(next);
  }

  #use(member: Member): void {
    if (member === this.#current) return;
    const from = this.#current.name;
    this.#current = member;
    this.#options.logger.info("chain endpoint changed", { from, to: member.name });
    void this.#subscription.refresh(member);
  }

  /** Endpoints to ask, best first. Skips those on hold; a lagging one is asked only if no other is better. */
  #order(method: string): readonly Member[] {
    const open = this.#members.filter((member) => !member.isHeld);
    const rank = (member: Member): number =>
      (member.reason === undefined ? 0 : 8) +
      (this.#isBehind(member) ? 4 : 0) +
      (member.isLate(method) ? 2 : 0) +
      (member === this.#current ? 0 : 1);
    const sorted = open.toSorted((a, b) => rank(a) - rank(b));
    return sorted.filter((member, index) => index === 0 || !this.#isBehind(member));
  }

  #isBehind({ head }: Member): boolean {
    const best = Math.max(...this.#members.map((member) => (member.reason === undefined ? (member.head ?? -1) : -1)));
    return head !== undefined && head < best - lagBlocksMax;
  }

  /** One error for all endpoints; `unknown` if any of them may have processed the request. */
  #summarise(failures: ReadonlyMap<Member, EndpointError>): EndpointError {
    const reach = isMaybeDone(failures) ? "unknown" : "unreached";
    const reasons = this.#members.flatMap((member) => failures.get(member)?.message ?? member.reason ?? []);
    return new EndpointError(reasons.join("; "), { reach });
  }

  #reasons(): string {
    return this.#members.flatMap(({ reason }) => reason ?? []).join("; ");
  }

  #createMember(address: string): Member {
    const { clock, timeoutMs } = this.#options;
    const connection = createConnection(address, {
      clock,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      events: {
        onNotification: (notification) => this.#subscription.onNotification(member, notification),
        onLost: () => this.#onLost(member),
      },
    });
    const member = new Member(connection, clock);
    return member;
  }

  /** Detaches the endpoint's subscriptions, and has its chain checked again: after a reconnect, the address may serve another chain. */
  #onLost(member: Member): void {
    member.isChecked = false;
    if (!member.connection.canNotify) return;
    this.#subscription.onLost(member);
    if (!this.#isClosed) this.#schedulePatrol();
  }

  #schedulePatrol(): void {
    this.#cancelPatrol?.();
    if (this.#isClosed) return;
    const isUrgent = this.#members.some(({ reason }) => reason !== undefined) || this.#subscription.isRenewable;
    const delayMs = isUrgent ? urgentPatrolMs : patrolMs;
    this.#cancelPatrol = this.#options.clock.after(delayMs, () => void this.#patrol());
  }

  /**
   * Reads the newest block of each endpoint that is not on hold, and switches to the first healthy endpoint of the list. Until the chain is known,
   * only one endpoint is asked. Never rejects.
   */
  async #patrol(): Promise<void> {
    const known = this.#expected.genesisHash !== undefined;
    const open = this.#members.filter((member) => !member.isHeld);
    await Promise.all((known ? open : open.slice(0, 1)).map(async (member) => this.#lookAt(member)));
    if (this.#isClosed) return;
    const first = this.#members.find((member) => member.failures === 0 && member.isChecked && !this.#isBehind(member));
    if (first !== undefined) this.#use(first);
    await this.#subscription.refresh(this.#current);
    this.#schedulePatrol();
  }

  /** Reads an endpoint's newest block. If this block is lower than before, checks the chain: the endpoint may serve another chain. */
  async #readHead(member: Member): Promise<number> {
    const head = findCount(await this.#askMember(member, { method: "eth_blockNumber" }));
    if (head === undefined) throw new EndpointError(`${member.name}: returned no block number`, { reach: "unreached" });
    if (head < (member.head ?? 0)) await this.#check(member);
    member.head = head;
    return head;
  }

  async #lookAt(member: Member): Promise<void> {
    try {
      await this.#readHead(member);
    } catch (error) {
      this.#options.logger.debug("chain endpoint not checked", { endpoint: member.name, error });
    }
  }
}

/** Whether an endpoint may have processed the request. */
function isMaybeDone(failures: ReadonlyMap<Member, EndpointError>): boolean {
  return [...failures.values()].some((failure) => failure.reach === "unknown");
}

function isForNext(error: unknown): error is EndpointError {
  return error instanceof EndpointError && (error.reach === "unreached" || error.reach === "unknown");
}

/** @throws RpcAnswerError if the answer to a request for logs is no list of logs, so that the next endpoint is asked. */
function checkLogs(answer: unknown, { member, method }: { readonly member: Member; readonly method: string }): void {
  if (method !== "eth_getLogs" || isLogList(answer)) return;
  throw new RpcAnswerError(`${member.name}: returned no list of logs`, { code: 0 });
}

/** Converts an internal error of a chain node, which may have the transaction. Such an error does not count against the endpoint, which answers. */
function toSendError(error: unknown, member: Member): unknown {
  if (!(error instanceof RpcAnswerError) || toSendFailure(error).kind !== "connection") return error;
  return new EndpointError(`${member.name}: ${error.message}`, { reach: "unknown" });
}

/** The failure that counts against an endpoint; undefined if the endpoint answered, or if a size was the cause. */
function toEndpointError(error: unknown, member: Member): EndpointError | undefined {
  if (error instanceof EndpointError) return isForNext(error) ? error : undefined;
  if (error instanceof RpcAnswerError && toRpcFailure(error).kind === "unreached") {
    return new EndpointError(`${member.name}: ${error.message}`, { reach: "unreached" });
  }
  return undefined;
}
