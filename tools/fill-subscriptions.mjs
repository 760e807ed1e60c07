// `node tools/fill-subscriptions.mjs FOLDER COUNT URL TOPIC`: adds subscriptions to the store of a stopped broker, each with the callback URL/<number> and a
// cursor before every event. Adding 20,000 by calls of the broker takes seven times the processor time. For checks and benchmarks of the broker's start.
import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { positionZero } from "../broker/dist/domain/position.js";
import { createSqlStore } from "../broker/dist/store/sql/sql-store.js";

const [folder, count, url, topic] = process.argv.slice(2);
const file = join(folder, "store.sqlite");
// The store syncs after each insert. In memory that costs nothing; on a busy disk, all of them take a minute.
const workFolder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "stele-fill-"));
const workFile = join(workFolder, "store.sqlite");
copyFileSync(file, workFile);
const store = createSqlStore({ file: workFile });
await store.start();
const createdAt = Date.now();
for (let number = 0; number < Number(count); number += 1) {
  await store.insertSubscription(
    {
      id: randomUUID(),
      groupId: "1",
      filter: topic,
      delivery: { kind: "webhook", format: "RESTful", url: `${url}/${number}`, secret: undefined },
      state: "active",
      cursor: positionZero,
      notifiedCount: 0,
      notifiedAt: createdAt,
      failedAttempts: 0,
      failedMs: 0,
      failingSince: 0,
      retryAt: 0,
      createdAt,
      owner: undefined,
      epoch: 0,
    },
    0,
  );
}
await store.stop();
copyFileSync(workFile, file);
rmSync(workFolder, { recursive: true });
