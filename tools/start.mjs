// `npm start`: installs and builds what is missing, then runs the broker in this process, so that signals reach the broker. For the same reason package.json
// uses `exec`: npm passes signals to its shell, which would end and leave the broker running. If the shell has no `exec` (Windows), start this file with node.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { prepare, root } from "./prepare.mjs";

/** Flags that npm has too. Their variables may come from npm's own settings. */
const npmFlags = new Set(["--access"]);

prepare();
await refuseLostFlags();
await import(pathToFileURL(join(root, "broker", "dist", "bundle", "stele.js")).href);

/** `npm start --port=9090` gives the flag to npm, which only sets a variable: the broker would start with the default port. */
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
