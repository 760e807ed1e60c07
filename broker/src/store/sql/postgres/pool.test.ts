import { expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { parsePostgresAddress } from "./address.ts";
import { ConnectionPool } from "./pool.ts";
import { type ScriptedStatement, startScriptedServer } from "./testing/scripted-server.ts";

const connectMsMax = 300;

it("has its only connection again after a call gave up while the server was slow to prepare it", async () => {
  let isSlow = false;
  const slowBy = (ms: number, act: () => void): unknown => (isSlow ? setTimeout(act, ms) : act());
  const onStatement = ({ text, answer, cut }: ScriptedStatement): void => {
    if (text === "break") {
      isSlow = true;
      slowBy(connectMsMax * 0.6, cut);
    } else slowBy(connectMsMax * 0.6, answer);
  };
  const server = await startScriptedServer(onStatement);
  const pool = new ConnectionPool({
    name: "test",
    address: parsePostgresAddress(server.url),
    logger: silentLogger,
    connectionsMax: 1,
    session: { statementMsMax: 1000, lockMsMax: 1000, idleInTransactionMsMax: 1000 },
    waits: { connectMsMax, outageMsMax: 0 },
  });
  const first = await pool.connect(5000);
  const waiting = pool.connect(5000); // Its time is up at 1.0, while the connection that replaces the first is prepared, from 0.6 to 1.2.
  await expect(first.query("break", [])).rejects.toThrow(/cannot be reached/);
  first.release();
  (await waiting.catch(() => undefined))?.release();
  isSlow = false;
  const next = await pool.connect(5000);
  expect(await next.query("select 1", [])).toMatchObject({ rows: [] });
  next.release();
  await pool.end();
  server.close();
});
