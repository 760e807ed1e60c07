import { expect, test } from "vitest";
import { type LogFields, type Logger, silentLogger } from "../../../lib/logger.ts";
import { SenderWorld } from "../testing/sender-world.ts";

test("if the fate of a transaction cannot be read, the warning names the transaction's nonce", async () => {
  const warnings: unknown[] = [];
  const warn = (message: string, fields?: LogFields): void => void warnings.push({ message, ...fields });
  const logger: Logger = { ...silentLogger, warn };
  const world = new SenderWorld({ logger });
  await world.send(1);
  world.node.isAway = true;
  await world.clock.advance(5000);
  expect(warnings).toMatchObject([{ message: "fate of a transaction not read", nonce: 0 }]);
});
