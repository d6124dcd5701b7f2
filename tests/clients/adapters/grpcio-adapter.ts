import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ClientAdapter } from "../contract/contract-client.ts";
import { openDriver } from "./driver-adapter.ts";

/** Debian's own, which its package of grpcio is for. */
const python = "/usr/bin/python3";
const driver = fileURLToPath(new URL("grpcio_driver.py", import.meta.url));

export const grpcioAdapter: ClientAdapter = {
  name: "grpcio",
  lacks: {
    "raw requests": "the library writes headers and frames",
    frames: "the library writes frames",
  },
  async version(): Promise<string> {
    const { stdout } = await promisify(execFile)(python, ["-c", "import grpc; print(grpc.__version__)"]);
    return stdout.trim();
  },
  open: () => openDriver("grpcio", python, [driver]),
};
