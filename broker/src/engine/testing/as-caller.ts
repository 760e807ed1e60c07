import { anonymous, type Caller } from "../access/caller.ts";
import type { Broker } from "../broker.ts";
import type { RunningBroker } from "../engine-options.ts";

export const testCaller: Caller = {
  principal: anonymous,
  address: "127.0.0.1",
  protocol: "REST",
  signal: new AbortController().signal,
};

type CallsOfOne = {
  readonly [Name in Exclude<keyof Broker, "authenticate" | "refuseLogIn" | "mayConnect">]: Broker[Name] extends (
    caller: Caller,
    ...rest: infer Rest
  ) => infer Result
    ? (...rest: Rest) => Result
    : never;
};

/** A broker whose calls all come from one caller. */
export type CalledBroker = CallsOfOne &
  Pick<Broker, "authenticate" | "refuseLogIn" | "mayConnect"> &
  Omit<RunningBroker, "calls" | "runningOrders">;

export function asCaller(broker: RunningBroker, caller: Caller = testCaller): CalledBroker {
  const { calls } = broker;
  return {
    operator: broker.operator,
    start: () => broker.start(),
    stop: (graceMs) => broker.stop(graceMs),
    scrub: (report) => broker.scrub(report),
    groupHealth: () => broker.groupHealth(),
    open: (call) => calls.open(caller, call),
    close: (call) => calls.close(caller, call),
    exist: (call) => calls.exist(caller, call),
    state: (call) => calls.state(caller, call),
    list: (call) => calls.list(caller, call),
    submit: (call, onSettled) => calls.submit(caller, call, onSettled),
    submitAll: (calls_, onSettled) => calls.submitAll(caller, calls_, onSettled),
    pass: (call) => calls.pass(caller, call),
    whenRoom: (publishes, callback) => calls.whenRoom(caller, publishes, callback),
    release: (call) => calls.release(caller, call),
    attach: (request, peer) => calls.attach(caller, request, peer),
    tail: (call, peer) => calls.tail(caller, call, peer),
    subscribe: (call) => calls.subscribe(caller, call),
    unSubscribe: (call) => calls.unSubscribe(caller, call),
    getEvent: (call) => calls.getEvent(caller, call),
    getProof: (call) => calls.getProof(caller, call),
    listSubscriptions: () => calls.listSubscriptions(caller),
    listSkippedEntries: (call) => calls.listSkippedEntries(caller, call),
    rightsOf: () => calls.rightsOf(caller),
    health: (groupId?: string) => calls.health(caller, groupId),
    node: () => calls.node(caller),
    authenticate: (credential, origin) => calls.authenticate(credential, origin),
    refuseLogIn: (reason, origin) => calls.refuseLogIn(reason, origin),
    mayConnect: (findAddress) => calls.mayConnect(findAddress),
    admit: () => calls.admit(caller),
    authorize: (action, named) => calls.authorize(caller, action, named),
  };
}
