// `npm start`: prepares what is missing, then becomes the broker. The broker runs in this same process, so that signals reach it; for the
// same reason package.json says `exec`: npm hands signals to its shell, which would die of them and leave the broker behind. The second half
// of that line is for the shell of Windows, which has no `exec`.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { prepare, root } from "./prepare.mjs";

prepare();
await import(pathToFileURL(join(root, "broker", "dist", "main.js")).href);
