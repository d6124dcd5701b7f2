import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eventually } from "../../clients/contract/contract-case.ts";
import { type EnvoyAddresses, renderEnvoyConfig } from "./envoy-config.ts";

/** A real Envoy, on loopback. */
export interface RunningEnvoy {
  /** `http://127.0.0.1:34567`, of the listener that passes requests while Sluice does not answer. */
  readonly lenient: string;
  /** Of the one that does not. */
  readonly strict: string;
  /** How many servers of Sluice it finds healthy. */
  healthy(): Promise<number>;
  close(): Promise<void>;
}

export async function startEnvoy(program: string, addresses: EnvoyAddresses): Promise<RunningEnvoy> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-envoy-"));
  const [config, adminFile] = [path.join(folder, "envoy.json"), path.join(folder, "admin")];
  await writeFile(config, renderEnvoyConfig(addresses));
  const args = ["--config-path", config, "--admin-address-path", adminFile, "--concurrency", "1"];
  const child = spawn(program, [...args, "--disable-hot-restart", "--log-level", "warn"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (text) => {
    log = (log + text).slice(-4_000);
  });
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  };
  try {
    let admin = "";
    await eventually("Envoy listens", async () => {
      if (child.exitCode !== null) throw new Error(`Envoy has ended. Its log ends with:\n${log}`);
      admin = await readFile(adminFile, "utf8").catch(() => "");
      return admin !== "" && (await ask(admin, "/ready").catch(() => "")).startsWith("LIVE");
    });
    const { listener_statuses } = JSON.parse(await ask(admin, "/listeners?format=json")) as Listeners;
    const findUrl = (name: string): string => {
      const { address, port_value } = listener_statuses.find((one) => one.name === name)!.local_address.socket_address;
      return `http://${address}:${port_value}`;
    };
    return {
      lenient: findUrl("lenient"),
      strict: findUrl("strict"),
      healthy: async () =>
        (await ask(admin, "/clusters")).split("\n").filter((line) => /^sluice::.*::health_flags::healthy$/.test(line))
          .length,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Listeners {
  readonly listener_statuses: readonly {
    readonly name: string;
    readonly local_address: { readonly socket_address: { readonly address: string; readonly port_value: number } };
  }[];
}

async function ask(admin: string, route: string): Promise<string> {
  return (await fetch(`http://${admin}${route}`)).text();
}
