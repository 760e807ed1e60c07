export {
  compilerVersion,
  sourcesHash,
  topicAbi,
  topicBytecode,
  topicRegistryAbi,
  topicRegistryBytecode,
  topicRegistryCode,
} from "./artifacts.generated.ts";
export { batchRejectedReason, everyone, publishGas, topicNameBytesMax, writerOwnersSlot } from "./constants.ts";
