import { expect, it } from "vitest";
import { brokerSettings } from "./settings.ts";

it.each([
  ["the port that the settings name", { STELE_ADMIN_PORT: "9081" }, "http://127.0.0.1:9081"],
  ["no default port, which another program may use", {}, undefined],
  ["no free port, which only the broker knows", { STELE_ADMIN_PORT: "0" }, undefined],
])("an operator's key may go to %s", async (_, env, adminUrl) => {
  const outcome = await brokerSettings.check(undefined, { STELE_ACCESS: "{}", ...env });
  expect(outcome).toMatchObject({ status: "valid", settings: { adminUrl } });
});
