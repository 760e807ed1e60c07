import { topicRegistryCode } from "../artifacts.generated.ts";
import { publishGas } from "../constants.ts";

/** The embedded chain's option `registryCode`. With it, the chain runs `publish` in code of its own instead of the EVM. */
export const registryCode = { ...topicRegistryCode, publishGas };
