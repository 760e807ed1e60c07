import { expect, it } from "vitest";
import { RoleTable } from "./role-table.ts";

it("compares stored roles in slices, and returns the changed ones", async () => {
  const rules = [{ effect: "allow", actions: ["read"] }] as const;
  const names = ["a", "b", "c"];
  const reads = [names, ["a", "c", "d"]].map((own) => own.map((name) => ({ name, rules })));
  let now = 0;
  let turns = 0;
  const table = new RoleTable({
    apiKeys: { readRoles: async (revision) => ({ revision: revision + 1, roles: reads[revision] ?? [] }) },
    roles: new Map(),
    clock: {
      monotonic: () => (now += 10),
      soon: (action) => {
        turns += 1;
        setImmediate(action);
      },
    },
  });
  expect([...(await table.read())()]).toEqual(names);
  expect(turns).toBeGreaterThanOrEqual(names.length);
  const takeOver = await table.read();
  expect(table.names()).toEqual(names);
  expect([...takeOver()]).toEqual(["b", "d"]);
  expect(table.names()).toEqual(["a", "c", "d"]);
});
