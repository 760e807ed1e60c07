import { onEveryWorld } from "../harness/worlds.ts";
import { describeOperations } from "./suites/operations.ts";

onEveryWorld(describeOperations);
