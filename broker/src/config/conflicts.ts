import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

/** Base64 makes four characters of three bytes. */
const base64Growth = 4 / 3;
/** What a request says around its content: names, braces, a JSON-RPC envelope. */
const envelopeBytes = 512;

/** What is wrong with values that are each good by themselves. */
export function findConflicts(config: Config): readonly string[] {
  const { contentBytesMax, extensionsBytesMax, requestBodyBytesMax, transactionBytesMax } = config;
  const bodyBytesMin = Math.ceil(contentBytesMax * base64Growth) + extensionsBytesMax + envelopeBytes;
  const batchBytesMin = contentBytesMax + extensionsBytesMax + envelopeBytes;
  const conflicts: string[] = [];
  if (requestBodyBytesMax < bodyBytesMin) conflicts.push(tooSmall("requestBodyBytesMax", bodyBytesMin));
  if (transactionBytesMax < batchBytesMin) conflicts.push(tooSmall("transactionBytesMax", batchBytesMin));
  if (config.callbackBackoffMaxMs < config.callbackBackoffMinMs) {
    const [min, max] = [environmentName("callbackBackoffMinMs"), environmentName("callbackBackoffMaxMs")];
    conflicts.push(`${max} (${config.callbackBackoffMaxMs}) is below ${min} (${config.callbackBackoffMinMs})`);
  }
  return conflicts;
}

function tooSmall(name: "requestBodyBytesMax" | "transactionBytesMax", least: number): string {
  return `${environmentName(name)} must be at least ${least} to carry the longest event (contentBytesMax and extensionsBytesMax)`;
}
