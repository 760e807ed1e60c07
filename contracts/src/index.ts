export {
  compilerVersion,
  sourcesHash,
  topicAbi,
  topicBytecode,
  topicRegistryAbi,
  topicRegistryBytecode,
} from "./artifacts.generated.ts";
export { batchRejectedReason, everyone, topicNameBytesMax, writerOwnersSlot } from "./constants.ts";
