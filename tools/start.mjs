// `npm start`: prepares what is missing, then becomes the broker. The broker runs in this same process, so that signals reach it; for the
// same reason package.json says `exec`: npm hands signals to its shell, which would die of them and leave the broker behind. Where the shell
// has no `exec` (Windows), start this file with node.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { prepare, root } from "./prepare.mjs";

/** Flags that npm has too: its own settings may set them. */
const npmFlags = new Set(["--access"]);

prepare();
await refuseLostFlags();
await import(pathToFileURL(join(root, "broker", "dist", "bundle", "stele.js")).href);

/** `npm start --port=9090` gives the flag to npm, which keeps it and sets a variable: the broker would start with the default. */
async function refuseLostFlags() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const folder = join(root, "broker", "dist", "config");
  const load = (file) => import(pathToFileURL(join(folder, file)).href);
  const [{ settings }, { flagName }] = [await load("settings.js"), await load("setting.js")];
  const flags = ["--config", "--check-config", ...Object.keys(settings).map(flagName)].filter(
    (flag) => !npmFlags.has(flag),
  );
  const lost = flags.filter((flag) => `npm_config_${flag.slice(2).replaceAll("-", "_")}` in process.env);
  if (lost.length === 0) return;
  const names = lost.join(", ");
  console.error(
    `npm took ${names} for a flag of its own. Write two dashes before the broker's flags: npm start -- ${lost[0]} …`,
  );
  process.exit(2);
}
