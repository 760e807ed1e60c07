import { describe, expect, it } from "vitest";
import { type Order, Stele } from "./index.ts";

const search = { host: "down.example" };
const first = (rows: AsyncGenerator): Promise<unknown> => rows.next();

/** The group that a call sends; null if it sends none. */
async function groupSentBy(call: (stele: Stele) => Promise<unknown>, groupId?: string): Promise<string | null> {
  const groups: (string | null)[] = [];
  const stele = new Stele({
    url: "http://broker.example",
    groupId,
    fetch: async (input, init) => {
      groups.push(new URL(new Request(input, init).url).searchParams.get("groupId"));
      return Response.json({ code: 100702, message: "not allowed" }, { status: 403 });
    },
  });
  await expect(call(stele)).rejects.toMatchObject({ code: 100702 });
  return groups[0] ?? null;
}

describe.each<[string, (stele: Stele, options?: { readonly groupId: string }) => Promise<unknown>]>([
  ["subscriptions", ({ admin }, options) => first(admin.subscriptions({ ...search, groupId: undefined }, options))],
  ["an order to some", ({ admin }, options) => first(admin.order({ name: "pause" }, search, options))],
  ["an order to all", ({ admin }, options) => first(admin.order({ name: "pause" }, { all: true }, options))],
  ["sessions", ({ admin }, options) => first(admin.sessions({}, options))],
  ["topics", ({ admin }, options) => first(admin.topics(options))],
  ["topic", ({ admin }, options) => admin.topic("t", options)],
  ["events", ({ admin }, options) => first(admin.events("t", options))],
  ["event", ({ admin }, options) => admin.event("e", options)],
  ["blocks", ({ admin }, options) => first(admin.blocks(options))],
  ["skippedEntries", ({ admin }, options) => admin.skippedEntries(options)],
])("the group of a call for operators: %s", (_, call) => {
  it("the call sends the client's group, unless its options name another", async () => {
    expect(await groupSentBy(call, "2")).toBe("2");
    expect(await groupSentBy((stele) => call(stele, { groupId: "3" }), "2")).toBe("3");
    expect(await groupSentBy(call)).toBeNull();
  });
});

it("a search that names a group is sent with that group, not with the client's", async () => {
  const inThird = { ...search, groupId: "3" };
  expect(await groupSentBy(({ admin }) => first(admin.subscriptions(inThird)), "2")).toBe("3");
  expect(await groupSentBy(({ admin }) => first(admin.order({ name: "pause" }, inThird)), "2")).toBe("3");
});

it("an order whose search has only blank conditions is sent without a group, so that the broker refuses the order", async () => {
  for (const blank of [{}, { host: "" }, { lagMin: 0 }, { host: undefined }]) {
    expect(await groupSentBy(({ admin }) => first(admin.order({ name: "pause" }, blank)), "2")).toBeNull();
  }
});

it.each([".", ".."])(
  "AdminClient refuses the name %j in a path, since a URL would lead to another address",
  async (name) => {
    const requests: unknown[] = [];
    const { admin } = new Stele({
      url: "http://broker.example",
      fetch: async (input) => {
        requests.push(input);
        return Response.json({ items: [] });
      },
    });
    for (const call of [admin.topic(name), first(admin.events(name)), first(admin.order({ name: "pause" }, name))])
      await expect(call).rejects.toMatchObject({ name: "SteleError", retry: false, wasRefused: true });
    expect(requests).toEqual([]);
  },
);

const missing = (): Response => Response.json({ code: 100704, message: "role does not exist" }, { status: 404 });
const lost = (): never => {
  throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
};

it("deleteRole resolves if a retry after a lost answer finds no role, and throws if the first try finds none", async () => {
  const deleteThrough = (...turns: (() => Response)[]): Promise<void> => {
    const fetch: typeof globalThis.fetch = async () => turns.shift()?.() ?? missing();
    return new Stele({ url: "http://broker.example", fetch, retries: 1 }).admin.deleteRole("r");
  };
  await expect(deleteThrough(lost, missing)).resolves.toBeUndefined();
  await expect(deleteThrough(missing)).rejects.toMatchObject({ code: 100704 });
});

const firstPage = (): Response => Response.json({ items: [{ id: "a", events: 1 }], next: "a" });

it.each([
  ["a real order may have taken effect", false, false],
  ["a dry run was refused", true, true],
])("if the broker refuses the second page of an order, the error says that %s", async (...[, dryRun, wasRefused]) => {
  const turns = [firstPage, missing];
  const fetch: typeof globalThis.fetch = async () => (turns.shift() ?? missing)();
  const results = new Stele({ url: "http://broker.example", fetch }).admin.order({ name: "skip", dryRun }, search);
  await expect(results.next()).resolves.toMatchObject({ value: { id: "a" } });
  await expect(results.next()).rejects.toMatchObject({ name: "SteleError", wasRefused });
});

it.each([
  ["false after a first try whose answer was lost", [lost], undefined, false],
  ["true if no answer was lost", [], undefined, true],
  ["true for a dry run, even after a lost answer", [lost], true, true],
] as const)(
  "wasRefused of a failed result of an order for several subscriptions is %s",
  async (...[, losses, dryRun, wasRefused]) => {
    const error = { code: 100507, detail: "another order runs" };
    const turns: (() => Response)[] = [...losses];
    const fetch: typeof globalThis.fetch = async () =>
      (turns.shift() ?? (() => Response.json({ items: [{ id: "a", events: 0, error }] })))();
    const results = new Stele({ url: "http://broker.example", fetch, retries: 1 }).admin.order(
      { name: "pause", dryRun },
      search,
    );
    await expect(results.next()).resolves.toMatchObject({ value: { id: "a", error, wasRefused } });
  },
);

it.each<[Order, number]>([
  [{ name: "skip" }, 1],
  [{ name: "skip", to: "OFFSET_LAST" }, 1],
  [{ name: "skip", to: "2999-01-01T00:00:00Z" }, 1],
  [{ name: "skip", dryRun: true }, 2],
  [{ name: "skip", to: 7 }, 2],
  [{ name: "replay", from: "OFFSET_FIRST" }, 2],
])(
  "if answers are lost, the client sends the order %j %i times: a repeat must not skip further events",
  async (order, tries) => {
    let asked = 0;
    const fetch: typeof globalThis.fetch = async () => {
      asked += 1;
      return lost();
    };
    const { admin } = new Stele({ url: "http://broker.example", fetch, retries: 1 });
    for (const target of ["a", search]) {
      asked = 0;
      await expect(admin.order(order, target).next()).rejects.toMatchObject({ wasRefused: false });
      expect(asked).toBe(tries);
    }
  },
);
