import { clockWorld } from "../harness/worlds.ts";
import { describeBehaviour } from "./suites/all.ts";

describeBehaviour(clockWorld);
