import { expect, it } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { type LogFields, type Logger, silentLogger } from "../../../lib/logger.ts";
import { parsePostgresAddress } from "./address.ts";
import { ConnectionPool, type PoolOptions } from "./pool.ts";
import { type ScriptedStatement, startScriptedServer } from "./testing/scripted-server.ts";

const connectMsMax = 300;

function createPool(url: string, options: Pick<PoolOptions, "connectionsMax"> & Partial<PoolOptions>): ConnectionPool {
  return new ConnectionPool({
    name: "test",
    address: parsePostgresAddress(url),
    logger: silentLogger,
    session: { statementMsMax: 1000, lockMsMax: 1000, idleInTransactionMsMax: 1000 },
    waits: { connectMsMax, outageMsMax: 0 },
    ...options,
  });
}

it("after a call gave up while the server prepared the only connection, the pool can still use that connection", async () => {
  let isSlow = false;
  const slowBy = (ms: number, act: () => void): unknown => (isSlow ? setTimeout(act, ms) : act());
  const onStatement = ({ text, answer, cut }: ScriptedStatement): void => {
    if (text === "break") {
      isSlow = true;
      slowBy(connectMsMax * 0.6, cut);
    } else slowBy(connectMsMax * 0.6, answer);
  };
  const server = await startScriptedServer(onStatement);
  // On a busy machine, a probe may find the slow server dead. Then the last call waits until a later probe finds it alive.
  const pool = createPool(server.url, { connectionsMax: 1, waits: { connectMsMax, outageMsMax: 10_000 } });
  const first = await pool.connect(5000);
  // In units of connectMsMax: this call gives up after 1.0; the server prepares the connection that replaces the first from 0.6 to 1.2.
  const waiting = pool.connect(5000);
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

it("in an outage, a pool counts an idle connection as lost if its probe finds that connection broken", async () => {
  let isDown = false;
  const server = await startScriptedServer(({ text, answer, cut }) => {
    if (!isDown) return answer();
    if (text === "select 1") isDown = false;
    else idle.release();
    cut();
  });
  const lines: (readonly [string, LogFields | undefined])[] = [];
  const reported = createDeferred<void>();
  const logger: Logger = {
    ...silentLogger,
    child: () => logger,
    warn: (message, fields) => {
      lines.push([message, fields]);
      reported.resolve();
    },
    info: (message, fields) => void lines.push([message, fields]),
  };
  const waits = { connectMsMax, outageMsMax: 10_000 };
  const pool = createPool(server.url, { connectionsMax: 2, logger, waits });
  const idle = await pool.connect(5000);
  isDown = true;
  const connection = await pool.connect(5000); // The outage begins with this call, and ends after the probe of the idle connection.
  await reported.promise;
  await connection.query("select 2", []);
  expect(lines).toEqual([
    ["database unreachable", { connectionsLost: 1, reason: expect.any(String) }],
    ["database reached again", { connectionsLost: 1, awayMs: expect.any(Number) }],
  ]);
  connection.release();
  await pool.end();
  server.close();
});
