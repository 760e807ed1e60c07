import type { GroupId } from "../../../../domain/group-id.ts";
import type { ClusterNode, JoiningNode, NodeId } from "../../../../domain/node.ts";
import type { SubscriptionId } from "../../../../domain/subscription.ts";
import type { Address } from "../../../../domain/topic.ts";
import { type Logger, silentLogger } from "../../../../lib/logger.ts";
import type {
  Balanced,
  ChainAhead,
  Claim,
  Coordinator,
  GroupLease,
  Hint,
  OwnedSubscription,
  SubscriptionKey,
} from "../../../../ports/coordinator.ts";
import { type PostgresAddress, parsePostgresAddress } from "../address.ts";
import type { StoreError } from "../../store-error.ts";
import { answering } from "../answering.ts";
import { Balancing } from "./balancing.ts";
import { type CoordinationDatabase, openCoordination } from "./coordination-database.ts";
import { HintListener } from "./hint-listener.ts";
import { sendHints } from "./hint-text.ts";
import { Leases } from "./leases.ts";
import { membershipLimits, usualLimits } from "./limits.ts";
import { Members } from "./members.ts";
import { Ownership } from "./ownership.ts";

export interface PostgresCoordinatorOptions {
  /** Address of the store's database; see createPostgresStore. */
  readonly url: string;
  readonly logger?: Logger;
  /** Connections for all calls except hints and `join`, `renew` and `leave`: hints have one connection, and these three calls share one. */
  readonly connectionsMax?: number;
  /** See createPostgresStore. */
  readonly onFault?: ((error: StoreError) => void) | undefined;
}

/** A coordinator, and the call that closes its connections. */
export interface PostgresCoordinator extends Coordinator {
  /** Waits for the calls in progress, and stops the hint listener. */
  stop(): Promise<void>;
}

/**
 * A coordinator in the database of a started PostgreSQL store. It uses separate connections, so that no call of the store delays it. Each
 * connection needs its own session on the server: a pooler that shares sessions does not work.
 * @throws StoreError when the address is malformed.
 */
export function createPostgresCoordinator(options: PostgresCoordinatorOptions): PostgresCoordinator {
  return answering(new SqlCoordinator(options));
}

class SqlCoordinator implements PostgresCoordinator {
  readonly #address: PostgresAddress;
  readonly #logger: Logger;
  readonly #membership: CoordinationDatabase;
  readonly #usual: CoordinationDatabase;
  readonly #memberships: Members;
  readonly #members: Members;
  readonly #leases: Leases;
  readonly #ownership: Ownership;
  readonly #balancing: Balancing;
  readonly #listeners = new Set<HintListener>();

  constructor(options: PostgresCoordinatorOptions) {
    const { url, logger = silentLogger, connectionsMax = usualLimits.connectionsMax, onFault } = options;
    this.#address = parsePostgresAddress(url);
    this.#logger = logger;
    const shared = { address: this.#address, logger, onFault };
    this.#membership = openCoordination(shared, membershipLimits);
    this.#usual = openCoordination(shared, { ...usualLimits, connectionsMax });
    this.#memberships = new Members(this.#membership.queries);
    this.#members = new Members(this.#usual.queries);
    this.#leases = new Leases(this.#usual.queries);
    this.#ownership = new Ownership(this.#usual.queries);
    this.#balancing = new Balancing(this.#usual.queries);
  }

  async stop(): Promise<void> {
    const listeners = [...this.#listeners].map(async (listener) => this.#end(listener));
    await Promise.all([...listeners, this.#membership.close(), this.#usual.close()]);
  }

  async join(node: JoiningNode, lastsMs: number): Promise<"joined" | "taken"> {
    return this.#memberships.join(node, lastsMs);
  }

  async renew(
    nodeId: NodeId,
    what: { readonly lastsMs: number; readonly groups: readonly GroupId[] },
  ): Promise<boolean> {
    return this.#memberships.renew(nodeId, what);
  }

  async leave(nodeId: NodeId): Promise<void> {
    return this.#memberships.leave(nodeId);
  }

  async listNodes(): Promise<readonly ClusterNode[]> {
    return this.#members.list();
  }

  async takeLease(groupId: GroupId, nodeId: NodeId): Promise<GroupLease | undefined> {
    return this.#leases.take(groupId, nodeId);
  }

  async listLeases(): Promise<readonly GroupLease[]> {
    return this.#leases.list();
  }

  async releaseLease(lease: GroupLease): Promise<void> {
    return this.#leases.release(lease);
  }

  async reportAhead(ahead: ChainAhead): Promise<void> {
    await sendHints(this.#usual.queries, [{ kind: "ahead", ...ahead }]);
  }

  async reserveSigner(
    signer: { readonly groupId: GroupId; readonly sender: Address },
    nodeId: NodeId,
  ): Promise<ClusterNode | undefined> {
    return this.#leases.reserveSigner(signer, nodeId);
  }

  async listSigners(groupId: GroupId): Promise<readonly Address[]> {
    return this.#leases.listSigners(groupId);
  }

  async listOwned(nodeId: NodeId): Promise<readonly OwnedSubscription[]> {
    return this.#ownership.list(nodeId);
  }

  async claim(id: SubscriptionId, nodeId: NodeId): Promise<Claim> {
    return this.#ownership.claim(id, nodeId);
  }

  async handOver(keys: readonly SubscriptionKey[]): Promise<void> {
    return this.#ownership.handOver(keys);
  }

  async release(keys: readonly SubscriptionKey[]): Promise<void> {
    return this.#ownership.release(keys);
  }

  async balance(nodeId: NodeId): Promise<Balanced> {
    return this.#balancing.balance(nodeId);
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => Promise<void>> {
    const listener = new HintListener({ address: this.#address, logger: this.#logger, onHint });
    this.#listeners.add(listener);
    await listener.tried();
    return async () => this.#end(listener);
  }

  async #end(listener: HintListener): Promise<void> {
    this.#listeners.delete(listener);
    await listener.stop();
  }
}
