import { BrokerError, quote } from "@stele/wire";
import { type GroupId, orDefaultGroup } from "../../domain/group-id.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { anonymous, type Caller, type Principal } from "./caller.ts";
import type { Action, Policy } from "./policy.ts";

/** What a call names: a group, which is the default one when left out, and a topic where it has one. */
export interface Named {
  readonly groupId: string | undefined;
  readonly topic?: string | undefined;
}

/** The one place where rights are asked. */
export class Access {
  readonly #policy: Policy;
  readonly #defaultGroupId: GroupId;

  constructor({ policy, defaultGroupId }: { readonly policy: Policy; readonly defaultGroupId: GroupId }) {
    this.#policy = policy;
    this.#defaultGroupId = defaultGroupId;
  }

  /** Without `named` the action concerns the whole broker. @throws BrokerError 100702. */
  authorize(caller: Caller, action: Action, named?: Named): void {
    const groupId = named && orDefaultGroup(named.groupId, this.#defaultGroupId);
    const topic = named?.topic;
    if (this.#policy.allows(caller, action, { groupId, topic })) return;
    throw new BrokerError("accessDenied", { details: topic === undefined ? action : `${action} ${quote(topic)}` });
  }

  /** Returns the topics that may reach a subscription. */
  receiverOf({ groupId }: Subscription): (topic: TopicName) => boolean {
    return this.receiverFor(anonymous, groupId);
  }

  /** Returns the topics of a group that may reach a principal. */
  receiverFor(principal: Principal, groupId: GroupId): (topic: TopicName) => boolean {
    return (topic) => this.#policy.mayReceive(principal, { groupId, topic });
  }
}
