import { embeddedWorld } from "../harness/world.ts";
import { describeOperations } from "./suites/operations.ts";

describeOperations(embeddedWorld);
