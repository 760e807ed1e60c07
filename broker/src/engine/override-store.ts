import type { Store } from "../ports/store.ts";

/** A store with some methods of its own; the others are those of `store`. */
export function overrideStore(store: Store, own: Partial<Store>): Store {
  return new Proxy(store, { get: (_, name) => Reflect.get(own, name) ?? bound(store, name) });
}

function bound(store: Store, name: string | symbol): unknown {
  const member: unknown = Reflect.get(store, name);
  return typeof member === "function" ? member.bind(store) : member;
}
