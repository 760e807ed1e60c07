import { anonymous } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";

/**
 * A broker with the given operations, where everybody passes every check of access. Any other operation on topics, events, sessions and subscriptions
 * throws.
 */
export function createFakeBroker(operations: Partial<Broker> = {}): Broker {
  return {
    open: refuse("open"),
    close: refuse("close"),
    exist: refuse("exist"),
    state: refuse("state"),
    list: refuse("list"),
    submit: refuse("publish"),
    submitAll: refuse("publish"),
    pass: refuse("pass"),
    whenRoom: () => true,
    release: refuse("release"),
    attach: refuse("attach"),
    tail: refuse("tail"),
    subscribe: refuse("subscribe"),
    unSubscribe: refuse("unSubscribe"),
    getEvent: refuse("getEvent"),
    getProof: refuse("getProof"),
    listSubscriptions: refuse("listSubscriptions"),
    listSkippedEntries: refuse("listSkippedEntries"),
    rightsOf: () => ({ principal: undefined, expiresAt: undefined, actions: [] }),
    health: () => [],
    node: () => undefined,
    authenticate: () => anonymous,
    refuseLogIn: (reason) => ({ kind: "rejected", reason }),
    mayConnect: () => true,
    admit: () => {},
    authorize: () => {},
    ...operations,
  };
}

function refuse(name: string) {
  return (): never => {
    throw new Error(`${name} was not expected`);
  };
}
