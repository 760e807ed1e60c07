import { topicRegistryCode } from "../artifacts.generated.ts";
import { publishGas } from "../constants.ts";

/** The embedded chain's option `registryCode`: with it the chain runs `publish` by its own code. */
export const registryCode = { ...topicRegistryCode, publishGas };
