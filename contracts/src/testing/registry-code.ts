import { topicRegistryCode } from "../artifacts.generated.ts";
import { publishGas } from "../constants.ts";

/** The registry as the embedded chain knows it. */
export const registryCode = { ...topicRegistryCode, publishGas };
