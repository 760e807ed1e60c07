export {
  compilerVersion,
  sourcesHash,
  topicAbi,
  topicBytecode,
  topicRegistryAbi,
  topicRegistryBytecode,
} from "./artifacts.generated.ts";
export { batchRejectedReason, topicNameBytesMax } from "./constants.ts";
