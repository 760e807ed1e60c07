import { instantAnvilWorld } from "../harness/worlds.ts";
import { describeBehaviour } from "./suites/all.ts";

describeBehaviour(instantAnvilWorld);
