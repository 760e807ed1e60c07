import { startAnvilChain } from "./testing/anvil-chain.ts";
import { describeTopicRegistry } from "./topic-registry.contract.ts";

describeTopicRegistry("anvil", () => startAnvilChain());
