import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { findCount } from "./answer.ts";
import { type ChainIdentity, type EvmProvider, Rpc } from "./rpc.ts";
import { isFullPool, toFailureOf, toRpcFailure, toUnreached } from "./rpc-failure.ts";
import { isLogList } from "./rpc-log.ts";
import { type ExpectedChain, findDifference, readIdentity } from "./check-chain.ts";
import type { RpcCall } from "./connection.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import { HeadSubscription } from "./head-subscription.ts";
import { Endpoint } from "./endpoint.ts";
import { createConnection } from "./create-connection.ts";
import { methodsForNext } from "./methods-for-next.ts";

/** Pause between two health checks of all endpoints, in milliseconds. */
const patrolMs = 5_000;
/** Pause before a health check while an endpoint is down, or once a subscription is lost, in milliseconds. */
const urgentPatrolMs = 500;
/** Blocks that an endpoint may lag behind the best one and still be used. */
const lagBlocksMax = 3;
const sendMethod = "eth_sendRawTransaction";
const transactionMethod = "eth_getTransactionByHash";

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
  readonly #options: EndpointSetOptions;
  readonly #endpoints: readonly Endpoint[];
  readonly #subscription: HeadSubscription;
  #expected: ExpectedChain;
  #current: Endpoint;
  #cancelPatrol: (() => void) | undefined;
  #patrolAt = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(options: EndpointSetOptions) {
    this.#options = options;
    this.#expected = { chainId: options.chainId, genesisHash: undefined };
    this.#subscription = new HeadSubscription({
      ...options,
      current: () => this.#current,
      ask: async (endpoint, call) => this.#askEndpoint(endpoint, call),
      askAny: async (call) => this.request(call),
    });
    this.#endpoints = options.addresses.map((address) => this.#createEndpoint(address));
    const [first] = this.#endpoints;
    if (first === undefined) throw new TypeError("a group has at least one endpoint");
    this.#current = first;
    this.#schedulePatrol();
  }

  async request(call: RpcCall): Promise<unknown> {
    return this.#askInTurn(async (endpoint) => this.#askEndpoint(endpoint, call), call);
  }

  async requestAll(calls: readonly RpcCall[], height: number): Promise<readonly unknown[]> {
    const last = calls.at(-1) ?? { method: "" };
    const { method } = last;
    const ask = async (endpoint: Endpoint): Promise<readonly unknown[]> => {
      await this.#expectHeight(endpoint, height);
      const answers = await this.#attempt(endpoint, method, async () => endpoint.connection.requestAll(calls));
      if (answers.includes(null)) throw new RpcAnswerError(`${endpoint.name}: lacks block ${height}`, { code: 0 });
      checkLogs(answers.at(-1), method, endpoint);
      return answers;
    };
    return this.#askInTurn(ask, last);
  }

  async subscribeHeads(listener: (head: unknown) => void): Promise<() => Promise<void>> {
    return this.#subscription.start(listener);
  }

  isNotifying(): boolean {
    return this.#subscription.isAttached;
  }

  failure(): Outage | undefined {
    if (this.#endpoints.some((endpoint) => endpoint.reason === undefined)) return undefined;
    const reason = this.#endpoints.map((endpoint) => endpoint.reason).join("; ");
    return { reason, since: Math.max(...this.#endpoints.map(({ downSince }) => downSince)) };
  }

  expectChain(chain: ChainIdentity): void {
    if (findDifference(chain, this.#expected) !== undefined || this.#expected.genesisHash === undefined)
      this.doubtChain();
    this.#expected = chain;
  }

  doubtChain(): void {
    for (const endpoint of this.#endpoints) endpoint.doubt();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelPatrol?.();
    this.#subscription.close();
    await Promise.all(this.#endpoints.map(({ connection }) => connection.close()));
  }

  async #askInTurn<T>(ask: (endpoint: Endpoint) => Promise<T>, call: RpcCall): Promise<T> {
    const { method, isPromised } = call;
    const failures = new Map<Endpoint, EndpointError>();
    const refusals: RpcAnswerError[] = [];
    const empty: T[] = [];
    for (const endpoint of this.#order(method)) {
      // An endpoint without answers must not delay that of another one.
      if (empty.length > 0 && (endpoint.reason !== undefined || endpoint.isLate(method))) continue;
      try {
        const answer = await ask(endpoint);
        if (isPromised !== true || !endsEmpty(answer)) return answer;
        empty.push(answer);
      } catch (thrown) {
        const error = method === sendMethod ? toSendError(thrown, endpoint) : thrown;
        // This endpoint may refuse the transaction only because an earlier endpoint accepted it. "Already known" is not a refusal: both endpoints have it.
        const isDoubtful =
          method === sendMethod && isMaybeDone(failures) && toRpcFailure(error).kind !== "already-known";
        if (isForNext(error)) failures.set(endpoint, error);
        else if (error instanceof RpcAnswerError && methodsForNext.has(method)) refusals.push(error);
        else throw isDoubtful ? this.#summarise(failures) : error;
      }
    }
    // The endpoint that refused the range may have logs that the others lack, and return them for a smaller range.
    const tooMuch = spansBlocks(call)
      ? refusals.find((refusal) => toRpcFailure(refusal).kind === "range-refused")
      : undefined;
    // An endpoint that fails may have the transaction.
    const isSure = method !== transactionMethod || failures.size + refusals.length === 0;
    if (tooMuch === undefined && isSure) for (const answer of empty) return answer;
    throw tooMuch ?? refusals[0] ?? this.#summarise(failures);
  }

  async #askEndpoint(endpoint: Endpoint, call: RpcCall): Promise<unknown> {
    const { method } = call;
    const answer = await this.#attempt(endpoint, method, async () => endpoint.connection.request(call));
    checkLogs(answer, method, endpoint);
    return answer;
  }

  /** @throws EndpointError if the endpoint lacks block `height`, so that the caller asks the next one. The endpoint does not count as down for that. */
  async #expectHeight(endpoint: Endpoint, height: number): Promise<void> {
    if (endpoint.isChecked && (endpoint.head ?? -1) >= height) return;
    const head = await this.#readHead(endpoint);
    if (head >= height) return;
    const reason = `${endpoint.name}: its newest block is ${head}, but the request needs block ${height}`;
    throw new EndpointError(reason, { reach: "unreached" });
  }

  async #attempt<T>(endpoint: Endpoint, method: string, ask: () => Promise<T>): Promise<T> {
    const { failures } = endpoint;
    try {
      if (!endpoint.isChecked) await this.#check(endpoint);
      const result = await ask();
      this.#onAnswer(endpoint, method);
      return result;
    } catch (error) {
      const failure = toEndpointError(error, endpoint);
      if (failure?.reach === "unknown") endpoint.onNoAnswer(method);
      if (failure !== undefined && !isFullPool(error)) this.#onFailure(endpoint, { failure, failures });
      throw failure ?? error;
    }
  }

  /** @throws EndpointError if the endpoint serves another chain or does not answer. */
  async #check(endpoint: Endpoint): Promise<void> {
    const pass = endpoint.beginCheck();
    const found = await this.#identify(endpoint);
    // The configured chain id may differ from that of the remembered chain, for example with a copied database.
    const configured = { chainId: this.#options.chainId, genesisHash: undefined };
    const difference = findDifference(found, this.#expected) ?? findDifference(found, configured);
    if (difference === undefined) {
      this.#expected = found;
      pass();
      return;
    }
    const reason = `${endpoint.name}: ${difference}`;
    const fields = { endpoint: endpoint.name, reason };
    if (endpoint.reason !== reason)
      this.#options.logger.warn("chain endpoint serves another chain, not using it", fields);
    const wasDown = endpoint.reason !== undefined;
    endpoint.onForeign(reason);
    this.#subscription.onLost(endpoint); // The heads that it announces are those of the other chain.
    if (!wasDown) this.#schedulePatrol();
    throw new EndpointError(reason, { reach: "unreached" });
  }

  async #identify(endpoint: Endpoint): Promise<ChainIdentity> {
    const request = async (call: RpcCall): Promise<unknown> => {
      const answer = await endpoint.connection.request(call);
      endpoint.onCheckAnswer();
      return answer;
    };
    try {
      return await readIdentity(new Rpc({ request }));
    } catch (error) {
      const failure = toRpcFailure(error);
      throw failure.cause instanceof EndpointError ? failure.cause : toUnreached(endpoint.name, failure);
    }
  }

  #onAnswer(endpoint: Endpoint, method: string): void {
    const wasDown = endpoint.reason;
    endpoint.onAnswer(method);
    if (wasDown === undefined || endpoint.reason !== undefined) return;
    this.#options.logger.info("chain endpoint answers again", { endpoint: endpoint.name });
  }

  #onFailure(endpoint: Endpoint, { failure, failures }: { failure: EndpointError; failures: number }): void {
    const wasDown = endpoint.reason;
    endpoint.onFailure(failure, failures);
    if (this.#isClosed) return;
    if (wasDown === undefined && endpoint.reason !== undefined) {
      this.#options.logger.warn("chain endpoint lost", { endpoint: endpoint.name, reason: endpoint.reason });
      this.#schedulePatrol();
    }
  }

  /**
   * Uses the first healthy endpoint, else the first that is not down. Only the health check changes the endpoint in use: within half a second if that one goes
   * down, or at the next regular check after a single lost answer. Until then, `#order` ranks other endpoints before it.
   */
  #choose(): void {
    const next =
      this.#endpoints.find((endpoint) => this.#isWell(endpoint)) ??
      this.#endpoints.find((endpoint) => endpoint.reason === undefined);
    if (next === undefined || next === this.#current) return;
    const from = this.#current.name;
    this.#current = next;
    this.#options.logger.info("chain endpoint changed", { from, to: next.name });
    void this.#subscription.onMoved();
  }

  /** Endpoints to ask, best first. Skips those on hold; a lagging one is asked only if no other is better. */
  #order(method: string): readonly Endpoint[] {
    const open = this.#endpoints.filter((endpoint) => !endpoint.isHeld);
    const rank = (endpoint: Endpoint): number =>
      (endpoint.reason === undefined ? 0 : 16) +
      (this.#isBehind(endpoint) ? 8 : 0) +
      (endpoint.isLate(method) ? 4 : 0) +
      (endpoint.failures === 0 ? 0 : 2) +
      (endpoint === this.#current ? 0 : 1);
    const sorted = open.toSorted((a, b) => rank(a) - rank(b));
    return sorted.filter((endpoint, index) => index === 0 || !this.#isBehind(endpoint));
  }

  #isWell(endpoint: Endpoint): boolean {
    return endpoint.failures === 0 && !this.#isBehind(endpoint);
  }

  #isBehind({ head }: Endpoint): boolean {
    const best = Math.max(
      ...this.#endpoints.map((endpoint) => (endpoint.reason === undefined ? (endpoint.head ?? -1) : -1)),
    );
    return head !== undefined && head < best - lagBlocksMax;
  }

  /** One error for all endpoints; `unknown` if any of them may have processed the request. */
  #summarise(failures: ReadonlyMap<Endpoint, EndpointError>): EndpointError {
    const reach = isMaybeDone(failures) ? "unknown" : "unreached";
    const reasons = this.#endpoints.flatMap((endpoint) => failures.get(endpoint)?.message ?? endpoint.reason ?? []);
    // An endpoint that was not asked is on hold for its last failure.
    const isOverLimit = this.#endpoints.some((endpoint) => (failures.get(endpoint) ?? endpoint).isOverLimit);
    return new EndpointError(reasons.join("; "), { reach, isOverLimit });
  }

  #createEndpoint(address: string): Endpoint {
    const { clock, timeoutMs } = this.#options;
    const connection = createConnection(address, {
      clock,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      events: {
        onNotification: (notification) => this.#subscription.onNotification(endpoint, notification),
        onLost: () => this.#onLost(endpoint),
      },
    });
    const endpoint = new Endpoint(connection, clock);
    return endpoint;
  }

  /** Makes the next request check the endpoint's chain, since another chain may answer after a reconnect. Renews the subscription soon. */
  #onLost(endpoint: Endpoint): void {
    endpoint.doubt();
    if (!endpoint.connection.canNotify) return;
    this.#subscription.onLost(endpoint);
    this.#schedulePatrol(true);
  }

  /** Keeps a health check that is due earlier: otherwise frequent losses would postpone it forever. */
  #schedulePatrol(isUrgent = this.#endpoints.some(({ reason }) => reason !== undefined)): void {
    const { clock } = this.#options;
    const delayMs = isUrgent ? urgentPatrolMs : patrolMs;
    const at = clock.monotonic() + delayMs;
    if (this.#isClosed || at >= this.#patrolAt) return;
    this.#cancelPatrol?.();
    this.#patrolAt = at;
    this.#cancelPatrol = clock.after(delayMs, () => {
      this.#patrolAt = Number.POSITIVE_INFINITY;
      void this.#patrol();
    });
  }

  /**
   * Reads the newest block of each endpoint that is not on hold, and switches to the first healthy endpoint of the list. Until the chain is known, only one
   * endpoint is asked. A silent endpoint delays neither the switch from an endpoint that is down nor the subscription. Never rejects.
   */
  async #patrol(): Promise<void> {
    if (this.#current.reason !== undefined) this.#choose();
    const known = this.#expected.genesisHash !== undefined;
    const open = this.#endpoints.filter((endpoint) => !endpoint.isHeld);
    await Promise.all((known ? open : open.slice(0, 1)).map(async (endpoint) => this.#lookAt(endpoint)));
    if (this.#isClosed) return;
    this.#choose();
    this.#schedulePatrol();
  }

  /** Reads an endpoint's newest block. If this block is lower than before, checks the chain: the endpoint may serve another chain. */
  async #readHead(endpoint: Endpoint): Promise<number> {
    const head = findCount(await this.#askEndpoint(endpoint, { method: "eth_blockNumber" }));
    if (head === undefined)
      throw new EndpointError(`${endpoint.name}: returned no block number`, { reach: "unreached" });
    if (head < (endpoint.head ?? 0)) {
      endpoint.doubt();
      await this.#check(endpoint);
    }
    endpoint.head = head;
    return head;
  }

  async #lookAt(endpoint: Endpoint): Promise<void> {
    const { hasAnswered } = endpoint;
    endpoint.hasAnswered = false;
    try {
      await this.#readHead(endpoint);
    } catch (error) {
      // It may refuse all requests, for example because its key is disabled. Then the check of its chain fails too, and it counts as down.
      if (error instanceof RpcAnswerError && !hasAnswered) endpoint.doubt();
      this.#options.logger.debug("chain endpoint not checked", { endpoint: endpoint.name, error });
    }
    if (endpoint === this.#current) void this.#subscription.refresh();
  }
}

/** Whether an endpoint may have processed the request. */
function isMaybeDone(failures: ReadonlyMap<Endpoint, EndpointError>): boolean {
  return [...failures.values()].some((failure) => failure.reach === "unknown");
}

/** Whether a request for logs asks for several blocks. */
function spansBlocks({ params: [filter] = [] }: RpcCall): boolean {
  const { fromBlock, toBlock } = (filter ?? {}) as { readonly fromBlock?: unknown; readonly toBlock?: unknown }; // eth_getLogs takes an object.
  return fromBlock !== toBlock;
}

/** Whether an answer, or the last of several, is null or an empty list. */
function endsEmpty(answer: unknown): boolean {
  return answer === null || (Array.isArray(answer) && (answer.length === 0 || endsEmpty(answer.at(-1))));
}

function isForNext(error: unknown): error is EndpointError {
  return error instanceof EndpointError && (error.reach === "unreached" || error.reach === "unknown");
}

/** @throws RpcAnswerError if the answer to a request for logs is not a list of logs, so that the next endpoint is asked. */
function checkLogs(answer: unknown, method: string, endpoint: Endpoint): void {
  if (method !== "eth_getLogs" || isLogList(answer)) return;
  throw new RpcAnswerError(`${endpoint.name}: returned no list of logs`, { code: 0 });
}

/**
 * Turns an internal error, or too long an answer, into the failure `unknown`: the chain node may have the transaction. The endpoint does not count as down,
 * since it answered.
 */
function toSendError(error: unknown, endpoint: Endpoint): unknown {
  if (error instanceof EndpointError && error.reach === "answer-too-long")
    return new EndpointError(error.message, { reach: "unknown" });
  if (!(error instanceof RpcAnswerError) || toFailureOf(sendMethod, error).kind !== "connection") return error;
  return new EndpointError(`${endpoint.name}: ${error.message}`, { reach: "unknown" });
}

/** The failure that counts against an endpoint; undefined if the endpoint answered, or if a size was the cause. */
function toEndpointError(error: unknown, endpoint: Endpoint): EndpointError | undefined {
  if (error instanceof EndpointError) return isForNext(error) ? error : undefined;
  const isUnreached = error instanceof RpcAnswerError && toRpcFailure(error).kind === "unreached";
  return isUnreached ? toUnreached(endpoint.name, error) : undefined;
}
