// `npm start`: prepares what is missing, then becomes the broker. The broker runs in this same process, so that signals reach it; for the
// same reason package.json says `exec`: npm hands signals to its shell, which would die of them and leave the broker behind. Where the shell
// has no `exec` (Windows), start this file with node.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { prepare, root } from "./prepare.mjs";

prepare();
await import(pathToFileURL(join(root, "broker", "dist", "bundle", "stele.js")).href);
