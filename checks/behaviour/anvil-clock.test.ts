import { timedAnvilWorld } from "../harness/worlds.ts";
import { describeBehaviour } from "./suites/all.ts";

describeBehaviour(timedAnvilWorld);
