import { startAnvil } from "./testing/anvil.ts";
import { describeTopicRegistry } from "./topic-registry.contract.ts";

describeTopicRegistry("anvil", () => startAnvil());
