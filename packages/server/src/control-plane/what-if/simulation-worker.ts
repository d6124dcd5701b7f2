import { parentPort, workerData } from "node:worker_threads";
import { runSimulation } from "./run-simulation.ts";
import type { SimulationInput, SimulationMessage } from "./simulation-order.ts";

const send = (message: SimulationMessage): void => parentPort?.postMessage(message);
send(
  await runSimulation(workerData as SimulationInput, (share, requests) => send({ kind: "progress", share, requests })),
);
