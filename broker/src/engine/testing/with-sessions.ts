import type { Store } from "../../ports/store.ts";

/** The store, with some calls of its sessions replaced. */
export function withSessions(store: Store, replaced: Partial<Store["sessions"]>): Store {
  return withCalls(store, { sessions: withCalls(store.sessions, replaced) });
}

/** A part of a store, with some calls replaced. */
export function withCalls<Part extends object>(part: Part, replaced: Partial<Part>): Part {
  return new Proxy(part, {
    get: (target, name) => {
      if (name in replaced) return Reflect.get(replaced, name) as unknown;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
