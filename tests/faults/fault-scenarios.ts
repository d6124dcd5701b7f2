import { failoverFaults } from "./failover-faults.ts";
import type { FaultScenario } from "./fault-scenario.ts";
import { proxyFaults } from "./proxy-faults.ts";
import { singleServerFaults } from "./single-server-faults.ts";

export const faultScenarios: readonly FaultScenario[] = [...singleServerFaults, ...failoverFaults, ...proxyFaults];
