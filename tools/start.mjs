// `npm start`: prepares what is missing, then becomes the broker. The broker runs in this same process, so that signals reach it.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { prepare, root } from "./prepare.mjs";

prepare();
await import(pathToFileURL(join(root, "broker", "dist", "main.js")).href);
