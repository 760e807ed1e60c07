import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testStore } from "../../ports/store.contract.ts";
import { createSqlStore } from "./sql-store.ts";

testStore("SQLite", async () =>
  createSqlStore({ file: join(mkdtempSync(join(tmpdir(), "stele-store-")), "store.db") }),
);
