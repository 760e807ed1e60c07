import { instantWorld } from "../harness/worlds.ts";
import { describeBehaviour } from "./suites/all.ts";

describeBehaviour(instantWorld);
