import { clusterWorld } from "../harness/cluster-world.ts";
import { describeBehaviour } from "./suites/all.ts";

describeBehaviour(clusterWorld());
